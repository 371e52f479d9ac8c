"""Functions of elements, with constants and with other values."""

import numpy as np

from tests.fuzz.graphs.graph import FLOAT, Graph, Value, broadcast, may_grow_to

UNARY = ("Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Erf", "HardSwish", "Elu", "LeakyRelu", "Softplus", "HardSigmoid",
         "Selu", "Mish", "Softsign", "Sin", "Cos", "Celu", "ThresholdedRelu", "Atan")
SYMMETRIC = ("Add", "Sub", "Mul", "Max", "Min")


def unary(g: Graph, x: Value) -> None:
    g.add(g.choices.choice(UNARY), x, shape=x.shape)


def swish(g: Graph, x: Value) -> None:
    g.add("Mul", x, *g.node("Sigmoid", x), shape=x.shape)


def gelu(g: Graph, x: Value) -> None:
    (inner,) = g.node("Erf", *g.node("Div", x, g.constant(1.41421356)))
    (inner,) = g.node("Add", inner, g.constant(1.0))
    g.add("Mul", *g.node("Mul", x, inner), g.constant(0.5), shape=x.shape)


def with_constant(g: Graph, x: Value) -> None:
    """An operator with a constant of any shape that broadcasts."""
    sizes = [size if isinstance(size, int) and g.chance(0.6) else 1 for size in x.shape]
    if g.chance(0.3):
        sizes = sizes[g.choices.randrange(len(sizes) + 1) :]
    while sizes and sizes[0] == 1 and g.chance(0.5):
        sizes = sizes[1:]
    if g.chance(0.15):
        sizes = [g.choice_of(1, 1, 2)] + [1] * (x.rank - len(sizes)) + sizes
    shape = broadcast(x.shape, sizes)
    if shape is None or not may_grow_to(shape):
        return
    op = g.choices.choice((*SYMMETRIC, "Mul", "Div", "Pow"))
    if op == "Pow":
        exponent = g.choice_of(2.0, 0.5, 1.0, 3.0)
        g.add(op, *g.node("Abs", x), g.constant(np.full(sizes, exponent)), shape=shape)
        return
    operands = [x.name, g.positive(*sizes)]
    if op in SYMMETRIC and g.chance(0.3):
        operands.reverse()
    g.add(op, *operands, shape=shape)


def with_value(g: Graph, x: Value) -> None:
    other = g.choices.choice([each for each in g.values if each.kind == FLOAT])
    shape = broadcast(x.shape, other.shape)
    if shape is not None and may_grow_to(shape):
        g.add(g.choices.choice(SYMMETRIC), x, other, shape=shape)


def variadic(g: Graph, x: Value) -> None:
    others = g.choices.choices([each for each in g.values if each.kind == FLOAT], k=2)
    shape = broadcast(x.shape, *(each.shape for each in others))
    if shape is not None and may_grow_to(shape):
        g.add(g.choice_of("Sum", "Max", "Min", "Mean"), x, *others, shape=shape)


def clip(g: Graph, x: Value) -> None:
    g.add("Clip", x, g.constant(g.choice_of(-0.7, 0.0)), g.constant(g.choice_of(0.9, 6.0)), shape=x.shape)


def prelu(g: Graph, x: Value) -> None:
    if x.rank >= 2 and 1 in x.known:
        slopes = g.choice_of([1], [x.size(1)] + [1] * (x.rank - 2))
        g.add("PRelu", x, g.constant(g.numbers.uniform(-0.5, 0.5, slopes)), shape=x.shape)


def where(g: Graph, x: Value) -> None:
    """x, or a constant, by a comparison with a constant or with another value."""
    others = [each for each in g.values if each.kind == FLOAT and each.shape == x.shape]
    other = g.choices.choice(others).name if g.chance(0.4) else g.constant(0.1)
    (condition,) = g.node(g.choice_of("Greater", "Less", "GreaterOrEqual"), x, other)
    if g.chance(0.3):
        (condition,) = g.node("Not", condition)
    branches = [x.name, g.constant(g.choice_of(-1.0, 0.0, 0.3))]
    g.add("Where", condition, *(branches if g.chance(0.6) else branches[::-1]), shape=x.shape)


def wider(g: Graph, x: Value) -> None:
    """A part of the graph in f64."""
    (inner,) = g.node("Cast", x, to=11)
    (inner,) = g.node("Mul", inner, g.constant(3.0, np.float64))
    g.add("Cast", inner, to=1, shape=x.shape)


LAYERS = ((3, unary), (5, with_constant), (3, with_value), (1, variadic), (1, swish), (1, gelu), (1, clip), (1, prelu),
          (1, where), (1, wider))
