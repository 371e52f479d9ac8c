"""Operators that read integers; half of the steps end in a value of f32."""

import numpy as np

from tests.fuzz.graphs.graph import Graph, Value, broadcast, may_grow_to


def arithmetic(g: Graph, x: Value) -> None:
    op = g.choice_of("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min")
    sizes = [size if isinstance(size, int) and g.chance(0.5) else 1 for size in x.shape]
    number = g.numbers.integers(1, 5, sizes) * (1 if op in ("Mul", "Mod") else g.choice_of(1, -1))
    (found,) = g.node(op, x, g.constant(number, x.kind))
    # Products stay below 2^24, which f32 holds.
    g.add("Clip", found, g.constant(-500, x.kind), g.constant(500, x.kind), shape=x.shape, kind=x.kind)


def with_value(g: Graph, x: Value) -> None:
    other = g.choices.choice([each for each in g.values if each.kind == x.kind])
    shape = broadcast(x.shape, other.shape)
    if shape is not None and may_grow_to(shape):
        g.add(g.choice_of("Add", "Sub", "Max", "Min"), x, other, shape=shape, kind=x.kind)


def compared(g: Graph, x: Value) -> None:
    (condition,) = g.node(g.choice_of("Greater", "Equal", "LessOrEqual"), x, g.constant(1, x.kind))
    g.add("Cast", condition, to=1, shape=x.shape)


def chosen(g: Graph, x: Value) -> None:
    (condition,) = g.node("Less", x, g.constant(2, x.kind))
    g.add("Where", condition, x, g.constant(3, x.kind), shape=x.shape, kind=x.kind)


def as_float(g: Graph, x: Value) -> None:
    g.add("Mul", *g.node("Cast", x, to=1), g.constant(0.25), shape=x.shape)


def looked_up(g: Graph, x: Value) -> None:
    """A row of a table for each number."""
    rows, width = 7, g.choice_of(1, 3)
    if not may_grow_to((*x.shape, width)):
        return
    (index,) = g.node("Mod", x, g.constant(rows, x.kind))
    if g.chance(0.5):
        (index,) = g.node("Sub", index, g.constant(rows, x.kind))
    g.add("Gather", g.normal(rows, width), index, axis=0, shape=(*x.shape, width))


def one_hot(g: Graph, x: Value) -> None:
    if not may_grow_to((*x.shape, 5)):
        return
    axis = g.choices.randrange(-x.rank - 1, x.rank + 1)
    place = axis % (x.rank + 1)
    shape = (*x.shape[:place], 5, *x.shape[place:])
    g.add("OneHot", x, g.constant(5), g.constant([0.0, 1.5]), axis=axis, shape=shape)


def narrower(g: Graph, x: Value) -> None:
    g.add("Cast", x, to=6, shape=x.shape, kind=np.int32)


def reduced(g: Graph, x: Value) -> None:
    if x.rank:
        axis = g.choices.randrange(x.rank)
        op = g.choice_of("ReduceSum", "ReduceMax", "ReduceMin")
        g.add(op, x, g.constant([axis]), shape=x.with_size(axis, 1), kind=x.kind, keepdims=1)


LAYERS = ((2, arithmetic), (1, with_value), (1, compared), (1, chosen), (2, as_float), (1, looked_up), (1, one_hot),
          (1, narrower), (1, reduced))
