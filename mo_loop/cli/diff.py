"""mo-loop diff."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mo_loop.cli.conversion_options import fetched, named, reading_options
from mo_loop.cli.flag_options import GroupedCommand, format_option, message_options, option
from mo_loop.cli.output import TERMINAL, ReportFile, as_json, give, reported
from mo_loop.conversion_limits import Limits, limited
from mo_loop.errors import UsageError
from mo_loop.support.flags import COMPARISON, REPORTS

if TYPE_CHECKING:
    from mo_loop.look.differences.changes import Aspect

ASPECTS = ("names", "shapes", "weights", "metadata")

ignore_option = option(
    "--ignore", "ignored", group=COMPARISON, type=click.Choice(ASPECTS), multiple=True,
    help="Ignore these differences. Can be repeated.",
)


@click.command(cls=GroupedCommand)
@click.argument("old", type=click.Path(), metavar="A")
@click.argument("new", type=click.Path(), metavar="B")
@ignore_option
@option("--scope", group=COMPARISON, metavar="PATH", help="Compare only this body and the bodies in it.")
@option(
    "--tolerance", group=COMPARISON, type=click.FloatRange(min=0), default=0.0, metavar="X",
    help="Weights may differ by this part of the largest magnitude in the constant, 0.001 for example. It does not "
    "matter then whether an IR stores them as f16.",
)
@format_option("text", "json")
@reading_options
@option("--all", "complete", group=REPORTS, is_flag=True, help="List every node and every detail in the text.")
@message_options("Print nothing: the exit code is the result.")
def command(
    old: str, new: str, ignored: "tuple[Aspect, ...]", scope: str | None, tolerance: float, form: str,
    report_file: ReportFile | None, allow_external: tuple[str, ...], limit: tuple[str, ...], complete: bool,
    quiet: bool, debug: bool,
) -> None:
    """Compare two models node by node, with the bodies of their control flow.

    A and B are two .onnx files, two .xml files of an IR, or two files that convert --dump wrote (.json or .txt). For
    an .onnx file and the .xml of its IR, the output lists the layers of each node.

    Nodes are matched by name and by structure, so that renamed and renumbered nodes are found again. The output lists
    by scope the nodes that were added (+), removed (-) and changed (~): operators, attributes, inputs that read
    another value, port maps of Loop, Scan, TensorIterator and If (slices, back edges), types, shapes and weights, and
    the inputs, outputs, opsets and metadata of the model.

    \b
    mo-loop diff old.onnx new.onnx
    mo-loop diff old.xml new.xml --ignore names --ignore metadata
    mo-loop diff fp32.xml fp16.xml --tolerance 0.001
    mo-loop diff old.xml new.xml --scope loop/body --all
    mo-loop diff steps/010_LoopToTI.json steps/066_PortRenumbering.json
    mo-loop diff model.onnx model.xml

    Exit code 1: there is a difference; 0 for an .onnx file and an IR.
    """
    is_json = form == "json" and not quiet
    with reported(debug, as_json=is_json, writes=False, report_file=report_file), limited(Limits.parse(limit)):
        from mo_loop.look.differences.comparing import Difference, diff
        from mo_loop.look.layer_map import LayerMap, layer_map
        from mo_loop.look.records.opening import kind_of
        from mo_loop.look.records.structure import IR, ONNX

        with fetched(old) as one, fetched(new) as other:
            kinds = [kind_of(Path(each)) for each in (one, other)]
            if sorted(kinds) == [IR, ONNX]:
                _require_no_comparison(ignored, tolerance, quiet and report_file is None)
                model, ir = (one, other) if kinds[0] == ONNX else (other, one)
                found: LayerMap | Difference = layer_map(model, ir, scope=scope, allow_external=allow_external)
            else:
                found = diff(
                    one, other, ignore=ignored, scope=scope, tolerance=tolerance, allow_external=allow_external
                )
        sides = (found.model, found.ir) if isinstance(found, LayerMap) else (found.old, found.new)
        for side, given in zip(sides, (new, old) if kinds == [IR, ONNX] else (old, new), strict=True):
            side.source = named(given)
        give(
            lambda wanted: as_json(found) if wanted == "json" else found.lines(TERMINAL, complete=complete),
            form, report_file, quiet=quiet,
        )
    sys.exit(int(isinstance(found, Difference) and not found.equal))


def _require_no_comparison(ignored: "tuple[Aspect, ...]", tolerance: float, quiet: bool) -> None:
    given = {"--ignore": bool(ignored), "--tolerance": bool(tolerance), "--quiet": quiet}
    option = next((each for each, is_given in given.items() if is_given), None)
    if option is not None:
        raise UsageError(f"{option} is for the comparison of two models of one kind", hint=f"leave out {option}")
