"""Why outputs differ, in one sentence with its numbers: rounding, saturation, an error of the runtime, or a fault;
and the limits of a comparison with ONNX Runtime, in sentences for the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np

from mo_loop.compare.execution.processor import has_vnni, instruction_set
from mo_loop.compare.oracle.oracle import ONNX_RUNTIME
from mo_loop.compare.oracle.oracle_errors import EXACT, NOTED, OracleError, errors_in
from mo_loop.compare.results.array_comparison import AMPLIFIED, Named
from mo_loop.compare.results.report import DIFFERS, Side
from mo_loop.compare.verdict.deciding import is_of_runtime
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import all_graphs
from mo_loop.graph import Graph
from mo_loop.options import ConvertOptions
from mo_loop.transforms.low_precision.weights import integer_layers
from mo_loop.transforms.pipelines import avoided_gaps


def cause_of(
    side: Side, layers: Any, graph: Graph, options: ConvertOptions, run: Callable[[ConvertOptions], Side]
) -> str:
    """The cause of the difference of a side; empty if it has none, or fails.

    `layers` is the answer of `--layers`, `options` are those of the conversion. `run` runs the model converted with
    other options on the same sets.
    """
    rounded = [row for row in side.worst if row.result.kind == AMPLIFIED]
    if side.passed:
        return f"rounding: {rounded[0].result}" if rounded else ""
    if side.status != DIFFERS:
        return ""
    size = f"the largest relative difference is {_largest(side)}"
    found = list(integer_layers(graph))
    other = None if not found or options.quantization == "exact" else run(replace(options, quantization="exact"))
    if other is not None and other.passed:
        many = sum(each.saturates for each in found)
        numbers = f"{size} by default, {_largest(other)} with --quantization exact"
        if many and not has_vnni():
            return (
                f"saturation on this processor: {instruction_set()} adds products of 8 bits in 16 bits, which {many} "
                f"of {len(found)} layers may exceed (ML508); {numbers}"
            )
        return f"steps of the quantisation in {len(found)} layers: {numbers}"
    if is_of_runtime(layers):
        disabled = () if options.config is None else options.config.disabled
        avoided = ", ".join(gap.id for gap in avoided_gaps() if gap.rule in disabled)
        known = f"one of {avoided}, whose rules are disabled" if avoided else "docs/runtime.md does not have it"
        return f"an error of the runtime: the tensors agree when each is computed alone; {known}"
    where = getattr(layers, "brief", "")
    return f"a fault in {where}" if where else f"a fault: {size}"


def _largest(side: Side) -> str:
    return f"{max((row.result.largest_rel for row in side.rows), default=0.0):.3g}"


def notes_about(model: OnnxModel, converted: Graph, oracle: str, expected: Iterable[Named]) -> Iterator[str]:
    """`oracle` computed the `expected` outputs of the model, `converted` is the graph of the IR."""
    release = version("onnxruntime")
    noted: dict[OracleError, list[str]] = {}  # the nodes that it can compute wrongly, and that no one else computes
    for graph in all_graphs(model) if oracle == ONNX_RUNTIME else ():
        for error, node in errors_in(graph.nodes):
            if error.treatment in (NOTED, EXACT) and error.is_in(release):
                noted.setdefault(error, []).append(f"{node.op_type} {graph.path_of(node)}")
    for error, nodes in noted.items():
        yield f"{nodes[0]}{f' and {len(nodes) - 1} more' if nodes[1:] else ''}: in ONNX Runtime {error.sentence}"
    if layers := list(integer_layers(converted)):
        many, where = sum(each.saturates for each in layers), "on processors without VNNI" if has_vnni() else "here"
        risk = f"; {many} of them may saturate {where} (ML508)" if many else ""
        yield (
            f"layers that multiply integers of 8 bits{f' with {instruction_set()}' if instruction_set() else ''}: "
            f"{len(layers)}{risk}; --quantization exact multiplies in f32"
        )
    values = [value for named in expected for _, value in named if isinstance(value, np.ndarray)]
    floats = [value for value in values if value.dtype.kind == "f" and value.size]
    if floats and all(np.isnan(value).all() for value in floats):
        yield "every expected number is NaN, so the comparison shows little: give other inputs"
