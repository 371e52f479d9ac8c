"""first_difference: runs an ONNX model and its IR side by side until a tensor differs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from mo_loop.compare.execution.runtime import Compiled
from mo_loop.compare.layers.heat import Heat
from mo_loop.compare.layers.history import History
from mo_loop.compare.layers.ir_side import IrSide
from mo_loop.compare.layers.layer_difference import LayerDifference
from mo_loop.compare.layers.lockstep import Lockstep
from mo_loop.frontend.model import OnnxModel, load
from mo_loop.graph import Graph, Value
from mo_loop.graph.origin import Origin
from mo_loop.support.packed_sequences import pack_sequence


def first_difference(
    model: Any,
    graph: Graph,
    feeds: Mapping[str, Any],
    *,
    rtol: float | None = None,
    atol: float | None = None,
    memory: int | None = None,
    history: History | None = None,
    one_by_one: bool = False,
    heat: Heat | None = None,
    properties: Mapping[str, Any] | None = None,
) -> LayerDifference | None:
    """The first tensor that differs, in the order of the ONNX model; None if all tensors agree.

    A tensor that is wrong only when it is computed together with its neighbours is the answer if there is no other
    one; then `vanishes` is set.
    If it is None although the outputs of the whole model differ, the difference vanishes when inner tensors become
    outputs: the runtime computes them in place, or fuses layers; `changing_pass` (compare/verdict/passes.py) finds
    the pass.
    It runs native code: call it in a worker process.

    Args:
        model: the ONNX model, as a path, bytes or an `onnx.ModelProto`.
        graph: its IR, converted in this process, or read from files with `assign_origins`.
        feeds: the inputs by name; a sequence is a list.
        rtol, atol: tolerances, as for `mo_loop.compare.results.array_comparison`.
        memory: the bytes that the values of both sides may take; a quarter of the machine's memory by default.
        history: an observer of the conversion, which has recorded the passes.
        one_by_one: run each node alone. If the worker process crashes, its stage then names the tensor and the
            iteration ("computing loop/step/y, iteration 2 of loop"); else it names the first tensor of some.
        properties: of OpenVINO, for example its precision; f32 by default.
        heat: takes every comparison; the models are then compared after the first difference too.

    Raises:
        OnnxError: a node of the ONNX model does not run.
        KeyError: an input of the IR has no value.
    """
    return compared(
        model, graph, feeds, rtol=rtol, atol=atol, memory=memory, history=history, one_by_one=one_by_one, heat=heat,
        properties=properties,
    ).difference  # fmt: skip


@dataclass(frozen=True)
class PieceFindings:
    """The result of comparing all pieces: the first difference, or None.

    `undecided` has tensors of which the comparison shows nothing, with the reason, `lost_nan` the layers in which the
    runtime has numbers for NaN, `count` is the number of tensors that were compared. `piece` is the piece that differs,
    as a model with its inputs, if it is wanted.
    """

    difference: LayerDifference | None = None
    undecided: Mapping[str, str] = field(default_factory=dict)
    lost_nan: tuple[str, ...] = ()
    count: int = 0
    piece: tuple[bytes, Mapping[str, Any]] | None = None


def compared(
    model: Any,
    graph: Graph,
    feeds: Mapping[str, Any],
    *,
    rtol: float | None = None,
    atol: float | None = None,
    memory: int | None = None,
    history: History | None = None,
    one_by_one: bool = False,
    heat: Heat | None = None,
    properties: Mapping[str, Any] | None = None,
    with_piece: bool = False,
) -> PieceFindings:
    """All that is found by comparing the pieces, up to the first difference; the arguments are those of
    `first_difference`."""
    loaded = model if isinstance(model, OnnxModel) else load(model)
    side = IrSide() if properties is None else IrSide(partial(Compiled, properties=properties))
    lockstep = Lockstep(
        loaded, graph, rtol=rtol, atol=atol, memory=memory or default_memory(), side=side, one_by_one=one_by_one,
        heat=heat,
    )  # fmt: skip
    lockstep.findings.keeps_piece = with_piece
    found = lockstep.run(feeds, _fed(graph, feeds))
    if found is not None and history is not None:
        found = replace(found, passes=history.passes_of(Origin(found.scope, found.node, found.operator)))
    findings = lockstep.findings
    return PieceFindings(found, findings.undecided, tuple(findings.lost_nan), len(findings.compared), findings.piece)


def default_memory() -> int:
    """A quarter of the machine's memory, in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4


def _fed(graph: Graph, feeds: Mapping[str, Any]) -> dict[Value, Any]:
    """The arrays of the Parameters, found by any of their names."""
    found: dict[Value, Any] = {}
    for parameter in graph.parameters:
        value = parameter.output
        names = (parameter.name, *value.names, *(each.output for each in value.origins))
        array = next((_array(name, feeds) for name in names if _array(name, feeds) is not None), None)
        if array is None and value.is_used:
            raise KeyError(f"no value for the input {parameter.name}; given: {', '.join(feeds) or 'nothing'}")
        if array is not None:
            kind = value.dtype.numpy
            found[value] = array if array.dtype.kind in "OSU" else array.astype(kind, copy=False)
    return found


def _array(name: str, feeds: Mapping[str, Any]) -> Any:
    if name in feeds and not isinstance(feeds[name], list):
        return np.asarray(feeds[name])
    base, _, part = name.rpartition(".")
    if part in ("data", "shapes") and isinstance(feeds.get(base), list):
        return pack_sequence(feeds[base])[part == "shapes"]
    return None
