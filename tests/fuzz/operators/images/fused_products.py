"""Convolutions and matrix products with activations, sums and transpositions."""

from typing import Any

from tests.fuzz.operators.draw import OMITTED, Draw, Node
from tests.fuzz.operators.images.convolution import large_enough, padding, window


def convolution(d: Draw) -> Node:
    """Z has the shape of the result, so its sizes follow from those of x."""
    dtype, spatial = d.dtype("T"), d.pick(1, 2, 2, 2, 3)
    w = window(d, spatial)
    pads = padding(d, w["kernel"])
    rule = pads["auto_pad"]
    same = str(rule).startswith("SAME")
    if same:
        w["dilations"] = [1] * spatial
    groups = d.pick(1, 1, 2, 3)
    each, out = d.integer(1, 3), d.integer(1, 3) * groups
    x = [d.size(empty=0.01), groups * each, *large_enough(d, w["kernel"], w["dilations"])]
    first = d.data(x, dtype)
    weights = d.data([out, each, *w["kernel"]], dtype, constant=0.8, computed=False)
    bias = d.optional(d.data([out], dtype, constant=0.8))
    explicit = pads["pads"] if isinstance(pads["pads"], list) and rule in (OMITTED, "NOTSET") else [0] * 2 * spatial
    sizes = []
    for i, (size, k, step, gap) in enumerate(zip(x[2:], w["kernel"], w["strides"], w["dilations"], strict=True)):
        span = size + explicit[i] + explicit[i + spatial] - (k - 1) * gap - 1
        sizes.append(-(-size // step) if same else span // step + 1)
    z = d.optional(d.data([x[0], out, *sizes], dtype), 0.4)
    name, parameters = d.pick((OMITTED, OMITTED), ("Relu", OMITTED), ("Tanh", OMITTED), ("Sigmoid", OMITTED),
                              ("HardSwish", OMITTED), ("LeakyRelu", [0.1]), ("Clip", [-0.5, 2.0]),
                              ("HardSigmoid", [0.3, 0.4]))
    return d.node([first, weights, bias, z], group=groups, kernel_shape=d.maybe(w["kernel"]), strides=w["strides"],
                  dilations=OMITTED if same else w["dilations"], activation=name, activation_params=parameters, **pads)


GEMM_ACTIVATIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Relu", ()), ("Tanh", ()), ("Sigmoid", ()), ("Softplus", ()), ("Softsign", ()), ("LeakyRelu", ("alpha",)),
    ("Elu", ("alpha",)), ("Celu", ("alpha",)), ("ThresholdedRelu", ("alpha",)), ("HardSigmoid", ("alpha", "beta")),
    ("Selu", ("alpha", "gamma")), ("ScaledTanh", ("alpha", "beta")), ("ParametricSoftplus", ("alpha", "beta")),
)
"""The activations of the kernel, and the attributes that each requires."""


def gemm(d: Draw) -> Node:
    """C is broadcast to the product."""
    dtype = d.dtype("T", "float float16")
    rows, inner, columns = d.size(), d.size(empty=0), d.size()
    trans_a, trans_b = d.pick(0, 0, 1), d.pick(0, 0, 1)
    a = d.data([inner, rows] if trans_a else [rows, inner], dtype)
    b = d.data([columns, inner] if trans_b else [inner, columns], dtype, constant=0.5)
    c = d.data(d.pick([rows, columns], [columns], [1, columns], [rows, 1], [], [1]), dtype)
    name, needed = d.pick(*GEMM_ACTIVATIONS)
    parameters: dict[str, Any] = {f"activation_{each}": d.number(0.2, 1.5) for each in needed}
    return d.node([a, b, d.optional(c, 0.8)], alpha=d.maybe(d.pick(1.0, 0.5, -2.0)),
                  beta=d.maybe(d.pick(1.0, 0.5, 0.0)), transA=trans_a, transB=trans_b, activation=name, **parameters)


def product(d: Draw) -> Node:
    """Each matrix may be stored transposed, or with its rows in the first dimension of all."""
    dtype = d.dtype("T")
    rows, inner, columns = d.size(), d.size(empty=0.01), d.size()
    has_batches = not d.op.endswith("TransposeMatMul")
    moved = has_batches and d.chance(0.4)
    before = [d.size() for _ in range(d.integer(1, 2))] if moved else []
    stacks = [before, before] if moved else d.broadcast(2, 2)
    ports, attributes = [], {}
    for letter, stack, matrix, share in zip("AB", stacks, ([rows, inner], [inner, columns]), (0.1, 0.4), strict=True):
        turned, first = d.chance(0.5), moved and d.chance(0.6)
        stored = matrix[::-1] if turned else matrix
        shape = [stored[0], *stack, stored[1]] if first else [*stack, *stored]
        ports.append(d.data(shape, dtype, constant=share))
        attributes |= {
            f"trans{letter}": 1 if turned else d.maybe(0, 0.3), f"transBatch{letter}": 1 if first else d.maybe(0, 0.3)
        }
    return d.node(ports, alpha=d.maybe(d.pick(1.0, 0.125, -2.5)), **attributes)


OPERATORS = {"com.microsoft::FusedConv": convolution, "com.microsoft::FusedGemm": gemm,
             "com.microsoft::FusedMatMul": product, "com.microsoft::TransposeMatMul": product}
