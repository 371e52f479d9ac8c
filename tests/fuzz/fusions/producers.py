"""Producers: a function for each kind of operator, which adds it to a drawing and returns its output."""

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np

from tests.fuzz.fusions.drawing import Drawing

Producer = Callable[[Drawing], str]

REDUCTIONS = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
              "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
UNARY = ("Relu", "Sigmoid", "Tanh", "Elu", "Gelu", "HardSwish", "Mish", "Softplus", "Abs", "Exp", "Neg", "Erf", "Clip")
BINARY = ("Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu")
ALL, VECTORS, SPATIAL = (2, 3, 4, 5), (2, 3), (3, 4, 5)


def _window(d: Drawing, *, equal: bool, transposed: bool = False) -> dict[str, object]:
    """Strides, dilations and pads."""
    count = d.rank - 2
    dilations = [d.pick(1, 2)] * count if equal else [d.pick(1, 2, 3) for _ in range(count)]
    stride = d.pick(1, 1, 2)
    pads = [d.pick(0, 1)] * (2 * count)
    return {"strides": [stride] * count, "dilations": dilations, "pads": [0] * (2 * count) if transposed else pads}


def _convolve(d: Drawing, groups: str, *, equal: bool = True) -> str:
    count = d.rank - 2
    inner, outer = d.pick(1, 3, 4, 8, 16), d.pick(1, 2, 4, 5, 8, 16, 17)
    parts = 1
    if groups == "some":
        inner, outer, parts = (8, 16, 4) if d.chance(0.5) else (6, 4, 2)
    elif groups == "depthwise":
        inner = outer = parts = d.pick(2, 4, 8, 16)
    sizes = [d.pick(5, 6, 7, 8) for _ in range(count)] if equal else [d.pick(7, 8, 9) for _ in range(count)]
    x = d.input([d.batch, inner, *sizes])
    kernel = [d.pick(1, 2, 3)] * count if d.chance(0.5) else [d.pick(1, 2, 3) for _ in range(count)]
    ports = [x, d.weights([outer, inner // parts, *kernel], 0)]
    if d.chance(0.5):
        ports.append(d.constant(d.random([outer])))
    return d.add("Conv", *ports, group=parts, **_window(d, equal=equal))


def conv_transpose(d: Drawing) -> str:
    parts = d.pick(1, 1, 2)
    inner, outer = d.pick(2, 4, 8), d.pick(1, 2, 4, 8)
    count = d.rank - 2
    x = d.input([d.batch, inner, *(d.pick(3, 4, 5) for _ in range(count))])
    ports = [x, d.weights([inner, outer, *([d.pick(1, 2, 3)] * count)], 1)]
    if d.chance(0.5):
        ports.append(d.constant(d.random([outer * parts])))
    return d.add("ConvTranspose", *ports, group=parts, **_window(d, equal=d.chance(0.7), transposed=True))


# -- products


def matmul(d: Drawing) -> str:
    shape = d.shape()
    columns = d.pick(shape[-1], d.pick(*shape), 16, 17, d.pick(*shape[1:]))
    return d.add("MatMul", d.input(shape), d.weights([shape[-1], columns], 1))


def matmul_and_bias(d: Drawing) -> str:
    shape = d.shape()
    columns = d.pick(shape[-1], d.pick(*shape), 16, 17, d.pick(*shape[1:]))
    product = d.add("MatMul", d.input(shape), d.weights([shape[-1], columns], 1))
    return d.add("Add", product, d.constant(d.random([columns])))


def matmul_of_batches(d: Drawing) -> str:
    shape = d.shape()
    ones = [each if d.chance(0.5) else 1 for each in shape[1:-2]]
    first = [1] if d.rank > 2 and d.chance(0.7) else []
    return d.add("MatMul", d.input(shape), d.weights([*first, *ones, shape[-1], d.pick(*shape, 7)], -1))


def matmul_of_inputs(d: Drawing) -> str:
    shape = d.shape()
    other = [*shape[:-2], shape[-1], d.pick(*shape, 7)]
    return d.add("MatMul", d.input(shape), d.input(other))


def matmul_of_left(d: Drawing) -> str:
    shape = d.shape()
    return d.add("MatMul", d.weights([d.pick(*shape, 7), shape[-2]], 0), d.input(shape))


def gemm(d: Drawing) -> str:
    shape = d.shape()
    columns, transposed = d.pick(shape[-1], 4, 7, 16), d.pick(0, 1)
    weights = d.weights([columns, shape[1]] if transposed else [shape[1], columns], 1 - transposed)
    ports = [d.input(shape), weights, *([d.constant(d.random([columns]))] if d.chance(0.5) else [])]
    return d.add("Gemm", *ports, transB=transposed)


# -- reductions and pools


def _reduction(axes: tuple[int, ...], keep: int, rank: int) -> Producer:
    def made(d: Drawing) -> str:
        op = d.pick(*REDUCTIONS)
        x = d.input(d.shape(rank), signs=not op.startswith("ReduceLog"))
        return d.add(op, x, d.constant(np.int64(axes)), keepdims=keep)

    return made


def _axis_sets(rank: int) -> Iterator[tuple[int, ...]]:
    """Neighbouring axes, and all but one."""
    yield from (tuple(range(*ends)) for ends in combinations(range(rank + 1), 2))
    yield from (tuple(each for each in range(rank) if each != axis) for axis in range(1, rank - 1))


def _reductions() -> Iterator[tuple[str, tuple[Producer, tuple[int, ...]]]]:
    """A kind for each set of axes and form."""
    for rank in ALL:
        for keep in (0, 1):
            for axes in _axis_sets(rank):
                if keep or len(axes) < rank:
                    name = f"Reduce{rank}:{''.join(map(str, axes))}{'k' if keep else ''}"
                    yield name, (_reduction(axes, keep, rank), (rank if keep else rank - len(axes),))


def _pool(op: str) -> Producer:
    def made(d: Drawing) -> str:
        count = d.rank - 2
        x = d.input([d.batch, d.pick(2, 3, 4, 8, 16), *(d.pick(4, 5, 6, 8) for _ in range(count))])
        return d.add(op, x, kernel_shape=[d.pick(1, 2, 3)] * count, strides=[d.pick(1, 2)] * count)

    return made


# -- normalisations, and functions along an axis


def instance_normalization(d: Drawing) -> str:
    shape = d.shape()
    return d.add("InstanceNormalization", d.input(shape), *(d.constant(d.random([shape[1]])) for _ in range(2)))


def layer_normalization(d: Drawing) -> str:
    shape, axis = d.shape(), d.choices.randrange(1, d.rank)
    return d.add("LayerNormalization", d.input(shape), d.constant(d.random(shape[axis:])), axis=axis)


def mean_variance_normalization(d: Drawing) -> str:
    axes = sorted(d.choices.sample(range(d.rank), d.choices.randrange(1, d.rank + 1)))
    return d.add("MeanVarianceNormalization", d.input(d.shape()), axes=axes)


def group_normalization(d: Drawing) -> str:
    shape = [d.batch, 8, *d.shape()[2:]]
    ports = [d.constant(d.random([8])) for _ in range(2)]
    return d.add("GroupNormalization", d.input(shape), *ports, num_groups=d.pick(1, 2, 4, 8))


def l2_of_axes(d: Drawing) -> str:
    axes = sorted(d.choices.sample(range(d.rank), d.choices.randrange(1, d.rank + 1)))
    x = d.input(d.shape())
    return d.add("Div", x, d.add("ReduceL2", x, d.constant(np.int64(axes))))


def batch_normalization(d: Drawing) -> str:
    shape = d.shape()
    ports = [d.constant(d.random([shape[1]], signs=False)) for _ in range(4)]
    return d.add("BatchNormalization", d.input(shape), *ports)


# -- elementwise operators


def binary(d: Drawing) -> str:
    shape = d.shape()
    other = [each if d.chance(0.7) else 1 for each in shape]
    return d.add(d.pick(*BINARY), d.input(shape), d.input(other))


def binary_of_constant(d: Drawing) -> str:
    shape = d.shape()
    other = [each if d.chance(0.4) else 1 for each in shape]
    return d.add(d.pick(*BINARY), d.input(shape), d.constant(d.random(other)))


def where(d: Drawing) -> str:
    shape = d.shape()
    x = d.input(shape)
    return d.add("Where", d.add("Greater", x, d.constant(0.1)), x, d.input(shape))


# -- movement


def resize(d: Drawing) -> str:
    mode = d.pick("nearest", "linear", "cubic" if d.rank == 4 else "linear")
    scales = [1.0, 1.0, *([d.pick(2.0, 1.5, 0.5)] * (d.rank - 2))]
    x = d.input([d.batch, d.pick(2, 3, 4, 8), *([d.pick(4, 6)] * (d.rank - 2))])
    return d.add("Resize", x, "", d.constant(np.float32(scales), exact=True), mode=mode)


def gather(d: Drawing) -> str:
    shape, axis = d.shape(), d.choices.randrange(d.rank)
    return d.add("Gather", d.input(shape), d.constant(d.numbers.integers(0, shape[axis], 3)), axis=axis)


def split(d: Drawing) -> str:
    shape, axis = d.shape(), d.choices.randrange(1, d.rank)
    shape[axis] = 6
    return d.add("Split", *[d.input(shape), d.constant(np.int64([2, 4]))], before=1, axis=axis)


def concat(d: Drawing) -> str:
    shape = d.shape()
    return d.add("Concat", d.input(shape), d.input(shape), axis=d.choices.randrange(d.rank))


def reshape(d: Drawing) -> str:
    sizes = [d.pick(2, 3, 4) for _ in range(d.rank - 2)]
    x = d.input([d.batch, 4 * int(np.prod(sizes))])
    return d.add("Reshape", x, d.constant(np.int64([-1, 4, *sizes][: d.rank])))


def squeeze(d: Drawing) -> str:
    axis = d.choices.randrange(1, d.rank + 1)
    shape = d.shape(d.rank + 1)
    shape[axis] = 1
    return d.add("Squeeze", d.input(shape), d.constant(np.int64([axis])))


def pad(d: Drawing) -> str:
    pads = [0, *(d.pick(0, 1) for _ in range(d.rank - 1))] * 2
    return d.add("Pad", d.input(d.shape()), d.constant(np.int64(pads)), mode=d.pick("constant", "edge"))


def expand(d: Drawing) -> str:
    shape = d.shape()
    given = [shape[0], *(each if d.chance(0.5) else 1 for each in shape[1:])]
    return d.add("Expand", d.input(given), d.constant(np.int64([1, *shape[1:]])))


def reversed_channels(d: Drawing) -> str:
    shape = [d.batch, 3, *d.shape()[2:]]
    moved = d.add("Gather", d.input(shape), d.constant(np.int64([2, 1, 0])), axis=1)
    if d.chance(0.6):
        pads = [[0, d.pick(0, 0, 1, -1), *(d.pick(0, 1) for _ in shape[2:])] for _ in range(2)]
        moved = d.add("Pad", moved, d.constant(np.int64(pads[0] + pads[1])))
        shape[1] += pads[0][1] + pads[1][1]
    return d.add("Conv", moved, d.weights([d.pick(2, 3, 4), shape[1], *([1] * (d.rank - 2))], 0))


PRODUCERS: dict[str, tuple[Producer, tuple[int, ...]]] = {
    "Conv": (lambda d: _convolve(d, ""), SPATIAL),
    "ConvOfDilations": (lambda d: _convolve(d, d.pick("", "some", "depthwise"), equal=False), (4, 5)),
    "ConvOfGroups": (lambda d: _convolve(d, d.pick("some", "depthwise")), SPATIAL),
    "ConvTranspose": (conv_transpose, SPATIAL),
    "MatMul": (matmul, ALL),
    "MatMulAndBias": (matmul_and_bias, ALL),
    "MatMulOfBatches": (matmul_of_batches, SPATIAL),
    "MatMulOfInputs": (matmul_of_inputs, ALL),
    "MatMulOfLeft": (matmul_of_left, ALL),
    "Gemm": (gemm, (2,)),
    **dict(_reductions()),
    **{op: (lambda d, op=op: d.add(op, d.input(d.shape())), SPATIAL)
       for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")},
    **{op: (_pool(op), SPATIAL) for op in ("MaxPool", "AveragePool", "LpPool")},
    "InstanceNormalization": (instance_normalization, SPATIAL),
    "LayerNormalization": (layer_normalization, ALL),
    "MeanVarianceNormalization": (mean_variance_normalization, ALL),
    "GroupNormalization": (group_normalization, SPATIAL),
    "LpNormalization": (
        lambda d: d.add("LpNormalization", d.input(d.shape()), axis=d.choices.randrange(d.rank), p=d.pick(1, 2, 2)),
        ALL,
    ),
    "L2OfAxes": (l2_of_axes, ALL),
    "Softmax": (lambda d: d.add(d.pick("Softmax", "LogSoftmax"), d.input(d.shape()), axis=d.choices.randrange(d.rank)),
                ALL),
    "BatchNormalization": (batch_normalization, ALL),
    "LRN": (lambda d: d.add("LRN", d.input(d.shape()), size=3), (4,)),
    "CumSum": (lambda d: d.add("CumSum", d.input(d.shape()), d.constant(np.int64(d.choices.randrange(d.rank)))), ALL),
    "Unary": (lambda d: d.add(d.pick(*UNARY), d.input(d.shape())), ALL),
    "Binary": (binary, ALL),
    "BinaryOfConstant": (binary_of_constant, ALL),
    "Where": (where, ALL),
    "Resize": (resize, SPATIAL),
    "Transpose": (lambda d: d.add("Transpose", d.input(d.shape()), perm=d.choices.sample(range(d.rank), d.rank)), ALL),
    "Gather": (gather, ALL),
    "Split": (split, ALL),
    "Concat": (concat, ALL),
    "Reshape": (reshape, ALL),
    "Squeeze": (squeeze, (2, 3, 4)),
    "Unsqueeze": (
        lambda d: d.add("Unsqueeze", d.input(d.shape(d.rank - 1)), d.constant(np.int64([d.choices.randrange(d.rank)]))),
        (3, 4, 5),
    ),
    "Pad": (pad, ALL),
    "Expand": (expand, ALL),
    "Tile": (
        lambda d: d.add("Tile", d.input(d.shape()),
                        d.constant(np.int64([1, *(d.pick(1, 2) for _ in range(d.rank - 1))]))),
        ALL,
    ),
    "DepthToSpace": (
        lambda d: d.add("DepthToSpace", d.input([d.batch, 8, 3, 4]), blocksize=2, mode=d.pick("DCR", "CRD")), (4,),
    ),
    "SpaceToDepth": (lambda d: d.add("SpaceToDepth", d.input([d.batch, 3, 4, 6]), blocksize=2), (4,)),
    "ReversedChannels": (reversed_channels, (4, 5)),
}
"""The function of a kind, and the possible ranks of its results."""
