"""Statistics of a model before and after its conversion: operations, weights by element type, control flow.

    before = onnx_statistics(record.model)
    after = graph_statistics(record.graph)
    before.operations, before.weights      # 35, {"f32": 4194304, "i64": 64}
    outcomes(record)                       # [LoopOutcome("Loop", "TensorIterator", 1), LoopOutcome("If", "decided", 2)]

All scopes are counted. Inputs, outputs and constants do not count as operations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mo_loop.errors import MoLoopError
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import OnnxGraph, all_graphs, operator_of
from mo_loop.graph import Graph
from mo_loop.graph.origin import Origin
from mo_loop.graph.types import from_onnx
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.report.record import LoopOutcome, Record

_TENSOR, _TENSORS, _SPARSE = 4, 9, 11  # AttributeProto.AttributeType
CONTROL_FLOW = ("Loop", "Scan", "If")


@dataclass
class Statistics:
    """`operations` in all scopes, and the bytes of constants by element type."""

    operations: int = 0
    weights: dict[str, int] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return sum(self.weights.values())


def onnx_statistics(model: OnnxModel) -> Statistics:
    """Statistics of an ONNX model as stored in its file; a function counts once, however often it is called."""
    found = Statistics()
    weights: Counter[str] = Counter()
    for scope in all_graphs(model):
        for tensor in _tensors(scope):
            try:
                dtype = from_onnx(tensor.data_type)
            except MoLoopError:  # of an initializer that nothing reads
                continue
            weights[dtype.name] += dtype.size_of(math.prod(tensor.dims))
        found.operations += sum(node.op_type != "Constant" for node in scope.nodes)
    found.weights = dict(weights)
    return found


def _tensors(scope: OnnxGraph) -> Iterator[Any]:
    yield from scope.initializers
    if scope.kind != "function":
        yield from (each.values for each in scope.proto.sparse_initializer)
    for node in scope.nodes:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.type == _TENSOR:
                    yield attribute.t
                elif attribute.type == _SPARSE:
                    yield attribute.sparse_tensor.values


def graph_statistics(graph: Graph) -> Statistics:
    """Statistics of a graph; each constant counts, although the .bin stores equal ones once."""
    found = Statistics()
    weights: Counter[str] = Counter()
    for scope in graph.scopes():
        constants = scope.of(Constant)
        for node in constants:
            weights[node.tensor.dtype.name] += node.tensor.nbytes
        found.operations += len(scope) - len(constants) - len(scope.of(Parameter)) - len(scope.of(Result))
    found.weights = dict(weights)
    return found


def outcomes(record: Record) -> list[LoopOutcome]:
    """The result of each Loop, Scan and If of the model, in the order of its scopes; equal outcomes share one count."""
    assert record.model is not None
    counts = Counter((flow.kind, flow.became) for flow in record.flows)
    left = list(record.flows)
    for node in _control_flow(record.model):
        flow = next((each for each in left if each.kind == node.operator and node in each.origins), None)
        if flow is not None:
            left.remove(flow)
        else:  # translation replaces an If of known condition by one branch, and does not read the other branch
            counts[node.operator, "decided" if node.operator == "If" else "not needed"] += 1
    return [LoopOutcome(kind, became, count) for (kind, became), count in counts.items()]


def _control_flow(model: OnnxModel) -> Iterator[Origin]:
    for scope in all_graphs(model):
        if scope.kind == "function":
            continue  # counted at its call
        yield from (scope.origin_of(node) for node in scope.nodes if operator_of(node) in CONTROL_FLOW)
