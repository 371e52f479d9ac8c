"""Write the pages of docs/ that are generated from the program, or list those that are out of date.

    python tools/pages.py            write them
    python tools/pages.py --check    exit 1 and list those that would change

A test compares the pages with the program.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from inspect import cleandoc
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def operators() -> str:
    """docs/operators.md: the translation of every operator."""
    import onnx

    from mo_loop.cli.ops import markdown
    from mo_loop.frontend.operators import __doc__ as described
    from mo_loop.frontend.operators import handled, limits_of, merged

    assert described is not None
    rows = merged(handled())
    kinds = "\n".join(f"- {name}: {text}" for name, text in _described(described))
    general = "\n".join(f"- {limit}" for limit in limits_of("*"))
    return OPERATORS.format(version=onnx.__version__, kinds=kinds, general=general, table=markdown(rows))


OPERATORS = """\
# Operators

The table shows how each ONNX operator is converted, by the version of its domain (onnx {version}). The operators of
`com.microsoft`, and some of the default domain, are those of ONNX Runtime. Models that were exported for OpenVINO have
operators of `org.openvinotoolkit`, and models of early PyTorch have ATen. `mo-loop ops` prints the table, for all or
for some operators, as text, JSON or Markdown:

    mo-loop ops Softmax Resize
    mo-loop ops --how refused --format json
    mo-loop ops --how extension --extension file.py     # operators of extensions, which this page does not list

{kinds}

The last column lists uses of an operator that are refused, or that give other numbers than ONNX, with the reason. An
unknown rank is refused wherever the axes depend on it, unless other nodes determine it or the model declares it. If
the model's opset does not have an operator, or has it in another form, the operator of a version that has it is used,
with a warning ([codes.md](codes.md), ML516 and ML517); `--strict` refuses it. These limits apply to all operators:

{general}

`tools/fuzz_ops.py` tests random configurations of single operators; it accepts these limits and nothing else. Functions
of a model are expanded. Translators for operators of other domains can be added ([passes.md](passes.md)).

{table}
"""


def _described(text: str) -> list[tuple[str, str]]:
    """The list of kinds in the module's docstring."""
    from mo_loop.frontend.operators import HOW

    lines = [line.partition(" ") for line in text.splitlines()]
    return [(name, rest.strip().replace("`note`", "the note")) for name, _, rest in lines if name in HOW]


def commands() -> str:
    """docs/cli.md: the --help of every command."""
    import click

    from mo_loop.cli import COMMANDS, EXIT_CODES, main

    context = click.Context(main, info_name="mo-loop")
    pages = []
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command is not None
        pages.append(_command(command, click.Context(command, info_name=name, parent=context)))
    return CLI.format(
        commands="\n".join(f"- [{name}](#mo-loop-{name}): {text}" for name, text in COMMANDS.items()),
        exit_codes="\n".join(f"| {code} | {text} |" for code, text in EXIT_CODES.items()), pages="\n".join(pages),
    )


CLI = """\
# The command line

{commands}

`mo-loop MODEL` is short for `mo-loop convert MODEL`. `mo-loop -V` prints the version; `-h` or `--help` after a command
prints the most used options, `--help-all` the text on this page. Results go to stdout, everything else to stderr.
Colours appear only on a terminal, and never if `NO_COLOR` is set.

| exit code | meaning |
|---|---|
{exit_codes}

Documents in JSON have the keys `schema`, which names its kind, and `version`, which increases when a key is
removed or changes its meaning. [schemas/mo-loop.json](schemas/mo-loop.json) is the JSON schema of all of them. An error
of a command with `--format json` is a document as well (`mo-loop error`), on stdout.

`--format` is the format of what a command prints, `--report FILE` writes the same to a file as well, in the format of
its ending: JSON, Markdown (`.md`), JUnit XML (`.xml`) or SARIF (`.sarif`).

Element types have the names that OpenVINO gives them, in all commands and documents: `f32`, `f16`, `i64`, `boolean`.
Options also understand the names of numpy and ONNX: `float32`, `FLOAT`, `tensor(float)`.

{pages}"""


def _command(command: Any, context: Any) -> str:
    """One command: its usage, its text, and a table of options for each group of --help."""
    from mo_loop.cli.flag_options import GroupedCommand

    lines = [f"## {context.command_path}", "", "    " + command.get_usage(context).removeprefix("Usage: "), ""]
    for paragraph in cleandoc(command.help or "").split("\n\n"):
        is_fixed = paragraph.startswith("\b\n")
        lines += [f"    {line}" if is_fixed else line for line in paragraph.removeprefix("\b\n").splitlines()] + [""]
    groups = command.groups(context) if isinstance(command, GroupedCommand) else {"": _records(command, context)}
    for title, records in groups.items():
        shown = [(name, text.replace("[x", "\\[x")) for name, text in records if "--help" not in name]
        if not shown:
            continue
        lines += [*([f"{title}:", ""] if title else []), "| option | effect |", "|---|---|"]
        lines += [f"| `{_cell(name)}` | {_cell(text)} |" for name, text in shown] + [""]
    return "\n".join(lines)


def _records(command: Any, context: Any) -> list[tuple[str, str]]:
    """The options and their texts; arguments have none."""
    found = [each.get_help_record(context) for each in command.params]
    return [each for each in found if each is not None and each[1]]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def codes() -> str:
    """docs/codes.md: every code of an error, a warning or a note."""
    from mo_loop.cli.check import code_table

    return CODES_PAGE.format(table=code_table("markdown"))


CODES_PAGE = """\
# Codes

Every error, and every warning and note of `mo-loop check`, has a code. A code never changes its meaning. Errors stop a
conversion: ML2xx mean wrong input (exit code 2), ML3xx something that the IR cannot express (3), ML4xx a bug in mo-loop
(4). A warning means that numbers may differ; a note reports a cost or an unused part. `mo-loop check --codes` prints
the same table.

{table}
"""


def limits() -> str:
    """docs/limits.md: how much a model may make a conversion do."""
    from dataclasses import fields

    from mo_loop.conversion_limits import DEFAULT, shown

    lines = ["| name | default | code | limit of | reason |", "|---|---|---|---|---|"]
    for each in fields(DEFAULT):
        about = each.metadata
        value = shown(getattr(DEFAULT, each.name), about["kind"])
        lines.append(f"| `{each.name}` | {value} | {about['code']} | {about['text']} | {about['why']} |")
    return LIMITS.format(table="\n".join(lines))


LIMITS = """\
# Limits

A small file can describe unlimited work: functions that call others twice double the nodes with each level, and a
sparse tensor of a few bytes can be huge as a dense one. So a conversion has limits, which no known model exceeds. A
model that exceeds one is refused with the code of the limit and exit code 3, before the work is done. The error names
the option that raises the limit:

    mo-loop convert model.onnx --limit nodes=5000000 --limit time=10m

`convert`, `batch`, `check`, `verify`, `reduce`, `inspect`, `diff` and `view` have the option. Reading an .xml has the
limits of its bytes, of nodes, nesting, names and time. Bytes can end in K, M, G or T (powers of 1024), time in s, m or
h. In Python:

    mo_loop.convert_model("model.onnx", limits={{"folded_bytes": "4G", "time": "10m"}})

{table}

Only a separate process can limit time and memory in all cases: `mo-loop batch` has `--timeout` and `--memory`.
"""


def migrating() -> str:
    """docs/migrating.md: the flags of mo and ovc, and the options here."""
    from mo_loop.cli.legacy_flags import TABLE

    lines = ["| flag of mo or ovc | here | remark |", "|---|---|---|"]
    for flag in TABLE:
        ours = f"`{_cell(flag.ours)}`" if flag.ours else "refused" if flag.is_refused else "ignored with a note"
        lines.append(f"| `{flag.name}` | {ours} | {_cell(flag.why)} |")
    return MIGRATING.format(table="\n".join(lines))


MIGRATING = """\
# From mo and ovc

In scripts, replace `mo` or `ovc` by `mo-loop convert`. Flags can be written with underscores or dashes.

    mo  --input_model model.onnx --output_dir ir --data_type FP16
    ovc model.onnx --output_model ir/model.xml --input "x[1,3,?,224..512]" --compress_to_fp16=False

    mo-loop convert --input_model model.onnx --output_dir ir --data_type FP16
    mo-loop convert model.onnx --output_model ir/model.xml --input "x[1,3,?,224..512]" --compress_to_fp16=False

Differences:

- Weights keep their precision. ovc compresses f32 to f16 unless `--compress_to_fp16=False` is given; here
  `--compress-to-fp16` switches compression on, and the summary reports it.
- A flag without effect is an error (exit code 2; for batches see docs/batch.md), and so are flags that contradict each
  other.
- The exit code shows the kind of failure: 2 wrong input, 3 something that the IR cannot express, 4 a bug in mo-loop.
- Only ONNX models are read.
- The IR may be given other sizes after the conversion, as that of ovc: [sizes.md](sizes.md).
- In Python, `openvino.convert_model(path)` is `mo_loop.convert_model(path)`, and `openvino.save_model(model, xml)` is
  `mo_loop.save_model(model, xml)`, which compresses only with `compress_to_fp16=True`.
  `model.to_openvino()` gives the `openvino.Model`.

Every flag of both tools:

{table}
"""


def runtime() -> str:
    """docs/runtime.md: the errors of the devices, and what avoids them."""
    from mo_loop.target import ARM, CPU, GPU, MEASURED, SEVERITIES
    from tools.gap_table import GAPS

    of = {device: [gap for gap in GAPS if gap.device == device] for device in (CPU, ARM, GPU)}
    sections = []
    for severity in SEVERITIES:
        if avoided := [gap for gap in of[CPU] if gap.severity == severity and gap.rule]:
            sections.append(f"## {severity.capitalize()}\n\n{_gap_rows(avoided)}")
    left = [f"- {_sentence(gap)} ({gap.severity}; `{gap.id}`)" for gap in GAPS if not gap.rule]
    parts = {"sections": "\n\n".join(sections), "left": "\n".join(left), "costs": "\n".join(_cost_rows())}
    parts |= {"arm": _gap_rows(of[ARM]), "gpu": _gap_rows(of[GPU])}
    parts["suite"] = "\n".join(_suite_rows())
    return RUNTIME.format(first=MEASURED[0], last=MEASURED[-1], count=len(MEASURED), **parts)


RUNTIME = """\
# Errors of the CPU device, and the operations that avoid them

These errors were measured on the CPU device with OpenVINO {first} to {last} ({count} releases), with the f32 precision
hint, several inferences on one compiled model, and AVX-512; with 2024.6.0, 2025.4.1 and 2026.4.1 also without AVX-512
(AVX2), and without AVX2 (SSE4.1). An error without releases in brackets occurs in all of them. An error with a kind of
processor in brackets occurs on this kind alone.

Each error names the rule that avoids it (`avoids` of a pass, `AVOIDS` of a family of translators), and in brackets
its probe: a small graph in `tests/runtime/probes` that shows the error. `tools/probe_runtime.py` runs the probes on a
release and lists the rules that it does not need. `make probes` runs them on all releases, with and without each rule.

{sections}

## Errors of the CPU device on ARM

[devices.md](devices.md) says how they were measured. Without a remark they are avoided in every IR.

{arm}

## Errors of the GPU device

{gpu}

## Not avoided

{left}

## Forms for known sizes

An IR may be given other sizes than the model declares ([sizes.md](sizes.md)). A form that is right for known sizes
alone follows if an `If` on the sizes has a form for any sizes too. Otherwise the IR checks the sizes: a `VariadicSplit`
has no result for other sizes, at `reshape` for static shapes, else at the inference, with two threads or more. "Slower"
is the time at another size, as a multiple of the form for that size: with static shapes, and with dynamic dimensions.

| form | depends on | other sizes | slower |
|---|---|---|---|
| several steps in an iteration (`StepsPerIteration`) | steps, sizes of states | follows | 1.4 to 2.5, 6 |
| up to 16 steps without a loop (`StepsPerIteration`) | steps, sizes of states | follows | 2.2 to 2.5 (100 steps) |
| steps of `while` loops, and those that stay as they are | nothing | follows: one form (0.9 to 1.08) | |
| operations on all steps at once (`VectorizeLoops`) | steps, sizes | follows | 1.0, 1.4 |
| chunks of linear attention (`VectorizeLoops`) | steps, sizes | follows | 15, 40 (of 0.07 ms) |
| a trip count that is computed from `Shape` | steps | follows | 8, 23 (of 0.06 ms) |
| a trip count that is a number in the file | nothing | follows: it stays this number | |
| LSTM, GRU and RNN of ONNX | steps, batch | follows | 1.0, 1.1 |
| loops that became recurrent cells (`FuseRecurrentCells`) | steps, batch | follows | |
| such loops whose weights are multiplied with an input | number of features | checked: the model refuses others too | |
| `ArgMax` and `TopK` of short rows: a stable search | length, for speed alone | follows | |
| decision trees: one of four forms | number of rows, for speed alone | follows | |
| `SplitToSequence` | number of the elements | checked: the graph has it as a number | |
| lists of tensors (`StackSequences`) | which elements have equal sizes | checked: they stay equal | |
| `Squeeze` without axes | which sizes are 1 | checked: the rank follows from them | |
| `If` on a size, with branches of different ranks | the size | checked: the branch is chosen at conversion | |
| `--unroll` (`UnrollLoops`) | steps | checked: the loop has become copies of its body | |
| `LowLatency2` | one step, sizes of states | checked: variables have shapes of their own | |
| `--static`, models that convert for known sizes alone | all sizes | checked | |

## The backend test suite of ONNX on older releases

These cases give the expected results on the newest release, and not on an older one. They were converted for the older
release and all later ones (`tools/conformance.py --runtime`). `tests/conformance/expectations.toml` names them.

| release | cases | result | reason |
|---|---|---|---|
{suite}

## OpenVINO 2023.3

The last release with the Model Optimizer is not a target. Results of IR for all targets on 2023.3.0:

| | right | not right |
|---|---|---|
| 102 probes | 99 | 3 |
| 198 random models with control flow | 185 | 7 wrong, 6 not read |
| 2,033 cases of the backend suite of ONNX | 1,733, which is 99 fewer than on 2024.6.0 | 300 |

This release lacks

- operations of opsets 14 and 15, because its newest one is 13: `BitwiseLeftShift` and `BitwiseRightShift` (also in the
  exact `ReduceMax` of i32), `ScatterNDUpdate` with a reduction;
- the element types f8e4m3, f8e5m2, f8e8m0, f4e2m1 and u2, and inputs of i4 and u4;
- numpy 2: its Python package needs numpy 1.

## Costs of the rules

`--target` leaves out the rules that no release of the target needs. `tools/rule_costs.py` measured the others on the
exported models of `tests/models`, converted for all releases and run on the newest one, with and without each rule. The
columns are

- the operations that a rule adds to its probes;
- the models that it changes, and the operations and bytes that it adds to them (mean and most);
- the shortest time of an inference, relative to the time without the rule (geometric mean and most);
- the models that are wrong or fail without it, which are not timed.

Bytes are those that the added operations write in one inference (in a body: in one iteration), without views. A
dimension that the inputs do not determine counts as 1. The number is below 0 where a view replaces a copy.

| rule | operations in probes | models | operations | bytes | time | wrong without it |
|---|---|---|---|---|---|---|
{costs}
"""


def _suite_rows() -> list[str]:
    from tests.conformance.expectations import read

    groups = sorted((each for each in read().groups if each.runtime), key=lambda each: (each.runtime, -len(each.cases)))
    return [f"| {each.runtime} | {len(each.cases)} | {each.result} | {_cell(each.reason)} |" for each in groups]


def _cost_rows() -> list[str]:
    found = json.loads((ROOT / "tests" / "runtime" / "rule_costs.json").read_text("utf-8"))
    return [_cost_row(rule, cost) for rule, cost in found.items()]


def _cost_row(rule: str, cost: dict[str, Any]) -> str:
    on_probes = "" if cost["on_probes"] is None else f"{cost['on_probes']:g}"
    operations, written = (" / ".join(map(str, cost[key])) for key in ("operations", "bytes"))
    ratio = f"{cost['ratio']:.2f} / {cost['largest_ratio']:.2f}" if cost["timed"] else ""
    wrong = cost["models"] - cost["timed"] or ""
    return f"| `{rule}` | {on_probes} | {cost['models'] or ''} | {operations} | {written} | {ratio} | {wrong} |"


def _gap_rows(gaps: Sequence[Any]) -> str:
    if not gaps:
        return "No rule avoids an error of this device alone."
    return "\n".join(["| error of the runtime | written instead | by |", "|---|---|---|", *map(_gap_row, gaps)])


def _gap_row(gap: Any) -> str:
    by = f"`{gap.rule}`" if " " not in gap.rule else gap.rule
    by += f", with `--device {gap.device}` alone" if gap.alone else ""
    return f"| {_sentence(gap)} (`{gap.id}`) | {_cell(gap.form)} | {by} |"


def _sentence(gap: Any) -> str:
    """The error, with its releases and processors if they are not all."""
    from mo_loop.target import Processor

    kinds: dict[Any, list[str]] = {}
    for processor in Processor:
        kinds.setdefault(gap.releases(processor), []).append(processor.value)
    spans = [(_span(releases), " and ".join(names)) for releases, names in kinds.items() if releases is not None]
    if len(kinds) == 1:
        shown = spans[0][0]
    else:
        shown = "; ".join(f"{names}{span and f': {span}'}" for span, names in spans)
    return _cell(gap.sentence) + (f" [{shown}]" if shown else "")


def _span(releases: Any) -> str:
    parts = (("since", releases.since), ("up to", releases.until))
    return ", ".join(f"{word} {release}" for word, release in parts if release)


PAGES: dict[str, Callable[[], str]] = {
    "operators.md": operators, "cli.md": commands, "migrating.md": migrating, "codes.md": codes, "limits.md": limits,
    "runtime.md": runtime,
}
"""Page -> the function that writes it."""


def stale() -> list[str]:
    """The names of pages that differ from what the program writes."""
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
