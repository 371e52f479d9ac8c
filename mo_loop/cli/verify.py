"""mo-loop verify."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mo_loop.batching.storage.locations import is_url
from mo_loop.cli.conversion_options import (
    conversion_options,
    fetched,
    named,
    opened,
    opened_inputs,
    options_of,
    require_local,
)
from mo_loop.cli.flag_options import (
    ByteSize,
    GroupedCommand,
    debug_option,
    flags,
    format_option,
    option,
    verbose_option,
)
from mo_loop.cli.output import (
    ReportFile,
    as_json,
    give,
    is_terminal,
    painted,
    printed_warnings,
    reported,
    table,
    terminal_width,
)
from mo_loop.cli.pass_options import pass_choice
from mo_loop.compare.batch_comparison import Comparing
from mo_loop.errors import UsageError
from mo_loop.support.flags import COMPARISON, FILES, PASSES, REPORTS
from mo_loop.target import ANY, GPU

if TYPE_CHECKING:
    from mo_loop.compare.results.report import Report

@click.command(cls=GroupedCommand)
@click.argument("model", type=click.Path(), metavar="MODEL")
@click.argument("ir", type=click.Path(), metavar="[IR]", required=False)
@flags(
    Comparing, "inputs", "sets", is_argument=True, defaults={"sets": 3},
    texts={
        "inputs": "A set of inputs: an .npz with arrays by tensor name, .npy files (NAME=FILE.npy), or a folder of .pb "
        "files as ONNX's tests have them. By default inputs are generated. Can be repeated.",
        "sets": "The number of sets of inputs that are generated. Up to two more have a dynamic dimension of size 0, "
        "if ONNX Runtime accepts it.",
    },
)
@option(
    "--sizes", group=FILES, metavar="SIZES",
    help='Sizes that inputs of the IR get before it runs, as by ov.Model.reshape: "x[8,3,320,?]". ONNX Runtime runs '
    "the model with inputs of any size.",
)
@option(
    "--steps", group=FILES, place=1, type=click.IntRange(min=1), default=4, show_default=True, metavar="N",
    help="The number of steps of each sequence, for an IR with states.",
)
@flags(Comparing, "seed", is_argument=True, texts={"seed": "The seed of the generated inputs."})
@option(
    "--save", group=FILES, type=click.Path(), metavar="DIR",
    help="Write the inputs, and the outputs of all sides, to this folder as .npz.",
)
@option(
    "--expected", group=COMPARISON, metavar="FILE", multiple=True, type=click.Path(),
    help="Outputs that are compared instead of those of ONNX Runtime: an .npz with arrays by tensor name, or a folder "
    "with output_0.pb. One FILE for each --input-data, in the same order. Outputs in the files of --input-data need no "
    "--expected.",
)
@option(
    "--custom-ops", group=COMPARISON, place=1, metavar="LIB", multiple=True, type=click.Path(),
    help="A library of custom operators that ONNX Runtime loads. Can be repeated.",
)
@flags(
    Comparing, "rtol", "atol", is_argument=True,
    texts={
        "rtol": "The relative tolerance of the outputs. If it is given, the outputs decide alone. By default it is "
        "1e-3 for f32, and the pieces of the IR decide where outputs are beyond it.",
        "atol": "The absolute tolerance of the outputs. If it is given, the outputs decide alone. By default it is "
        "1e-5 of the largest number of the output.",
    },
)
@option(
    "--tolerance", group=COMPARISON, place=1, metavar="NAME=RTOL,ATOL", multiple=True,
    help="The tolerances of one output, which decide alone. Can be repeated.",
)
@option(
    "--layers", group=COMPARISON, place=1, is_flag=True,
    help="Compare the pieces of the IR even if the outputs agree, and find the cause of a difference. If outputs "
    "differ only in the precision of --precision, the tensors in that precision are compared.",
)
@option(
    "--layers-memory", "--memory", "memory", group=COMPARISON, place=1, type=ByteSize(), metavar="SIZE",
    help="With --layers: the memory for the values of both sides, for example 4G.  [default: a quarter of the "
    "machine's]",
)
@option(
    "--call-timeout", "--timeout", "timeout", group=COMPARISON, place=1, type=click.FloatRange(min=1), default=600.0,
    show_default=True, metavar="SECONDS", help="End a call of a runtime that takes longer.",
)
@option("--device", group=COMPARISON, place=1, default="CPU", show_default=True, metavar="NAME",
        help="The device that runs the IR. Without IR, the model is converted for this device if it is a GPU, and for "
        "any device otherwise.")
@option(
    "--precision", group=COMPARISON, place=1, type=click.Choice(["f32", "f16", "bf16", "default"]), default="f32",
    show_default=True,
    help="Run the IR in this precision as well as in f32. The value default is the precision of the device.",
)
@option("--against", group=COMPARISON, place=1, type=click.Choice(["ovc"]), multiple=True,
        help="Compare the IR of this other converter as well.")
@conversion_options(
    "input", "output", "freeze", without=["device"],
    input='Inputs of the conversion, as for convert: "x[1,3,?,224..512]".',
    output="Tensors that become the outputs, separated by commas.",
    freeze="Make an input a constant, as for convert.",
)
@option("--passes", group=PASSES, is_flag=True,
        help="If outputs differ, find the pass that changed the numbers.")
@pass_choice
@option(
    "--dump", group=PASSES, type=click.Path(file_okay=False), metavar="DIR",
    help="Compare all tensors, also where outputs agree, and write a dump to DIR, as convert does: in its index.html "
    "every tensor has the colour of its difference, and loops have a plot by iteration. Implies --layers. With IR, the "
    "page shows the graph of the IR.",
)
@verbose_option
@debug_option
@format_option("text", "json", "markdown", "junit")
@option("-q", "--quiet", group=REPORTS, is_flag=True, help="Print no report; the exit code is the result.")
@click.pass_context
def command(
    context: click.Context, model: str, ir: str | None, inputs: tuple[str, ...], expected: tuple[str, ...],
    custom_ops: tuple[str, ...], tolerance: tuple[str, ...], form: str, report_file: ReportFile | None,
    quiet: bool, debug: bool, **settings: Any,
) -> None:
    """Compare the IR of an ONNX model with ONNX Runtime, output by output.

    Without IR, the model is converted with the given options. ONNX Runtime and OpenVINO run the same inputs, all sets
    one after another on one compiled model, forwards and backwards. The table has, for each output, the largest
    differences, the mean, the cosine, the number of elements beyond the tolerance, and the worst element.
    Where outputs differ, the IR is compared piece by piece: each piece gets the values of ONNX Runtime as its inputs.
    The report names the piece that differs, or says that every piece agrees, or what could not be decided.

    An IR with states runs step by step, from a reset for each set, and its states are compared too.

    \b
    mo-loop verify model.onnx
    mo-loop verify model.onnx model.xml --input-data a.npz --input-data b.npz
    mo-loop verify model.onnx --precision default --against ovc
    mo-loop verify model.onnx model.xml --sizes "x[8,3,320,320]"
    mo-loop verify model.onnx --layers --dump steps
    mo-loop verify model.onnx --save report --format markdown > report.md

    Exit code 1: the IR differs, or it is not decided whether it does, or OpenVINO cannot run it.
    """
    is_json = form == "json" and not quiet
    with reported(debug, as_json=is_json, writes=False, report_file=report_file), printed_warnings(quiet=quiet):
        from mo_loop.compare.verifying import verify

        options = options_of(context, device=GPU if settings["device"].startswith(GPU) else ANY)
        limit, save = settings.pop("timeout"), settings.pop("save")
        require_local({"--save": save, "--dump": settings["dump"]})
        with ExitStack() as stack:
            path = stack.enter_context(opened(model))
            written = None if ir is None else stack.enter_context(fetched(ir))
            files = stack.enter_context(opened_inputs(inputs))
            results = stack.enter_context(opened_inputs(expected))
            report = verify(
                path, written, inputs=[each for each, _ in files], expected=[each for each, _ in results],
                options=options, limit=limit, save=None if save is None else Path(save), custom_ops=custom_ops,
                tolerances=_tolerances(tolerance), **settings,
            )
        report = _as_given(report, model, ir, dict(files))
        give(lambda wanted: _formatted(report, wanted), form, report_file, quiet=quiet)
    sys.exit(report.exit_code)


def _tolerances(texts: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    """The tolerances of NAME=RTOL,ATOL by name. UsageError for another text."""
    found = {}
    for text in texts:
        name, _, numbers = text.rpartition("=")
        try:
            rtol, atol = (float(number) for number in numbers.split(","))
        except ValueError:
            name = ""
        if not name or not (rtol >= 0 and atol >= 0):
            raise UsageError(f"--tolerance {text} is not of the form NAME=RTOL,ATOL", hint="for example y=1e-3,1e-5")
        found[name] = (rtol, atol)
    return found


def _as_given(report: Report, model: str, ir: str | None, files: dict[str, str]) -> Report:
    """The report with URLs in the places of the files that were brought from there."""
    if is_url(model):
        report = replace(report, model=named(model))
    if ir is not None and is_url(ir):
        report = replace(report, ir=named(ir))
    return replace(report, sets=tuple(replace(each, name=files.get(each.name, each.name)) for each in report.sets))


def _formatted(report: Report, form: str) -> str:
    from mo_loop.compare.results.report_formats import as_junit, as_markdown, as_text

    if form == "json":
        return as_json(report)
    if form == "markdown":
        return as_markdown(report)
    if form == "junit":
        return as_junit(report)
    text = as_text(report, table, terminal_width())
    if not is_terminal(sys.stdout):
        return text
    head, _, rest = text.partition("\n")
    return f"{painted(head, bold=True, fg='green' if report.passed else 'red')}\n{rest}"
