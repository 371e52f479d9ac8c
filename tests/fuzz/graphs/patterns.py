"""Graphs of one pattern each, in which the runtime merges neighbours, loses sizes or rounds: each fills a graph."""

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from tests.fuzz.graphs.computed import size_of
from tests.fuzz.graphs.graph import FLOAT, Dim, Graph, Value, broadcast
from tests.fuzz.graphs.movement import joined_axes, split_axis, squeeze, transpose, unsqueeze
from tests.fuzz.graphs.reductions import REDUCTIONS, reduced

# -- recurrent operators of a known batch behind an operator with computed sizes

RESIZERS = ("Pad", "Slice", "Tile", "Expand", "Resize", "Concat", "CenterCropPad", "Gather", "Split", "TopK", "Reshape")


def recurrent(g: Graph) -> None:
    """One or two layers over a sequence whose length, batch and features are in any order."""
    batch, features = g.choices.randint(1, 3), g.choices.randint(1, 4)
    sizes, order = ("M", batch, features), g.choices.sample(range(3), 3)
    x = _resized(g, g.input([sizes[each] for each in order]), order.index(0))
    if g.chance(0.3):
        (x,) = g.node(g.choice_of("Relu", "Tanh", "Neg"), x)
    if order != [0, 1, 2] or g.chance(0.2):
        (x,) = g.node("Transpose", x, perm=[order.index(each) for each in range(3)])
    for layer in range(g.choices.randint(1, 2)):
        if layer:
            (x,) = g.node("Reshape", *g.node("Transpose", x, perm=[0, 2, 1, 3]), g.constant([0, 0, -1]))
        x, features = _layer(g, x, batch, features)


def _layer(g: Graph, x: str, batch: int, features: int) -> tuple[str, int]:
    op, gates = g.choice_of(("LSTM", 4), ("GRU", 3), ("RNN", 1))
    direction, hidden = g.choice_of("forward", "reverse", "bidirectional"), g.choices.randint(2, 4)
    ways = 2 if direction == "bidirectional" else 1
    state = (ways, batch, hidden)
    weights = [g.normal(ways, gates * hidden, size, scale=0.5) for size in (features, hidden)]
    weights.append(g.normal(ways, 2 * gates * hidden) if g.chance(0.5) else "")
    states = ["", *(_state(g, state) for _ in range(2 if op == "LSTM" else 1))]
    names = g.node(op, x, *weights, *states, outputs=3 if op == "LSTM" else 2, hidden_size=hidden, direction=direction)
    shapes = (("S", *state), state, state)
    kept = [Value(name, shape) for name, shape in zip(names, shapes, strict=False) if g.chance(0.8)]
    g.values += kept or [Value(names[0], shapes[0])]
    return names[0], ways * hidden


def _state(g: Graph, shape: tuple[int, ...]) -> str:
    """An initial state: zeros that are not given, a constant, or an input."""
    way = g.choice_of("", "", "constant", "input")
    return g.normal(*shape) if way == "constant" else g.input(shape).name if way else ""


def _resized(g: Graph, x: Value, time: int) -> str:
    """x with another length, computed from its own."""
    length = size_of(g, x, time)
    (part,) = g.node(g.choice_of("Mod", "Div"), length, g.constant([g.choices.randint(2, 4)]))
    (count,) = g.node("Add", part, g.constant([1]))
    known = [size_of(g, x, axis) if axis == time or g.chance(0.4) else x.size(axis) for axis in range(3)]
    sizes = [*known[:time], count, *known[time + 1 :]]
    op = g.choices.choice(RESIZERS)
    if op == "Pad":
        return g.node(op, x, _vector(g, *[0] * (3 + time), count, *[0] * (2 - time)), g.constant(0.5))[0]
    if op == "Slice":
        return g.node(op, x, g.constant([0, 0, 0]), _vector(g, *sizes), g.constant([0, 1, 2]))[0]
    if op == "Tile":
        return g.node(op, x, _vector(g, *[1] * time, count, *[1] * (2 - time)))[0]
    if op == "Expand":
        return g.node(op, *g.node("ReduceMean", x, g.constant([time])), _vector(g, *sizes))[0]
    if op == "Resize":
        modes = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
        return g.node(op, x, "", "", _vector(g, *sizes), **modes)[0]
    if op == "Concat":
        (filled,) = g.node("ConstantOfShape", _vector(g, *sizes), value=helper.make_tensor("value", 1, [1], [0.3]))
        return g.node(op, *g.choices.sample((x, filled), 2), axis=time)[0]
    if op == "CenterCropPad":
        return g.node(op, x, count, axes=[time])[0]
    (least,) = g.node("Min", count, length)
    if op == "Gather":
        (end,) = g.node("Squeeze", least)
        return g.node(op, x, *g.node("Range", g.constant(0), end, g.constant(1)), axis=time)[0]
    if op == "Split":
        return g.node(op, x, *g.node("Concat", least, *g.node("Sub", length, least), axis=0), outputs=2, axis=time)[0]
    if op == "TopK":
        return g.node(op, x, least, outputs=2, axis=time)[0]
    return g.node(op, x, _vector(g, *known))[0]


def _vector(g: Graph, *parts: int | str) -> str:
    """Numbers, some of them computed, as one tensor."""
    return g.node("Concat", *(each if isinstance(each, str) else g.constant([each]) for each in parts), axis=0)[0]


# -- movements that copy nothing


def views(g: Graph) -> None:
    """Reshape, Squeeze, Unsqueeze and Transpose of up to 6 dimensions, of which the first is not known."""
    g.most_rank = 6
    kind = g.choice_of(FLOAT, FLOAT, FLOAT, np.int64)
    x = g.input(("N", *(g.choice_of(1, 1, 2, 3, 4) for _ in range(g.choice_of(3, 3, 4, 5)))), kind)
    steps = g.choices.randint(3, 6)
    for step in range(steps + 1):
        if step in (0, steps) and g.chance(0.7):
            x = g.add(g.choice_of("Abs", "Neg", "Sign"), x, shape=x.shape, kind=kind)
        for move in (transpose,) if step % 2 else g.choices.sample(VIEWS, 2):
            move(g, x)
            x = g.values[-1]


def unknown(g: Graph, x: Value) -> None:
    """A Reshape that joins the unknown dimension with the next one, or divides it again."""
    (at,) = (axis for axis in range(x.rank) if axis not in x.known)
    before, rest = x.shape[:at], x.shape[at + 1 :]
    name, _, factor = str(x.shape[at]).rpartition("_")
    if name and x.rank < g.most_rank and g.chance(0.6):
        shape: tuple[Dim, ...] = (*before, name, int(factor), *rest)
    elif rest:
        shape = (*before, f"{x.shape[at]}_{rest[0]}", *rest[1:])
    else:
        return
    pattern = [each if isinstance(each, int) else -1 for each in shape]
    g.add("Reshape", x, g.constant(pattern), shape=shape, kind=x.kind)


VIEWS = (unsqueeze, unsqueeze, squeeze, squeeze, joined_axes, split_axis, unknown)

# -- arithmetic after reductions

OF_KIND = {np.int64: ("ReduceSum", "ReduceMax", "ReduceMin"),
           np.int32: ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceSumSquare")}


def arithmetic(g: Graph) -> None:
    """A reduction, at times moved, and numbers or tensors that are combined with it, or divided by it."""
    kind, signed = g.choice_of(np.float64, np.float64, FLOAT, np.int32, np.int64), g.chance(0.4)

    def numbers(shape: Any, high: int = 6) -> Any:
        found = g.numbers.integers(1, high + 1, shape) if kind in OF_KIND else g.numbers.uniform(0.5, 3, shape)
        return found * np.where(signed, g.numbers.choice((-1, 1), shape), 1)

    sizes = [g.choice_of(1, 2, 3, 4, 5, "N", "M") for _ in range(g.choice_of(1, 2, 3, 3, 3, 4))]
    x = g.input(sizes, kind, numbers)
    axes = g.choices.sample(range(x.rank), g.choices.randint(1, min(x.rank, 2)))
    y = reduced(g, x, axes, OF_KIND.get(kind, (*REDUCTIONS, "ReduceProd")))
    if g.chance(0.3):
        g.choice_of(transpose, unsqueeze, squeeze)(g, y)
    for number in range(g.choices.randint(1, 2)):
        y = g.values[-1]
        has_product = any(node.op_type == "ReduceProd" for node in g.nodes)  # whose remainder would be of rounding
        op = g.choice_of("Div", "Div", "Div", "Mul", "Sub", "Add", "Div" if has_product else "Mod")
        other: Value | str = x
        shape = broadcast(x.shape, y.shape) if g.chance(0.2) else None
        if shape is None:
            own = [size if isinstance(size, int) and g.chance(0.7) else 1 for size in y.shape]
            own = g.choice_of([], [], [1], own)
            other, shape = g.constant(numbers(own, 4), kind), broadcast(y.shape, own) or ()
        operands = [y, other]
        if op in ("Add", "Mul", "Sub") or not (signed or number):
            g.choices.shuffle(operands)  # a divisor is not 0
        fmod = {"fmod": 1} if op == "Mod" and kind not in OF_KIND else {}
        g.add(op, *operands, shape=shape, kind=kind, **fmod)


# -- trees

SPLITS = (1.2, -0.1, 1 / 3, 2.0, 2.5, -1.5, 0.0)


def trees(g: Graph) -> None:
    """Inputs that are at the splits, or beside them by the least that the runtime holds; sums of leaves are exact."""
    kind, depth = g.choice_of(FLOAT, np.float64, np.int64, np.int32), g.choices.randint(1, 3)
    inner, count, features = 2**depth - 1, g.choice_of(1, 2, 4), g.choices.randint(1, 3)
    scored, name = (2, "class") if kind in OF_KIND else (1, "target")  # ONNX Runtime has no regressor of integers

    def at_splits(shape: Any) -> Any:
        found, steps = g.numbers.choice(SPLITS, shape), g.numbers.integers(-1, 2, shape)
        if kind == FLOAT:
            return np.nextafter(found.astype(kind), (found + steps).astype(kind))
        return found + steps * 1e-3 if kind == np.float64 else np.rint(found) + steps

    x = g.input(("N", features), kind, at_splits)
    nodes = [(tree, node) for tree in range(count) for node in range(2 * inner + 1)]
    splits = g.numbers.choice(SPLITS, len(nodes))
    leaves = [(tree, node) for tree, node in nodes if node >= inner]
    weights = g.numbers.integers(-50, 51, len(leaves)) / 8
    modes = ("BRANCH_LEQ", "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
    numbers = {"nodes_values": splits, f"{name}_weights": weights}
    if kind == np.float64:
        given = {f"{each}_as_tensor": numpy_helper.from_array(array, each) for each, array in numbers.items()}
    else:
        given = {each: array.astype(np.float32).tolist() for each, array in numbers.items()}
    if scored == 1:
        given |= {"n_targets": 1, "aggregate_function": g.choice_of("SUM", "AVERAGE", "MIN", "MAX")}
    else:
        given["classlabels_int64s"] = [7, 3, 5]
    given |= {f"{name}_treeids": [tree for tree, _ in leaves], f"{name}_nodeids": [node for _, node in leaves],
              f"{name}_ids": [g.choices.randrange(3 if scored == 2 else 1) for _ in leaves]}
    outputs = g.node(
        "TreeEnsembleRegressor" if scored == 1 else "TreeEnsembleClassifier", x, outputs=scored, domain="ai.onnx.ml",
        nodes_treeids=[tree for tree, _ in nodes], nodes_nodeids=[node for _, node in nodes],
        nodes_featureids=[g.choices.randrange(features) for _ in nodes],
        nodes_modes=[g.choices.choice(modes) if node < inner else "LEAF" for _, node in nodes],
        nodes_truenodeids=[2 * node + 1 if node < inner else 0 for _, node in nodes],
        nodes_falsenodeids=[2 * node + 2 if node < inner else 0 for _, node in nodes],
        **given,
    )
    g.values.append(Value(outputs[-1], ("N", 1 if scored == 1 else 3)))
    g.values += [Value(each, ("N",), np.int64) for each in outputs[:-1]]


# -- quantised tensors that are quantised again

SCALES = (0.05, 0.02, 0.1, 0.25, 0.03)


def requantised(g: Graph) -> None:
    """Chains of DequantizeLinear and QuantizeLinear; the quotients of many scales have halves."""
    g.opset = 21
    shape = (g.choice_of("N", "M", 2), *(g.choices.randint(2, 6) for _ in range(g.choices.randint(1, 3))))
    kinds = (np.uint8, np.int8, np.uint8, np.int8, np.uint16, np.int16)
    kind = g.choices.choice(kinds)
    if g.chance(0.4):
        x = g.input(shape, FLOAT, lambda sizes: 3 * g.numbers.standard_normal(sizes))
        x = g.add("QuantizeLinear", x, *(parameters := _parameters(g, x, kind))[0], shape=shape, kind=kind,
                  **parameters[1])
    else:
        info = np.iinfo(kind)
        x = g.input(shape, kind, lambda sizes: g.numbers.integers(info.min, info.max + 1, sizes))
    for last in (False,) * g.choices.randint(0, 2) + (True,):
        names, attributes = _parameters(g, x, x.kind)
        y = g.add("DequantizeLinear", x, *names, shape=x.shape, **attributes)
        if g.chance(0.3):
            y = g.add(g.choice_of("Relu", "Neg"), y, shape=y.shape)
        if g.chance(0.3):
            transpose(g, y)
            y = g.values[-1]
        if last and g.chance(0.5):
            return
        names, attributes = _parameters(g, y, kind := g.choices.choice(kinds))
        x = g.add("QuantizeLinear", y, *names, shape=y.shape, kind=kind, **attributes)
    g.add("Cast", x, shape=x.shape, kind=np.int32, to=6)


def _parameters(g: Graph, x: Value, kind: Any) -> tuple[list[str], dict[str, int]]:
    """A scale and a zero point: one for all, for each slice along an axis of known size, or for each block of two."""
    axis = g.choices.choice(x.known) if g.chance(0.4) else None
    sizes: tuple[Any, ...] = () if axis is None else (x.size(axis),)
    attributes = {} if axis is None else {"axis": axis}
    if axis is not None and len(x.known) == x.rank and g.chance(0.5):
        sizes, attributes["block_size"] = x.with_size(axis, -(-x.size(axis) // 2)), 2
    scale = g.constant(g.numbers.choice(SCALES, sizes) * g.choice_of(1, 1, g.choices.uniform(0.5, 1.5)), FLOAT)
    low, high = (100, 156) if np.dtype(kind).kind == "u" else (-28, 28)
    zero = g.constant(g.numbers.integers(low, high, sizes) if g.chance(0.8) else np.zeros(sizes), kind)
    return [scale, zero], attributes


PATTERNS: dict[str, Callable[[Graph], None]] = {
    each.__name__: each for each in (recurrent, views, arithmetic, trees, requantised)
}
EXACT = ("trees", "requantised")
"""The patterns whose results are the same to the last bit."""
