"""mo-loop check."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mo_loop.batching.storage.locations import is_url
from mo_loop.cli.conversion_options import conversion_options, named, opened, options_of
from mo_loop.cli.flag_options import GroupedCommand, format_option, message_options, option
from mo_loop.cli.output import TERMINAL, ReportFile, give, message, printed_warnings, reported, table, tell
from mo_loop.errors import UsageError
from mo_loop.options import ConvertOptions
from mo_loop.printable import printable
from mo_loop.support.files import reason_of
from mo_loop.support.flags import REPORTS

if TYPE_CHECKING:
    from mo_loop.look.diagnostics.diagnostic import CheckReport, Level

@click.command(cls=GroupedCommand)
@click.argument("models", nargs=-1, type=click.Path(), metavar="MODEL...")
@format_option("text", "json", "sarif", "markdown")
@option(
    "--level", group=REPORTS, type=click.Choice(["error", "warning", "note"]), default="note", show_default=True,
    help="Show diagnostics of this level and above. The exit code does not depend on it.",
)
@option(
    "--fail-on", group=REPORTS, type=click.Choice(["error", "warning", "note"]), default="warning", show_default=True,
    help="Exit with 1 if there are diagnostics of this level or above.",
)
@option(
    "--ignore", "ignored", group=REPORTS, metavar="CODE", multiple=True,
    help="Leave out the diagnostics of a code, also where they would count for the exit code. Can be repeated, or "
    "codes separated by commas.",
)
@option(
    "--baseline", group=REPORTS, metavar="FILE", type=click.Path(dir_okay=False),
    help="Leave out the diagnostics of an earlier report (--report FILE.json), so that new ones alone count.",
)
@option(
    "--codes", group=REPORTS, is_flag=True,
    help="List all codes and their meanings, as text, JSON or Markdown, and exit. It needs no MODEL.",
)
@conversion_options(
    "input", "output", input='Inputs as for convert: "x[1,3,?,224..512],rate->16000". For every MODEL.',
    output="Tensors that become the outputs, separated by commas.",
)
@message_options()
@click.pass_context
def command(
    context: click.Context, models: tuple[str, ...], form: str, report_file: ReportFile | None, level: Level,
    fail_on: Level, ignored: tuple[str, ...], baseline: str | None, codes: bool, quiet: bool, debug: bool,
) -> None:
    """List the errors, warnings and notes of the conversion of ONNX models, without writing an IR.

    MODEL is a file, a folder (every .onnx below it), a glob, a list of them (@FILE), or - for standard input.

    \b
    error     the conversion would end with it
    warning   the model converts, but it may give other numbers, fail at
              run time, or depend on an assumption
    note      it costs time or memory, or is useful to know

    Each diagnostic has a stable code, the place (the scope path of the node, and its operator), the reason and what to
    do. The options are those of convert, and the check applies them. After a file that cannot be read, the check
    continues with the others.

    \b
    mo-loop check model.onnx
    mo-loop check model.onnx --input "x[1,3,224,224]" --strict
    mo-loop check models --level warning
    mo-loop check models --format sarif > findings.sarif
    mo-loop check models --report known.json
    mo-loop check models --baseline known.json --ignore ML505
    mo-loop check --codes

    Exit code 1: errors or warnings were found (--fail-on).
    """
    with reported(debug, as_json=form == "json" and not quiet, writes=False, report_file=report_file):
        if codes:
            give(code_table, form, report_file)
            return
        if not models:
            raise click.MissingParameter(ctx=context, param=context.command.params[0])
        with printed_warnings(quiet=quiet):
            options, codes_left_out, known = options_of(context), _known_codes(ignored), _known_findings(baseline)
            reports = [
                replace(each, level=level, fail_on=fail_on).without(codes_left_out, known)
                for each in _reports(models, options, debug)
            ]
        from mo_loop.look.diagnostics.diagnostic import exit_code

        give(lambda wanted: _formatted(wanted, reports), form, report_file, quiet=quiet)
        status = exit_code(reports)
    sys.exit(status)


def _known_codes(texts: Sequence[str]) -> set[str]:
    """The codes of --ignore. UsageError for one that does not exist."""
    from mo_loop.look.diagnostics.codes import CODES

    codes = {each.strip().upper() for text in texts for each in text.split(",")}
    if unknown := sorted(codes - CODES.keys()):
        raise UsageError(f"--ignore {unknown[0]}: there is no such code", hint="`mo-loop check --codes` lists all")
    return codes


def _known_findings(baseline: str | None) -> set[Any]:
    """The fingerprints of --baseline. UsageError for a file that is not a report."""
    from mo_loop.look.diagnostics.diagnostic import fingerprints_of

    if baseline is None:
        return set()
    try:
        document = json.loads(Path(baseline).read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"--baseline {baseline}: {reason_of(error)}", hint="check the path") from None
    except ValueError:
        document = None
    return fingerprints_of(document)


def _files(models: tuple[str, ...]) -> Iterator[str]:
    """The models; those of a folder and of a glob are sorted by name."""
    from mo_loop.batching.plan import local_models, unlisted

    for model in unlisted(models):
        found = () if is_url(model) else local_models(model)
        yield from sorted(found) or [model]  # without a match it is reported as a file that is not a model


def _reports(models: tuple[str, ...], options: ConvertOptions, debug: bool) -> Iterator[CheckReport]:
    """One report for each file; files that cannot be read and bugs of mo-loop are reported on stderr as well."""
    from mo_loop.extensions import collect_extensions
    from mo_loop.look.diagnostics.examine import examine

    loaded = collect_extensions(options.extensions, plugins=options.plugins)  # once for all models
    options = replace(options, extensions=loaded, plugins=False)
    for model in dict.fromkeys(_files(models)):
        with opened(model) as path:
            report = examine(path, options)
        report = replace(report, file=named(model))
        if report.refused is not None:
            message("error", str(report.refused))
        if report.trouble and debug:
            tell(report.trouble)
        if report.exit_code == 4:
            tell(f"{printable(model)}: this is a bug of mo-loop. Please report it with the output of --debug.")
        yield report


def _formatted(form: str, reports: list[CheckReport]) -> str:
    from mo_loop.look.diagnostics.diagnostic import as_json, as_markdown, lines_of
    from mo_loop.look.diagnostics.sarif import as_sarif

    if form in ("json", "sarif"):
        document = as_json(reports) if form == "json" else as_sarif(reports)
        return json.dumps(document, indent=1, ensure_ascii=False, default=str)
    return as_markdown(reports) if form == "markdown" else "\n".join(lines_of(reports, TERMINAL))


# -- codes


def code_table(form: str) -> str:
    """The table of all codes."""
    from mo_loop.look.diagnostics.codes import CODES

    if form == "sarif":
        raise UsageError("--codes has no format sarif", hint="each report contains its rules: --format sarif MODEL")
    if form == "json":
        known: dict[str, Any] = {code: vars(meaning) for code, meaning in CODES.items()}
        return json.dumps({"schema": "mo-loop codes", "version": 1, "codes": known}, indent=1)
    if form == "markdown":
        rows = [f"| {code} | {each.level} | {each.title} | {each.why} | {each.help} |" for code, each in CODES.items()]
        return "\n".join(["| code | level | meaning | why | what to do |", "|---|---|---|---|---|", *rows])
    return table([("code", "level", "meaning"), *((code, each.level, each.title) for code, each in CODES.items())])
