"""mo-loop convert."""

from __future__ import annotations

import gc
import os
import time
from typing import Any

import click

from mo_loop.cli.errors import reported, told_warnings
from mo_loop.cli.inspection import Inspection, listing
from mo_loop.cli.passes import PassOptions, pass_options


@click.command()
@click.argument("model", type=click.Path(), required=False, metavar="MODEL")
@click.option(
    "-o", "--output-model", "target", type=click.Path(), help="The .xml to write; the .bin goes beside it.  [required]"
)
@click.option(
    "--input", "inputs", help="Inputs as name[shape]{type}->value, separated by commas: x[1,3,?,224..512],rate->16000."
)
@click.option("--output", "outputs", help="Tensors that become the outputs, separated by commas.")
@click.option("--compress-to-fp16", is_flag=True, help="Store f32 weights as f16; the default is lossless.")
@click.option(
    "--unroll", type=click.IntRange(min=0), default=0, metavar="N",
    help="Write out loops of a known number of iterations up to N.",
)  # fmt: skip
@click.option("--strict", is_flag=True, help="Refuse what is otherwise assumed of a model with a warning.")
@click.option(
    "--sequence-io", type=click.Choice(["packed"]),
    help="Sequences at the boundary become two tensors, name.data and name.shapes.",
)  # fmt: skip
@click.option(
    "--dump", type=click.Path(file_okay=False), help="Write the graph as loaded and after every pass that changed it."
)
@click.option(
    "--extension", "extensions", metavar="FILE", multiple=True, type=click.Path(),
    help="A Python file with passes or translators; it is run. May be given more than once.",
)  # fmt: skip
@click.option("--no-plugins", is_flag=True, help="Leave out extensions that installed packages offer.")
@pass_options
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def command(
    context: click.Context,
    model: str | None,
    target: str | None,
    inputs: str | None,
    outputs: str | None,
    compress_to_fp16: bool,
    unroll: int,
    strict: bool,
    sequence_io: str | None,
    dump: str | None,
    extensions: tuple[str, ...],
    no_plugins: bool,
    debug: bool,
) -> None:
    """Convert the ONNX file MODEL to OpenVINO IR.

    \b
    mo-loop convert model.onnx -o out/model.xml
    mo-loop convert model.onnx -o out/model.xml --dump steps
    """
    options = context.ensure_object(PassOptions)
    with reported(debug), told_warnings():
        from mo_loop.convert import convert_model, save_model
        from mo_loop.extensions import gathered
        from transforms.pipelines import default_pipeline

        added = gathered(extensions, plugins=not no_plugins)
        if options.passes:
            click.echo(listing(options, added.arranged(default_pipeline())))
            return
        if model is None or target is None:
            raise _missing(context, "model" if model is None else "target")
        files = (model, target, os.path.splitext(target)[0] + ".bin")
        inside = Inspection(options.told(os.environ), lambda: added.arranged(default_pipeline()), files)
        start = time.perf_counter()
        with inside.shown():
            converted = convert_model(
                model, input=inputs, output=_names(outputs), dump=dump, extensions=added, plugins=False,
                config=inside.config, observers=inside.observers, stop_after=inside.options.stop_after,
                check_passes=inside.options.check_passes, unroll=unroll, strict=strict,
                sequence_io=sequence_io,
            )  # fmt: skip
            with inside.writing():
                save_model(converted, target, compress_to_fp16=compress_to_fp16)
        seconds = time.perf_counter() - start
        inside.save()
    click.echo(f"{target}: {_summary(converted, compress_to_fp16)}, {seconds:.2f} s")
    gc.freeze()  # the process ends here: what is left need not be searched for cycles, a fifth of a large conversion


def _missing(context: click.Context, name: str) -> click.MissingParameter:
    """What click says itself of a parameter that only --passes does without."""
    parameter = next(each for each in context.command.params if each.name == name)
    return click.MissingParameter(ctx=context, param=parameter)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _summary(model: Any, compressed: bool) -> str:
    counts: dict[str, int] = {}
    nodes = 0
    for graph in model.graph.scopes():
        nodes += len(graph)
        for node in graph.ordered():
            if node.bodies:
                counts[node.type] = counts.get(node.type, 0) + 1
    flow = "".join(f", {count} {kind}" for kind, count in sorted(counts.items()))
    return f"{nodes} layers{flow}, weights {'f16' if compressed else 'unchanged'}"
