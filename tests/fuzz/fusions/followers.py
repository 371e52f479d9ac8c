"""Followers: what reads the result of a producer and may be fused into it."""

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np

from tests.fuzz.fusions.drawing import INT8, Cell, Chain, Drawing, evaluate, with_symbols
from tests.fuzz.fusions.producers import PRODUCERS

Follower = Callable[[Drawing, str, tuple[int, ...]], str]
BINARY = ("Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu", "Pow", "ReverseSub", "ReverseDiv")


def _constant(d: Drawing, shape: tuple[int, ...], *, signs: bool = True) -> str:
    """One that varies along the axes of the cell, with or without the dimensions of 1 before them."""
    axes = d.cell.axes
    sizes = [size if axis in axes else 1 for axis, size in enumerate(shape)]
    if d.chance(0.5):
        sizes = sizes[d.choices.randrange(min(axes, default=len(shape)) + 1) :]
    return d.constant(d.random(sizes, signs=signs))


def _binary(op: str) -> Follower:
    def made(d: Drawing, value: str, shape: tuple[int, ...]) -> str:
        if op == "PRelu":
            return d.add(op, value, _constant(d, shape))
        if op == "Pow":
            return d.add(op, d.add("Abs", value), _constant(d, shape, signs=False))
        constant = _constant(d, shape)
        return d.add(op.removeprefix("Reverse"),
                     *((constant, value) if op.startswith("Reverse") else (value, constant)))

    return made


def _mul_add(d: Drawing, value: str, shape: tuple[int, ...]) -> str:
    return d.add("Add", d.add("Mul", value, _constant(d, shape)), _constant(d, shape))


def _sub_mul(d: Drawing, value: str, shape: tuple[int, ...]) -> str:
    return d.add("Mul", d.add("Sub", value, _constant(d, shape)), _constant(d, shape))


def _add_relu_mul(d: Drawing, value: str, shape: tuple[int, ...]) -> str:
    return d.add("Mul", d.add("Relu", d.add("Add", value, _constant(d, shape))), _constant(d, shape))


def _batch_normalization(d: Drawing, value: str, shape: tuple[int, ...]) -> str:
    ports = [d.constant(d.random([shape[1]], signs=index == 1)) for index in range(4)]
    return d.add("BatchNormalization", value, *ports)


def _clip(d: Drawing, value: str, _: tuple[int, ...]) -> str:
    return d.add("Clip", value, d.constant(-0.5), d.constant(0.75))


def _quantised(d: Drawing, value: str, shape: tuple[int, ...]) -> str:
    """Q/DQ of the range of the value, for all or along one axis."""
    most = max(float(np.abs(each).max()) for each in evaluate(d.chain, value)) or 1.0
    if d.cell.axes:
        (axis,) = d.cell.axes
        return d.quantised(value, most / 127 * d.numbers.uniform(0.3, 1.0, shape[axis]), 128, axis=axis)
    return d.quantised(value, most / 127, 128)


def _sum(d: Drawing, value: str, shape: tuple[int, ...]) -> str:
    """Another input, which varies along the axes."""
    return d.add("Add", value, d.input([size if axis in d.cell.axes else 1 for axis, size in enumerate(shape)]))


FOLLOWERS: dict[str, Follower] = {**{op: _binary(op) for op in BINARY}, "MulAdd": _mul_add, "SubMul": _sub_mul,
                                  "AddReluMul": _add_relu_mul, "BatchNormalization": _batch_normalization,
                                  "Clip": _clip, "Quantize": _quantised, "Sum": _sum}

SCALARS: tuple[Callable[[Drawing, str], str], ...] = (
    lambda d, value: d.add("Mul", value, d.constant(d.pick(0.5, -2.0, 3.0))),
    lambda d, value: d.add("Add", value, d.constant(d.pick(0.5, -2.0))),
    lambda d, value: d.add("Relu", value),
    lambda d, value: d.add("Sigmoid", value),
    lambda d, value: d.add("Div", value, d.constant([2.0])),
    lambda d, value: d.add("Neg", value),
)
"""Operators that may be between and after the others."""


def cells() -> Iterator[Cell]:
    """The grid."""
    for producer, (_, ranks) in PRODUCERS.items():
        for rank in ranks:
            for follower in FOLLOWERS:
                for axes in _axes(follower, rank):
                    yield Cell(producer, rank, follower, axes)


def _axes(follower: str, rank: int) -> Iterator[tuple[int, ...]]:
    if follower == "BatchNormalization":
        yield from [(1,)] if rank >= 2 else []
        return
    if follower == "Clip":
        yield ()
        return
    yield ()
    yield from ((axis,) for axis in range(rank))
    if follower in ("Add", "Mul", "PRelu", "Sum") and rank > 2:
        yield from combinations(range(rank), 2)
        yield tuple(range(rank))


def drawn(cell: Cell, seed: int, prefix: str = "") -> Chain:
    """The chain of a cell, with expected values; ONNX Runtime's error if it has no kernel."""
    d = Drawing(cell, seed, prefix)
    value = PRODUCERS[cell.producer][0](d)
    while d.chance(0.3):
        value = d.choices.choice(SCALARS)(d, value)
    value = FOLLOWERS[cell.follower](d, value, evaluate(d.chain, value)[0].shape)
    while d.chance(0.3):
        value = d.choices.choice(SCALARS)(d, value)
    d.chain.output = value
    if d.kind == INT8 and d.chance(0.5):
        most = max(float(np.abs(each).max()) for each in evaluate(d.chain)) or 1.0
        d.chain.output = d.quantised(value, most / 127, 128)
    with_symbols(d)
    d.chain.expected = evaluate(d.chain)
    return d.chain
