"""mo-loop convert."""

from __future__ import annotations

import gc
import time
import warnings
from typing import Any

import click

from mo_loop.cli.errors import reported


@click.command()
@click.argument("model", type=click.Path())
@click.option(
    "-o", "--output-model", "target", required=True, type=click.Path(),
    help="The .xml to write; the .bin goes beside it.",
)  # fmt: skip
@click.option("--input", "inputs", help="Tensors that become the inputs, separated by commas.")
@click.option("--output", "outputs", help="Tensors that become the outputs, separated by commas.")
@click.option("--compress-to-fp16", is_flag=True, help="Store f32 weights as f16; the default is lossless.")
@click.option(
    "--dump", type=click.Path(file_okay=False), help="Write the graph as loaded and after every pass that changed it."
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def command(
    model: str,
    target: str,
    inputs: str | None,
    outputs: str | None,
    compress_to_fp16: bool,
    dump: str | None,
    debug: bool,
) -> None:
    """Convert the ONNX file MODEL to OpenVINO IR.

    \b
    mo-loop convert model.onnx -o out/model.xml
    mo-loop convert model.onnx -o out/model.xml --dump steps
    """
    with reported(debug), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        from mo_loop.convert import convert_model, save_model

        start = time.perf_counter()
        converted = convert_model(model, input=_names(inputs), output=_names(outputs), dump=dump)
        save_model(converted, target, compress_to_fp16=compress_to_fp16)
        seconds = time.perf_counter() - start
    for text in dict.fromkeys(str(each.message) for each in heard):
        click.echo(f"warning: {text}", err=True)
    click.echo(f"{target}: {_summary(converted, compress_to_fp16)}, {seconds:.2f} s")
    gc.freeze()  # the process ends here: what is left need not be searched for cycles, a fifth of a large conversion


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
