"""mo-loop ops."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from mo_loop.cli.flag_options import GroupedCommand, flags, format_option, message_options, option
from mo_loop.cli.output import ReportFile, give, reported, table
from mo_loop.errors import UsageError
from mo_loop.options import ConvertOptions
from mo_loop.support.flags import FILES

SCHEMA, VERSION = "mo-loop ops", 1

if TYPE_CHECKING:
    from mo_loop.extensions import Extensions
    from mo_loop.frontend.operators import Handling


@click.command(cls=GroupedCommand)
@click.argument("operators", nargs=-1, metavar="[OPERATOR]...")
@option(
    "--opset", group=FILES, type=click.IntRange(min=1), metavar="N",
    help="Only the version that opset N of a domain uses.",
)
@option("--domain", group=FILES, metavar="NAME", help="Only this domain; ai.onnx is the one without a name.")
@option(
    "--how", group=FILES, type=click.Choice(["direct", "composed", "lowered", "function", "refused", "extension"]),
    multiple=True, help="Only operators that are handled in this way. Can be repeated.",
)
@flags(ConvertOptions, "extensions", "plugins", is_argument=True)
@format_option("text", "json", "markdown")
@message_options()
def command(
    operators: tuple[str, ...], opset: int | None, domain: str | None, how: tuple[str, ...],
    extension: tuple[str, ...], no_plugins: bool, form: str, report_file: ReportFile | None, quiet: bool, debug: bool,
) -> None:
    """Show how the given ONNX operators, or all, are converted, with the operators of extensions and of installed
    packages.

    \b
    direct     always the same single operation of OpenVINO
    composed   several operations, or a choice by attributes, types and shapes
    lowered    control flow and sequences, which passes turn into operations
    function   expanded into the function body that ONNX defines
    refused    not supported; the note gives the reason
    extension  translated by an extension, which the note names

    \b
    mo-loop ops Softmax com.microsoft::Gelu
    mo-loop ops --how refused
    mo-loop ops --opset 11 --format json
    mo-loop ops --how extension --extension file.py
    """
    with reported(debug, as_json=form == "json" and not quiet, writes=False, report_file=report_file):
        from mo_loop.extensions import collect_extensions
        from mo_loop.frontend.operators import handled, merged

        rows = _with_extensions(handled(), collect_extensions(extension, plugins=not no_plugins))
        names = {name for row in rows for name in (row.operator, row.name)}
        _require(operators, names, "operator", "all are listed by `mo-loop ops`")
        if domain is not None:
            _require((domain,), {row.domain or "ai.onnx" for row in rows}, "domain", "")
        chosen = [
            row for row in merged(rows)
            if (not operators or row.operator in operators or row.name in operators)
            and domain in (None, row.domain or "ai.onnx")
            and (not how or row.how in how)
            and (opset is None or row.version <= opset <= (row.until or opset))
        ]
        if not chosen:
            raise UsageError("no operator matches all of these options", hint="leave one of them out")
        give(lambda wanted: _FORMS[wanted](chosen), form, report_file, quiet=quiet)


def _with_extensions(rows: Sequence[Handling], extensions: Extensions) -> list[Handling]:
    """The rows with those of the translators of extensions, which replace versions of operators that ONNX has.

    From its first version on, a translator of an extension precedes all others.
    """
    from mo_loop.frontend.operators import Handling

    found = list(rows)
    known = extensions.translators
    for domain, each in known:
        key = (domain, each.op)
        if known.oldest(*key) == each.since:
            found = [
                replace(row, until=min(row.until or each.since, each.since - 1)) if (row.domain, row.operator) == key
                else row
                for row in found if (row.domain, row.operator) != key or row.version < each.since
            ]
        later = [other.since for place, other in known if (place, other.op) == key and other.since > each.since]
        until = min(later) - 1 if later else None
        found.append(Handling(*key, each.since, "extension", note=f"by {each.origin}", until=until))
    return sorted(found, key=lambda row: (row.domain, row.operator, row.version))


def _require(names: Sequence[str], known: set[str], what: str, hint: str) -> None:
    for name in names:
        if name not in known:
            from difflib import get_close_matches

            by_lower = {each.lower(): each for each in sorted(known)}
            close = get_close_matches(name.lower(), by_lower, 1, 0.6)
            hint = f"did you mean {by_lower[close[0]]!r}?" if close else hint
            raise UsageError(f"ONNX has no {what} {name!r}", hint=hint)


def text(rows: Sequence[Handling]) -> str:
    """A table, one row each with its note, and how many are handled in each way."""
    cells = [
        (row.name, row.opsets, row.how, "; ".join(filter(None, (", ".join(row.becomes), row.note)))) for row in rows
    ]
    counts = Counter(row.how for row in rows)
    totals = ", ".join(f"{counts[how]} {how}" for how in counts)
    return f"{table([('operator', 'opsets', 'how', 'becomes'), *cells])}\n\n{totals}"


def as_json(rows: Sequence[Handling]) -> str:
    """`operators` are objects: domain, operator, since, until (null for the newest), how, becomes, note."""
    operators = [
        {
            "domain": row.domain or "ai.onnx", "operator": row.operator, "since": row.version, "until": row.until,
            "how": row.how, "becomes": list(row.becomes), "note": row.note,
        }
        for row in rows
    ]
    return json.dumps({"schema": SCHEMA, "version": VERSION, "operators": operators}, indent=1, ensure_ascii=False)


def markdown(rows: Sequence[Handling]) -> str:
    """A table, one row each."""
    lines = ["| operator | opsets | how | becomes | note |", "|---|---|---|---|---|"]
    lines += [f"| {row.name} | {row.opsets} | {row.how} | {', '.join(row.becomes)} | {row.note} |" for row in rows]
    return "\n".join(lines)


_FORMS: dict[str, Callable[[Sequence[Handling]], str]] = {"text": text, "json": as_json, "markdown": markdown}
