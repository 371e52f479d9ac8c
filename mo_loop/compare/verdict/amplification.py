"""Whether a model amplifies rounding so far that it explains a difference of its outputs, where every piece agrees.

    moves = amplification("model.onnx", feeds)              # {"y": 0.31}: the largest movement of each output
    explains(moves, "y", 0.02)

Pieces that agree one by one can differ as a whole only if the model amplifies what rounding does in them, or if the
runtime computes them differently together: it fuses layers, or they share memory. So the outputs of ONNX Runtime itself
have to move if the result of every node is changed by a few roundings. This shows which of both it is, no more: the
pieces decide whether the IR is right.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import onnx

from mo_loop.compare.layers.heat import BEYOND, distance
from mo_loop.compare.layers.piece_tolerance import changed, unit_of
from mo_loop.compare.oracle.graph_edits import graphs_in, replace_entries
from mo_loop.compare.oracle.oracle import OnnxRuntime, with_copies

CHANGE = 16
"""The change of each result, in units of the last place of its type."""

DRAWS = 8
"""How often. A tie at a step of a quantisation falls to the other side in half of them: 3 missed one in 8."""

LARGEST_RATIO = 50.0
"""A difference above this multiple of the movement is not that of rounding: where a model amplifies nothing, the ratio
of a difference above the tolerances is above 100."""

UNITS = {onnx.TensorProto.FLOAT: 2.0**-23, onnx.TensorProto.FLOAT16: 2.0**-10, onnx.TensorProto.DOUBLE: 2.0**-23}
"""The relative distance of numbers by the type of ONNX; OpenVINO computes f64 in f32."""


def amplification(model: str, feeds: Mapping[str, Any]) -> dict[str, float]:
    """The largest movement of the numbers of each output; infinite where its shape changes, or not every number stays
    finite. Runs native code: call it in a worker."""
    expected = dict(OnnxRuntime(with_copies(model), arena=False).run(feeds))
    whole = onnx.load(model)
    moves = dict.fromkeys(expected, 0.0)
    for seed in range(DRAWS):
        random = np.random.default_rng(seed)
        moved = {
            name: changed(value, random, CHANGE * unit_of(value.dtype)) if isinstance(value, np.ndarray) else value
            for name, value in feeds.items()
        }
        for source in (with_copies(_with_moved_results(whole, seed)), with_copies(model)):
            try:
                found = dict(OnnxRuntime(source, arena=False).run(moved))
            except Exception:  # the errors of ONNX Runtime share no base class: other numbers, other sizes
                continue
            for name, value in expected.items():
                if isinstance(value, np.ndarray):
                    apart = distance(value, found[name], None, None)
                    moves[name] = max(moves[name], np.inf if apart.worst >= BEYOND else apart.abs)
            break
    return moves


def explains(moves: Mapping[str, float], name: str, largest: float) -> bool:
    """Whether the movement of an output explains its largest difference."""
    return largest <= LARGEST_RATIO * moves.get(name, 0.0)


def _with_moved_results(model: Any, seed: int) -> Any:
    """A copy of the model in which each floating-point result of a node is changed at random, bodies included."""
    copy, make = onnx.ModelProto(), onnx.helper.make_node
    copy.CopyFrom(model)
    typed = copy
    with suppress(Exception), warnings.catch_warnings(action="ignore"):  # those of the inference share no base class
        typed = onnx.shape_inference.infer_shapes(copy, data_prop=True)
    random = np.random.default_rng(seed)
    for graph, source in zip(graphs_in(copy.graph), graphs_in(typed.graph), strict=True):
        types = {each.name: each.type.tensor_type.elem_type for each in (*source.value_info, *source.output)}
        nodes: list[Any] = []
        for node in graph.node:
            nodes.append(node)
            for port, name in enumerate(node.output):
                if types.get(name) not in UNITS or node.op_type == "Constant":
                    continue
                size = CHANGE * UNITS[types[name]]
                # ONNX Runtime's first number is near `low` for small seeds.
                drawn = float(random.integers(1, 2**24))
                exact = node.output[port] = f"{name}/exact"  # the changed result has the name that others read
                nodes += [
                    make("RandomUniformLike", [exact], [f"{name}/random"], low=-size, high=size, seed=drawn),
                    make("Mul", [exact, f"{name}/random"], [f"{name}/change"]),
                    make("Add", [exact, f"{name}/change"], [name]),
                ]
        replace_entries(graph.node, nodes)
    return copy
