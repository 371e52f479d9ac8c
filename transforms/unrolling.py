"""Copies the body of a loop into the graph around it, once for each iteration.

    for i in range(2): s = f(s, X[i], i)        ->  f(f(s, X[0], 0), X[1], 1)

The iteration number becomes a constant, a slice a Slice (of a Scan a Gather, because the axis disappears; the whole
tensor if it is one slice), and a concatenated output one Concat. The passes UnrollLoops and LowLatency2 decide whether
a loop is unrolled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mo_loop.graph.shape import normalise_axis
from mo_loop.ops.control import Iteration, Loop
from mo_loop.ops.movement import FAR
from mo_loop.ops.port_map import Concatenated, Invariant, Merged, Sliced
from mo_loop.transforms.port_maps import is_one_after_another
from mo_loop.transforms.replace import replace_output
from mo_loop.transforms.vocabulary import Constant, Node, Value, is_static, ops


def is_cut_evenly(entry: Sliced, value: Value) -> bool:
    """Whether the slices are one after another, of an axis of known length."""
    if not is_one_after_another(entry) or value.shape is None:
        return False
    return isinstance(value.shape[normalise_axis(entry.axis, len(value.shape))], int)


def unrolled(
    node: Iteration, count: int, initial: Mapping[Merged, Value] | None = None, number: Value | None = None
) -> dict[Merged, Value]:
    """Replace a loop by `count` copies of its body; returns the value of each state after the last one.

    Args:
        node: a loop that runs `count` times, whose slices are cut evenly.
        initial: values with which states start, instead of those that the loop has.
        number: the iteration number of the first copy, instead of 0; for one copy only.
    """
    graph, body = node.graph, node.body
    before = set(graph.ordered())
    fed = dict(node.fed)
    states = {entry: value for entry, value in node.fed if isinstance(entry, Merged)} | dict(initial or {})
    rounds: list[dict[Node, Value]] = []
    for place in range(count):
        bindings: dict[Node, Value] = {
            entry.parameter: value for entry, value in fed.items() if isinstance(entry, Invariant)
        }
        bindings |= {entry.parameter: value for entry, value in states.items()}
        for entry, value in fed.items():
            if isinstance(entry, Sliced):
                bindings[entry.parameter] = _piece(node, entry, value, place)
        if isinstance(node, Loop) and node.iteration is not None:
            bindings[node.iteration] = _number(node, place) if number is None else number
        made = graph.inline(body, [bindings[parameter] for parameter in body.parameters])
        results: dict[Node, Value] = dict(zip(body.results, made, strict=True))
        rounds.append(results)
        states = {entry: results[entry.result] for entry in states}
    for each in graph.ordered():  # a name means one tensor
        for output in each.outputs if each not in before else ():
            output.names = output.origins = ()
    for entry, output in zip(node.output_map, node.outputs, strict=True):
        if not output.is_used:
            continue
        value = rounds[-1][entry.result]
        if isinstance(entry, Concatenated):
            value = _joined(node, entry, [results[entry.result] for results in rounds])
        replace_output(output, value)
    graph.remove(node)
    return states


def _number(loop: Loop, number: int) -> Value:
    assert loop.iteration is not None
    type_ = loop.iteration.output.type
    shape = type_.dims if is_static(type_.shape) else ()
    return Constant(np.full(shape, number), graph=loop.graph, dtype=type_.dtype).output


def _piece(node: Iteration, entry: Sliced, value: Value, number: int) -> Value:
    """Slice `number` of a tensor; without the axis for a Scan."""
    axis = normalise_axis(entry.axis, len(value.type.dims))
    length = value.type.dims[axis]
    place = number if entry.stride > 0 else -1 - number
    if place < 0 and isinstance(length, int):
        place += length
    if isinstance(node, ops.Scan):
        return ops.Gather(value, place, axis).output
    if length == entry.part_size:
        return value
    return ops.Slice(value, [place], [FAR if place == -1 else place + 1], [1], [axis]).output


def _joined(node: Iteration, entry: Concatenated, values: Sequence[Value]) -> Value:
    """The pieces in order along an axis, which a Scan's do not have yet."""
    values = list(values) if entry.stride > 0 else list(reversed(values))
    if isinstance(node, ops.Scan):
        values = [ops.Unsqueeze(value, [entry.axis]).output for value in values]
    return values[0] if len(values) == 1 else ops.Concat(*values, axis=entry.axis).output
