"""mo-loop view."""

import webbrowser
from contextlib import nullcontext
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import click

from mo_loop.batching.storage.locations import Location, is_url, place_of
from mo_loop.cli.conversion_options import fetched, named, opened, reading_options
from mo_loop.cli.diff import ignore_option
from mo_loop.cli.flag_options import GroupedCommand, message_options, option
from mo_loop.cli.output import message, reported, show, write
from mo_loop.conversion_limits import Limits, limited
from mo_loop.errors import UsageError
from mo_loop.support.flags import COMPARISON, FILES

if TYPE_CHECKING:
    from mo_loop.look.differences.changes import Aspect


@click.command(cls=GroupedCommand)
@click.argument("model", type=click.Path(), metavar="MODEL")
@click.argument("other", type=click.Path(), metavar="[OTHER]", required=False)
@option(
    "-o", "--output", "output", group=FILES, type=click.Path(), metavar="FILE",
    help="The page; - is standard output. Default: the name of MODEL with the ending .html, in the current folder.",
)
@option("--open", "opens", group=FILES, is_flag=True, help="Open the page in the browser.")
@option("--scope", group=COMPARISON, metavar="PATH", help="Show only this body and the bodies in it.")
@ignore_option
@option(
    "--tolerance", group=COMPARISON, type=click.FloatRange(min=0), default=0.0, metavar="X",
    help="Weights may differ by this part of the largest magnitude in the constant, 0.001 for example.",
)
@reading_options
@message_options("Do not print the name of the page.")
def command(
    model: str, other: str | None, output: str | None, opens: bool, scope: str | None, ignored: "tuple[Aspect, ...]",
    tolerance: float, allow_external: tuple[str, ...], limit: tuple[str, ...], quiet: bool, debug: bool,
) -> None:
    """Write a page that shows MODEL: its graph with the bodies of its control flow, and the port maps of these.

    MODEL is an .onnx file (- is standard input), the .xml of an IR, a .json or .txt file that convert --dump wrote, or
    the folder of a dump, which has its page already. With OTHER, a file of the same kind, the page shows both side by
    side, and the differences that mo-loop diff finds; with an .onnx file and its .xml, the layers of each node.

    The page is one file for a browser, and loads nothing. The content of weights is not in it, only the first elements.

    \b
    mo-loop view model.onnx --open
    mo-loop view model.xml -o page.html
    mo-loop view old.onnx new.onnx --ignore names
    mo-loop view model.onnx model.xml
    mo-loop view model.onnx --scope loop/body

    The exit code is 0 also if the models differ.
    """
    with reported(debug), limited(Limits.parse(limit)):
        from mo_loop.look.page import is_page
        from mo_loop.look.viewing import view

        _require_fitting(model, other, output, opens, ignored, tolerance)
        with opened(model) as path, nullcontext() if other is None else fetched(other) as more:
            found = view(path, more, ignore=ignored, scope=scope, tolerance=tolerance, allow_external=allow_external)
        if output == "-":
            write(found.html)
            return
        if output is not None and is_url(output):
            from mo_loop.batching.batch_options import write_content

            write_content(place_of(output), found.html)
            if not quiet:
                show(named(output))
            return
        own = Path(model, "index.html")
        target = Path(output) if output else own if is_page(own) else Path(_default(model, other))
        if target != own:
            found.save(target)
        if opens and not webbrowser.open(target.resolve().as_uri()):
            message("note", f"no browser was found; open {target} in one")
    if not quiet:
        show(str(target))


def _require_fitting(
    model: str, other: str | None, output: str | None, opens: bool, ignored: "tuple[Aspect, ...]", tolerance: float
) -> None:
    if other is None and (ignored or tolerance):
        option = "--ignore" if ignored else "--tolerance"
        raise UsageError(f"{option} is for the comparison of two models", hint=f"give another model: {model} OTHER")
    if other == "-":
        raise UsageError("only MODEL can be read from standard input", hint="save the other model in a file")
    if output == "-" and opens:
        raise UsageError("--open opens a file, not standard output", hint="give a file: -o page.html")
    if output is not None and is_url(output) and opens:
        raise UsageError(f"--open opens a local file, not {named(output)}", hint="give a file: -o page.html")


def _default(model: str, other: str | None) -> str:
    """The name of the page in the current folder."""
    given = [Location(each).name if is_url(each) else each for each in (model, other) if each is not None]
    names = [PurePath(each).stem for each in given]
    names[0] = "model" if model == "-" else names[0]
    return f"{'-'.join(names)}.html"
