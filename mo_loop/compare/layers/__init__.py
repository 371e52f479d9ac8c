"""The first tensor of an ONNX model that differs in its IR, also inside bodies.

    found = first_difference("model.onnx", graph, {"x": x})
    print(found)                # the node, the iteration, both values, what the node became; None: all tensors agree

==================  ===============================================================================
`lockstep`          both sides, node by node        `findings`     what is compared, and what differs first
`onnx_side`         the ONNX model, node by node    `ir_side`      the IR in segments, on demand
`loop_runs`         the loops of both sides         `rounding`     what rounding does in a piece
`tensor_differences`  the answer, and the distances of all tensors
==================  ===============================================================================
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from mo_loop.compare.execution.runtime import Compiled, ordered
from mo_loop.compare.layers.findings import Findings, PieceFindings
from mo_loop.compare.layers.ir_side import IrSide
from mo_loop.compare.layers.lockstep import Lockstep
from mo_loop.compare.layers.tensor_differences import Heat, LayerDifference
from mo_loop.compare.results.array_comparison import packed
from mo_loop.frontend.model import OnnxModel, load
from mo_loop.graph import Graph, Node, Value
from mo_loop.ir_origins import assign_origins
from mo_loop.origin import Origin
from mo_loop.transforms.manager import Phase, Step

__all__ = ["Heat", "History", "LayerDifference", "PieceFindings", "assign_origins", "compared", "first_difference"]


def first_difference(model: Any, graph: Graph, feeds: Mapping[str, Any], **how: Any) -> LayerDifference | None:
    """The first tensor that differs, in the order of the ONNX model; None if all tensors agree. The arguments are those
    of `compared`."""
    return compared(model, graph, feeds, **how).difference


def compared(
    model: Any, graph: Graph, feeds: Mapping[str, Any], *, rtol: float | None = None, atol: float | None = None,
    memory: int | None = None, history: "History | None" = None, one_by_one: bool = False, heat: Heat | None = None,
    properties: Mapping[str, Any] | None = None, with_piece: bool = False, samples: bool = False,
    pieces: PieceFindings | None = None,
) -> PieceFindings:
    """All that is found by comparing the pieces, up to the first difference.

    A tensor that is wrong only when it is computed together with its neighbours is the difference if there is no other
    one; then `vanishes` is set. If there is none although the outputs of the whole model differ, the runtime computes
    tensors in place, or fuses layers. It runs native code: call it in a worker process.

    Args:
        model: the ONNX model, as a path, bytes or an `onnx.ModelProto`.
        graph: its IR, converted in this process, or read from files with `assign_origins`.
        feeds: the inputs by name; a sequence is a list.
        rtol: the relative tolerance, as for `mo_loop.compare.results.array_comparison`; by default that of the pieces.
        atol: the absolute tolerance, likewise.
        memory: the bytes that the values of both sides may take; a quarter of the machine's memory by default.
        history: an observer of the conversion, which has recorded the passes.
        one_by_one: run each node alone. If the worker process crashes, its stage then names the tensor and the
            iteration ("computing loop/step/y, iteration 2 of loop"); else it names the first tensor of some.
        heat: takes every comparison; the models are then compared after the first difference too.
        properties: of OpenVINO, for example its precision; f32 by default.
        with_piece: keep the piece that differs.
        samples: of a loop whose outputs agree, compare the iterations 0, 1, 2, 4, 8 and so on, and the last one.
        pieces: the findings with other sets of inputs, which get those with this one.

    Raises:
        OnnxError: a node of the ONNX model does not run.
        KeyError: an input of the IR has no value.
    """
    loaded = model if isinstance(model, OnnxModel) else load(model)
    side = IrSide() if properties is None else IrSide(partial(Compiled, properties=properties))
    findings = Findings(graph, side, (rtol, atol), heat, with_piece, pieces or PieceFindings())
    memory = memory or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    lockstep = Lockstep(loaded, findings, memory=memory, one_by_one=one_by_one, samples=samples)
    found = lockstep.run(feeds, _fed(graph, feeds))
    first = found.difference
    if first is None or history is None:
        return found
    found.difference = replace(first, passes=history.passes_of(Origin(first.scope, first.node, first.operator)))
    return found


def _fed(graph: Graph, feeds: Mapping[str, Any]) -> dict[Value, Any]:
    """The arrays of the Parameters that are read, found by any of their names."""
    used = [each.output for each in graph.parameters if each.output.is_used]
    names = [(each.node.name, *each.names, *(origin.output for origin in each.origins)) for each in used]
    found = map(np.asarray, ordered(packed(feeds, set(chain.from_iterable(names))), names))
    return {
        value: array if array.dtype.kind in "OSU" else array.astype(value.dtype.numpy, copy=False)
        for value, array in zip(used, found, strict=True)
    }


class History:
    """An observer of one conversion. It can be pickled afterwards."""

    def __init__(self) -> None:
        self._passes: dict[tuple[str, ...], dict[str, None]] = {}
        self._nodes: set[Node] = set()

    def __call__(self, event: Step | Phase) -> None:
        if isinstance(event, Phase):
            if event.name == "translating" and event.graph is not None:
                self._nodes = _all_nodes(event.graph)
            elif event.name == "passes" and event.seconds is not None:
                self._nodes = set()
        elif event.changed:
            # A pass that contains others is named with those that changed something, if they are few.
            inner = [name for name, count in event.matchers if count]
            name = f"{event.name} ({', '.join(inner)})" if 0 < len(inner) <= 3 else event.name
            before, self._nodes = self._nodes, _all_nodes(event.graph)
            for origin in (each for node in before ^ self._nodes for each in node.origins):
                self._passes.setdefault((*origin.scope, origin.node), {})[name] = None

    def passes_of(self, origin: Origin) -> tuple[str, ...]:
        """The passes that made, replaced or removed a layer of an ONNX node, in the order in which they ran."""
        return tuple(self._passes.get((*origin.scope, origin.node), ()))


def _all_nodes(graph: Graph) -> set[Node]:
    return {node for each in graph.scopes() for node in each.ordered()}
