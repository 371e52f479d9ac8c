"""Write the pages of docs/ that are made from the program itself, or tell which are out of date.

    python tools/pages.py            write them
    python tools/pages.py --check    exit 1 and name those that would change

A test holds them against the program, so that they stay true.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from inspect import cleandoc
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def operators() -> str:
    """docs/operators.md: what becomes of every operator."""
    import onnx

    from mo_loop.cli.ops import markdown
    from mo_loop.frontend.limits import of_all
    from mo_loop.frontend.operators import __doc__ as described
    from mo_loop.frontend.operators import handled, merged

    assert described is not None
    rows = merged(handled())
    kinds = "\n".join(f"- {name}: {text}" for name, text in _described(described))
    general = "\n".join(f"- {limit}" for limit in of_all())
    return OPERATORS.format(version=onnx.__version__, kinds=kinds, general=general, table=markdown(rows))


OPERATORS = """\
# Operators

What becomes of each ONNX operator, by the version of its domain (onnx {version}). `mo-loop ops` prints the same,
whole or for single operators, also as JSON:

    mo-loop ops Softmax Resize
    mo-loop ops --how refused --format json

{kinds}

The last column says what is known to be refused, or computed otherwise, of an operator that is translated: the
condition, and why. An unknown rank is refused wherever the axes depend on it. Of all operators:

{general}

Random configurations of single operators (`tools/fuzz_ops.py`) meet most of these, and fail on anything else. Functions
of the model itself are expanded as well; translators for operators of other domains can be added
([passes.md](passes.md)).

{table}
"""


def _described(text: str) -> list[tuple[str, str]]:
    """The list of kinds in the module's docstring."""
    from mo_loop.frontend.operators import HOW

    lines = [line.partition(" ") for line in text.splitlines()]
    return [(name, rest.strip().replace("`note`", "the note")) for name, _, rest in lines if name in HOW]


def commands() -> str:
    """docs/cli.md: what every command says of itself in --help."""
    import click

    from mo_loop.cli import COMMANDS, main

    context = click.Context(main, info_name="mo-loop")
    pages = []
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command is not None
        pages.append(_command(command, click.Context(command, info_name=name, parent=context)))
    return CLI.format(commands="\n".join(f"- [{name}](#mo-loop-{name}): {text}" for name, text in COMMANDS.items()),
                      pages="\n".join(pages))  # fmt: skip


CLI = """\
# The command line

{commands}

`mo-loop --version` prints the version, `-h` or `--help` behind any command what is written here. Results go to stdout,
everything else to stderr. Colours appear on a terminal only, and never where `NO_COLOR` is set.

| exit code | |
|---|---|
| 0 | ok |
| 1 | a check found something, a comparison a difference, or a batch had failures |
| 2 | bad input or usage |
| 3 | the model holds what the IR cannot express |
| 4 | a bug of mo-loop |
| 130, 143 | ended by Ctrl-C, by SIGTERM |

{pages}"""


def _command(command: Any, context: Any) -> str:
    """One command: its usage, its text, and its options as a table."""
    lines = [f"## {context.command_path}", "", "    " + command.get_usage(context).removeprefix("Usage: "), ""]
    for paragraph in cleandoc(command.help or "").split("\n\n"):
        is_fixed = paragraph.startswith("\b\n")
        lines += [f"    {line}" if is_fixed else line for line in paragraph.removeprefix("\b\n").splitlines()] + [""]
    lines += ["| option | |", "|---|---|"]
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None and record[1]:
            lines.append(f"| `{_cell(record[0])}` | {_cell(record[1])} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def codes() -> str:
    """docs/codes.md: every code of an error or a finding."""
    from mo_loop.cli.check import code_table

    return CODES_PAGE.format(table=code_table("markdown"))


CODES_PAGE = """\
# Codes

Every error has a code, and so has everything that `mo-loop check` finds. A code never changes its meaning. Errors stop
a conversion: ML2xx are about the input (exit code 2), ML3xx about what the IR cannot express (3), ML4xx are bugs of
mo-loop (4). Warnings tell of numbers that may differ, notes of costs and leftovers. `mo-loop check --codes` prints the
same.

{table}
"""


def migrating() -> str:
    """docs/migrating.md: the flags of the former tools and ours."""
    from mo_loop.cli.legacy_flags import TABLE

    lines = ["| flag of mo or ovc | here | |", "|---|---|---|"]
    for flag in TABLE:
        ours = f"`{_cell(flag.ours)}`" if flag.ours else "refused" if flag.is_refused else "passed over with a note"
        lines.append(f"| `{flag.name}` | {ours} | {_cell(flag.why)} |")
    return MIGRATING.format(table="\n".join(lines))


MIGRATING = """\
# From mo and ovc

Scripts go on as they are: put `mo-loop convert` in the place of `mo` or `ovc`. Flags may be written with underscores.

    mo  --input_model model.onnx --output_dir ir --data_type FP16
    ovc model.onnx --output_model ir/model.xml --input "x[1,3,?,224..512]" --compress_to_fp16=False

    mo-loop convert --input_model model.onnx --output_dir ir --data_type FP16
    mo-loop convert model.onnx --output_model ir/model.xml --input "x[1,3,?,224..512]" --compress_to_fp16=False

What is different:

- Weights stay as they are. ovc compresses f32 to f16 unless it is told `--compress_to_fp16=False`; here
  `--compress-to-fp16` asks for it, and the summary says what was done.
- A flag that would change nothing is an error (exit code 2), and so are flags that contradict each other.
- Exit codes tell what failed: 2 the input, 3 the model holds what the IR cannot express, 4 mo-loop itself.
- Only ONNX is read.
- In Python, `openvino.convert_model(path)` is `mo_loop.convert_model(path)`, and `openvino.save_model(model, xml)` is
  `mo_loop.save_model(model, xml)`, which does not compress unless it is told `compress_to_fp16=True`.
  `model.to_openvino()` gives the `openvino.Model`.

Every flag of both tools:

{table}
"""

PAGES: dict[str, Callable[[], str]] = {
    "operators.md": operators, "cli.md": commands, "migrating.md": migrating, "codes.md": codes,
}  # fmt: skip
"""Page -> what writes it."""


def stale() -> list[str]:
    """The names of pages that are not what the program would write."""
    return [name for name, make in PAGES.items() if _held(name) != make()]


def _held(name: str) -> str:
    path = ROOT / "docs" / name
    return path.read_text("utf-8") if path.exists() else ""


def main() -> int:
    """Write or check; 1 if a check found a page that is out of date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    found = stale()
    for name in found:
        if not options.check:
            (ROOT / "docs" / name).write_text(PAGES[name](), "utf-8")
        print(f"docs/{name}: {'out of date' if options.check else 'written'}")
    return int(options.check and bool(found))


if __name__ == "__main__":
    sys.exit(main())
