"""mo-loop verify."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace
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
from mo_loop.cli.flag_options import GroupedCommand, debug_option, flags, format_option, option, verbose_option
from mo_loop.cli.output import ReportFile, as_json, give, painted, printed_warnings, reported, table, terminal_width
from mo_loop.compare.verify_options import VerifyOptions
from mo_loop.errors import UsageError
from mo_loop.support.flags import REPORTS
from mo_loop.target import ANY, GPU

if TYPE_CHECKING:
    from mo_loop.compare.results.report import Report

@click.command(cls=GroupedCommand)
@click.argument("model", type=click.Path(), metavar="MODEL")
@click.argument("ir", type=click.Path(), metavar="[IR]", required=False)
@flags(VerifyOptions, is_argument=True)
@conversion_options(
    "input", "output", "freeze", without=["device"],
    input='Inputs of the conversion, as for convert: "x[1,3,?,224..512]".',
    output="Tensors that become the outputs, separated by commas.",
    freeze="Make an input a constant, as for convert.",
)
@verbose_option
@debug_option
@format_option("text", "json", "markdown", "junit")
@option("-q", "--quiet", group=REPORTS, is_flag=True, help="Print no report; the exit code is the result.")
@click.pass_context
def command(
    context: click.Context, model: str, ir: str | None, inputs: tuple[str, ...], expected: tuple[str, ...],
    tolerances: tuple[str, ...], form: str, report_file: ReportFile | None, quiet: bool, debug: bool, **settings: Any,
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
        require_local({"--save": settings["save"], "--dump": settings["dump"]})
        with ExitStack() as stack:
            path = stack.enter_context(opened(model))
            written = None if ir is None else stack.enter_context(fetched(ir))
            files = stack.enter_context(opened_inputs(inputs))
            results = stack.enter_context(opened_inputs(expected))
            report = verify(
                path, written, inputs=[each for each, _ in files], expected=[each for each, _ in results],
                options=options, tolerances=_tolerances(tolerances), **settings,
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

    forms = {"json": as_json, "markdown": as_markdown, "junit": as_junit}
    if form in forms:
        return forms[form](report)
    width = terminal_width()
    text = as_text(report, table, width)
    if width is None:
        return text
    head, _, rest = text.partition("\n")
    return f"{painted(head, bold=True, fg='green' if report.passed else 'red')}\n{rest}"
