"""mo-loop diff."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import click

from mo_loop.cli.error_output import reported
from mo_loop.cli.file_checks import fetched, named
from mo_loop.cli.flag_options import GroupedCommand, debug_option, format_option, option, verbose_option
from mo_loop.cli.model_options import allow_external_option, limit_option
from mo_loop.cli.output import painted, show
from mo_loop.conversion_limits import Limits, limited
from mo_loop.support.flags import COMPARISON, REPORTS

ASPECTS = ("names", "shapes", "weights", "metadata")


@click.command(cls=GroupedCommand)
@click.argument("old", type=click.Path(), metavar="A")
@click.argument("new", type=click.Path(), metavar="B")
@option(
    "--ignore", "ignored", group=COMPARISON, type=click.Choice(ASPECTS), multiple=True,
    help="What does not count as a difference. Can be given several times.",
)  # fmt: skip
@option("--scope", group=COMPARISON, metavar="PATH", help="Compare only this body and the bodies in it.")
@option(
    "--tolerance", group=COMPARISON, type=click.FloatRange(min=0), default=0.0, metavar="X",
    help="Weights may differ by this part of the largest magnitude in the constant, 0.001 for example.",
)  # fmt: skip
@format_option("text", "json")
@allow_external_option()
@limit_option("the command")
@option("--all", "complete", group=REPORTS, is_flag=True, help="List every node and every detail in the text.")
@option(
    "-q", "--quiet", group=REPORTS, is_flag=True,
    help="Print nothing: the exit code tells whether there is a difference.",
)  # fmt: skip
@verbose_option
@debug_option
def command(
    old: str,
    new: str,
    ignored: tuple[str, ...],
    scope: str | None,
    tolerance: float,
    form: str,
    allow_external: tuple[str, ...],
    limit: tuple[str, ...],
    complete: bool,
    quiet: bool,
    debug: bool,
) -> None:
    """Compare two models node by node, with the bodies of their control flow.

    A and B are two .onnx files, two .xml files of an IR, or two files that convert --dump wrote (.json or .txt).

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

    Exit code 1: there is a difference.
    """
    with reported(debug, as_json=form == "json" and not quiet, writes=False), limited(Limits.parse(limit)):
        from mo_loop.look.differences.comparing import diff

        with fetched(old) as one, fetched(new) as other:
            found = diff(
                one, other, ignore=ignored, scope=scope, tolerance=tolerance, allow_external=allow_external
            )
        found = replace(
            found, old=replace(found.old, source=named(old)), new=replace(found.new, source=named(new))
        )
        if quiet:
            text = ""
        elif form == "json":
            text = json.dumps(found.to_dict(), indent=1, ensure_ascii=False)
        else:
            text = "\n".join(found.lines(_painted, complete=complete))
    if text:
        show(text)
    sys.exit(0 if found.equal else 1)


def _painted(text: str, colour: str) -> str:
    return painted(text, bold=True) if colour == "bold" else painted(text, fg=colour)
