"""Layers of networks: products, convolutions, pooling and normalisations of images and sequences."""

from typing import Any

from tests.fuzz.graphs.graph import FLOAT, Graph, Value, broadcast, may_grow_to

ACTIVATIONS = ("Relu", "Sigmoid", "HardSwish", "Elu")


def product(g: Graph, x: Value) -> None:
    """A product with a constant matrix, or with a batch of them."""
    if x.rank - 1 not in x.known:
        return
    columns = g.choice_of(1, 2, 4, 8)
    sizes = [x.size(-1), columns]
    if x.rank > 2 and g.chance(0.25):
        batch = x.shape[-3]
        sizes.insert(0, g.choice_of(1, batch if isinstance(batch, int) else 1))
    y = g.add("MatMul", x, g.normal(*sizes, scale=0.5), shape=x.with_size(x.rank - 1, columns))
    if g.chance(0.5):
        g.add("Add", y, g.normal(columns), shape=y.shape)


def gemm(g: Graph, x: Value) -> None:
    if x.rank == 2 and 1 in x.known:
        columns, transposed = g.choice_of(1, 3, 4), g.choices.randint(0, 1)
        sizes = [x.size(1), columns][:: -1 if transposed else 1]
        bias = [g.normal(*g.choice_of((columns,), (1, columns), (1,), ()))] if g.chance(0.7) else []
        factors = {"alpha": g.choice_of(1.0, 0.5), "beta": g.choice_of(1.0, 2.0)}
        g.add("Gemm", x, g.normal(*sizes), *bias, shape=(x.shape[0], columns), transB=transposed, **factors)


def product_of_values(g: Graph, x: Value) -> None:
    """x Y^T with another value, or with x itself."""
    if x.rank < 2:
        return
    fitting = [each for each in g.values if each.kind == FLOAT and each.rank >= 2 and each.shape[-1] == x.shape[-1]
               and broadcast(each.shape[:-2], x.shape[:-2]) is not None]
    y = g.choices.choice(fitting)
    shape = (*(broadcast(y.shape[:-2], x.shape[:-2]) or ()), x.shape[-2], y.shape[-2])
    if may_grow_to(shape):
        order = [*range(y.rank - 2), y.rank - 1, y.rank - 2]
        g.add("MatMul", x, *g.node("Transpose", y, perm=order), shape=shape)


def attention(g: Graph, x: Value) -> None:
    """softmax(a x x^T) x."""
    if x.rank >= 2:
        order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
        (scores,) = g.node("MatMul", x, *g.node("Transpose", x, perm=order))
        (scores,) = g.node("Mul", scores, g.constant(0.3))
        g.add("MatMul", *g.node("Softmax", scores, axis=-1), x, shape=x.shape)


def _convolution(g: Graph, x: Value, op: str, *, by_channel: bool = False) -> None:
    if 1 not in x.known:
        return
    channels, rank = x.size(1), x.rank - 2
    known = [size for size in x.shape[2:] if isinstance(size, int)]
    is_small = any(size < 3 for size in known) or (len(known) < rank and g.chance(0.3))
    size = 1 if is_small else 3
    outputs = channels if by_channel else g.choice_of(1, 2, 4, 8, channels)
    group = channels if by_channel else 1
    filters = [channels, outputs] if op == "ConvTranspose" else [outputs, channels // group]
    bias = [g.normal(outputs)] if g.chance(0.5) else []
    attributes: dict[str, Any] = {"pads": [size // 2] * (2 * rank), "group": group}
    y = g.add(op, x, g.normal(*filters, *[size] * rank, scale=0.3), *bias, shape=x.with_size(1, outputs), **attributes)
    if g.chance(0.4):
        g.add(g.choices.choice(ACTIVATIONS), y, shape=y.shape)


def conv(g: Graph, x: Value) -> None:
    _convolution(g, x, "Conv")


def depthwise(g: Graph, x: Value) -> None:
    _convolution(g, x, "Conv", by_channel=True)


def transposed_conv(g: Graph, x: Value) -> None:
    _convolution(g, x, "ConvTranspose")


def pool(g: Graph, x: Value) -> None:
    g.add(g.choice_of("MaxPool", "AveragePool"), x, shape=x.shape, kernel_shape=[3, 3], pads=[1] * 4)


def global_pool(g: Graph, x: Value) -> None:
    g.add(g.choice_of("GlobalAveragePool", "GlobalMaxPool"), x, shape=(*x.shape[:2], 1, 1))


def normalization(g: Graph, x: Value) -> None:
    if 1 in x.known:
        op = g.choice_of("BatchNormalization", "BatchNormalization", "InstanceNormalization")
        count = 4 if op == "BatchNormalization" else 2
        g.add(op, x, *(g.positive(x.size(1)) for _ in range(count)), shape=x.shape, epsilon=0.01)


def depth_to_space(g: Graph, x: Value) -> None:
    if {1, 2, 3} <= set(x.known) and x.size(1) % 4 == 0:
        shape = (x.shape[0], x.size(1) // 4, x.size(2) * 2, x.size(3) * 2)
        g.add("DepthToSpace", x, shape=shape, blocksize=2, mode=g.choice_of("DCR", "CRD"))


def space_to_depth(g: Graph, x: Value) -> None:
    if {1, 2, 3} <= set(x.known) and x.size(2) % 2 == 0 == x.size(3) % 2:
        g.add("SpaceToDepth", x, shape=(x.shape[0], x.size(1) * 4, x.size(2) // 2, x.size(3) // 2), blocksize=2)


def resize(g: Graph, x: Value) -> None:
    if {2, 3} <= set(x.known) and max(x.size(2), x.size(3)) < 9:
        mode = {"mode": g.choice_of("nearest", "linear"), "nearest_mode": "floor"}
        shape = (*x.shape[:2], x.size(2) * 2, x.size(3) * 2)
        scales = g.constant([1.0, 1.0, 2.0, 2.0])
        g.add("Resize", x, "", scales, shape=shape, coordinate_transformation_mode="asymmetric", **mode)


def shuffle(g: Graph, x: Value) -> None:
    if {1, 2, 3} <= set(x.known) and x.size(1) % 2 == 0:
        sizes = [x.size(2), x.size(3)]
        (parts,) = g.node("Reshape", x, g.constant([0, 2, x.size(1) // 2, *sizes]))
        (parts,) = g.node("Transpose", parts, perm=[0, 2, 1, 3, 4])
        g.add("Reshape", parts, g.constant([0, -1, *sizes]), shape=x.shape)


PRODUCTS = ((3, product), (1, gemm), (1, product_of_values), (1, attention))
SEQUENCES = ((2, conv), (1, normalization))
IMAGES = ((5, conv), (3, depthwise), (1, transposed_conv), (3, pool), (1, global_pool), (3, normalization),
          (1, depth_to_space), (1, space_to_depth), (1, resize), (1, shuffle))
