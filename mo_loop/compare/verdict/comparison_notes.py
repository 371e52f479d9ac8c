"""The limits of a comparison with ONNX Runtime, in sentences for the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import version

import numpy as np

from mo_loop.compare.execution.processor import has_vnni, instruction_set
from mo_loop.compare.oracle.oracle import ONNX_RUNTIME
from mo_loop.compare.oracle.oracle_errors import EXACT, NOTED, OracleError, errors_in
from mo_loop.compare.results.array_comparison import Named
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import all_graphs
from mo_loop.graph import Graph
from mo_loop.transforms.low_precision.saturation import integer_layers


def notes_about(model: OnnxModel, converted: Graph, oracle: str, expected: Iterable[Named]) -> Iterator[str]:
    """`oracle` computed the `expected` outputs of the model, `converted` is the graph of the IR."""
    for error, nodes in _noted(model).items() if oracle == ONNX_RUNTIME else ():
        yield f"{nodes[0]}{f' and {len(nodes) - 1} more' if nodes[1:] else ''}: in ONNX Runtime {error.sentence}"
    yield from _on_integers(converted)
    values = [value for named in expected for _, value in named if isinstance(value, np.ndarray)]
    floats = [value for value in values if value.dtype.kind == "f" and value.size]
    if floats and all(np.isnan(value).all() for value in floats):
        yield "every expected number is NaN, so the comparison shows little: give other inputs"


def _noted(model: OnnxModel) -> dict[OracleError, list[str]]:
    """The nodes that ONNX Runtime can compute wrongly, and that no one else computes."""
    release = version("onnxruntime")
    found: dict[OracleError, list[str]] = {}
    for graph in all_graphs(model):
        for error, node in errors_in(graph.nodes):
            if error.treatment in (NOTED, EXACT) and error.is_in(release):
                found.setdefault(error, []).append(f"{node.op_type} {graph.path_of(node)}")
    return found


def _on_integers(graph: Graph) -> Iterator[str]:
    """With which instructions the CPU device multiplies integers of 8 bits."""
    layers = list(integer_layers(graph))
    if not layers:
        return
    many, where = sum(each.saturates for each in layers), "on processors without VNNI" if has_vnni() else "here"
    risk = f"; {many} of them may saturate {where} (ML508)" if many else ""
    yield (
        f"layers that multiply integers of 8 bits{f' with {instruction_set()}' if instruction_set() else ''}: "
        f"{len(layers)}{risk}; --quantization exact multiplies in f32"
    )
