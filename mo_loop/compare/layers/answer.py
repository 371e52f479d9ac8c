"""The facts about a difference in the answer, besides the tensor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from mo_loop.compare.layers.counterparts import is_for
from mo_loop.compare.layers.distance import Distance, distance
from mo_loop.compare.layers.ir_side import IrSide, Key
from mo_loop.compare.layers.layer_difference import Elements, number
from mo_loop.compare.layers.onnx_side import OnnxFrame
from mo_loop.compare.results.array_comparison import ArrayComparison
from mo_loop.frontend.onnx_graphs import label
from mo_loop.graph import Graph, Value
from mo_loop.graph.origin import Origin
from mo_loop.ops.base import Constant
from mo_loop.ops.control import Iteration
from mo_loop.support.reached import reached

BLOCK = 1 << 16
"""The elements that are compared at once: they stay in the cache of the processor."""


def is_close(expected: Any, actual: Any, rtol: float, atol: float) -> bool:
    """Whether two arrays of one type of floating-point numbers are surely equal; False means that `compare` decides.

    It takes a tenth of the time of `compare`, and no memory.
    """
    if not isinstance(expected, np.ndarray) or not isinstance(actual, np.ndarray):
        return False
    if expected.dtype not in (np.float32, np.float64) or expected.dtype != actual.dtype:
        return False
    if expected.shape != actual.shape:
        return False
    left, right = expected.reshape(-1), actual.reshape(-1)
    with np.errstate(invalid="ignore", over="ignore"):
        for start in range(0, left.size, BLOCK):
            a, b = left[start : start + BLOCK], right[start : start + BLOCK]
            if not (np.abs(a - b) <= 0.999 * (atol + rtol * np.abs(a))).all():
                return False
            if not np.isfinite(a).all():  # the limit is infinite next to an infinity
                return False
    return True


def is_overwritten(actual: Any) -> bool:
    """Whether an array of booleans has bytes other than 0 and 1: a neighbouring layer wrote into its memory."""
    if not isinstance(actual, np.ndarray) or actual.dtype != np.bool_:
        return False
    return bool((np.ascontiguousarray(actual).view(np.uint8) > 1).any())


def message(result: ArrayComparison, elements: Elements | None) -> str:
    """The difference of two arrays, in words."""
    if elements is None:
        return f"OpenVINO has {result.message.replace(' instead of ', ', ONNX Runtime has ')}"
    place = ", ".join(map(str, elements.index))
    return (
        f"{elements.count} of {elements.size} elements differ, the largest difference is {elements.largest_abs:.3g} "
        f"(relative {elements.largest_rel:.3g}); at [{place}] ONNX Runtime has {number(elements.expected)} "
        f"and OpenVINO has {number(elements.actual)}"
    )


def uncompared(frame: OnnxFrame, place: int) -> list[str]:
    """The nodes before a node whose outputs could not be compared, back to tensors that agree, in their order."""
    plan = frame.plan
    makers = {name: number for number, node in enumerate(plan.nodes[:place]) for name in node.output if name}

    def making(reader: int) -> list[int]:
        names = [name for name in plan.reads[reader] if name not in frame.agreed and name not in plan.constants]
        return [makers[name] for name in names if name in makers]

    found = sorted(reached(making(place), making))
    return [f"{label(plan.nodes[each])} ({plan.nodes[each].op_type})" for each in found]


def layers_of(graph: Graph, origin: Origin) -> list[str]:
    """The layers that were made for an ONNX node, without constants."""
    return [
        f"{node.path} ({getattr(node, 'type', type(node).__name__)})"
        for each in graph.scopes()
        for node in each.ordered()
        if not isinstance(node, Constant) and node.outputs and is_for(node, origin)
    ]


def steps_of(graph: Graph, origin: Origin) -> int:
    """The number of steps in each iteration of the loops that were made for an ONNX node, the largest one."""
    nodes = (node for each in graph.scopes() for node in each.nodes_with_bodies() if is_for(node, origin))
    return max((node.steps for node in nodes if isinstance(node, Iteration)), default=1)


def other_weights(
    frame: OnnxFrame, names: Iterable[str], graph: Graph, side: IrSide, tolerances: tuple[float | None, float | None]
) -> Iterator[tuple[Key, Value, Distance]]:
    """The constants of the IR that hold an initializer or Constant node among `names` with other values."""
    for name in names:
        held = frame.constant(name)
        if held is None:
            continue
        plan, _ = held
        key = plan.scope, name
        for value in (value for each in graph.scopes() for value in side.index(each).get(key, ())):
            if not isinstance(value.node, Constant):
                continue
            expected, actual = plan.array(name), value.node.array
            if np.shape(expected) == np.shape(actual):  # else it was prepared for another layer
                found = distance(expected, actual.astype(expected.dtype), *tolerances)
                if found.worst > 1:
                    yield key, value, found
