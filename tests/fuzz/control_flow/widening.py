"""States that the first type does not hold: of ranks that differ by ones, and stacks that begin without enough rows.

Each function appends one Loop to a scope, as those that `bodies.GENERATORS` holds.
"""

import numpy as np

from .bodies import generates, inner, operators, produced
from .pieces import compare, like, remainder, to_scalar
from .scope import Scope
from .values import BOOL, FLOAT, INT64, Val

LARGEST = 50.0
ONES = ((), (1,), (1, 1))


@generates("widening")
def widening(s: Scope, depth: int) -> list[Val]:
    """A Loop of one of these kinds, at the innermost level."""
    return _ranks(s) if s.context.chance(0.5) else _stack(s)


def _body(s: Scope) -> tuple[Scope, Val, Val]:
    """A body that declares no shapes of states, its iteration number and its condition."""
    body = inner(s, "Loop", "type")
    body.iteration = body.parameter(INT64, (), 6.0)
    flag_in = body.parameter(BOOL, (), 1.0)
    body.pinned = [body.iteration, flag_in]
    return body, body.iteration, flag_in


def _trips(s: Scope) -> Val:
    return s.input(INT64, (), tuple(s.rng.choice((0, 1, 2, 3, 5)) for _ in range(3)))


def _ranks(s: Scope) -> list[Val]:
    """A state of one element that may have another rank in each iteration."""
    s.context.features["state of ranks that differ by ones"] += 1
    body, iteration, flag_in = _body(s)
    state = body.parameter(FLOAT, (), LARGEST)
    body.own.remove(state)
    operators(body, body.rng.randint(0, 2))
    val = _read(body, state)
    flat = body.emit("Reshape", [val, body.ints(-1)], FLOAT, (1,), LARGEST)
    operators(body, body.rng.randint(0, 1))
    after = _of_rank(body, val)
    if body.context.chance(0.4):
        then, other = inner(body, "If", "type"), inner(body, "If", "type")
        parity = remainder(body, iteration, 2)
        condition = compare(body, "Less", parity, body.scalar(1, INT64), ())
        graphs = {name: branch.graph(body.context.fresh(name), [produced(branch, _of_rank(branch, _read(branch, val)))])
                  for name, branch in (("then_branch", then), ("else_branch", other))}  # fmt: skip
        name = body.context.fresh("o")
        body.node("If", [condition], [name], **graphs)
        body.names.add(name)
        after = Val(name, FLOAT, (), LARGEST)
    taken = [produced(body, flag_in), produced(body, after), produced(body, flat)]
    names = [s.context.fresh("o") for _ in taken[1:]]
    start = s.random_constant(FLOAT, s.rng.choice(ONES))
    s.node("Loop", [_trips(s), None, start], names, body=body.graph(s.context.fresh("body"), taken))
    s.names.add(names[0])
    end = s.emit("Reshape", [_read(s, Val(names[0], FLOAT, (), LARGEST)), s.ints(-1)], FLOAT, (1,), LARGEST)
    return [end, s.add(FLOAT, (s.context.dim(0), 1), LARGEST, names[1])]


def _read(s: Scope, val: Val) -> Val:
    """A value that broadcasting operators make of a value of some rank, bounded by 1."""
    for _ in range(s.rng.randint(0, 3)):
        if s.context.chance(0.4):
            val = _emit(s, s.rng.choice(("Neg", "Abs", "Sigmoid", "Identity")), [val])
        elif s.context.chance(0.2):
            val = _emit(s, "ReduceSum", [val], keepdims=s.rng.randint(0, 1))
        else:
            other = s.pick(lambda v: True, local=0.8) if s.context.chance(0.4) else None
            shape = s.rng.choice(ONES)
            operand = s.random_constant(FLOAT, shape) if other is None else to_scalar(s, other, FLOAT)
            val = _emit(s, s.rng.choice(("Add", "Mul", "Sub", "Max")), [val, operand])
    return _emit(s, "Tanh", [val])


def _of_rank(s: Scope, val: Val) -> Val:
    """The value as it is, or of a random rank."""
    shape = s.rng.choice((None, *ONES))
    if shape is None:
        return val
    return _emit(s, "Reshape", [val, s.constant(np.array(shape, np.int64))])


def _emit(s: Scope, op: str, inputs: list[Val], **attributes: int) -> Val:
    """A value of unknown rank, which no other operator reads; nor those that it is made of."""
    ready = list(s.own)
    made = s.emit(op, inputs, FLOAT, (), LARGEST, **attributes)
    s.own[:] = ready
    return made


def _stack(s: Scope) -> list[Val]:
    """Rows are appended until there are as many as the other branch needs."""
    c = s.context
    c.features["stack that begins with too few rows"] += 1
    width, least = s.rng.randint(1, 3), s.rng.randint(1, 3)
    rows = s.rng.choice((0, 0, min(1, least - 1)))
    body, iteration, flag_in = _body(s)
    stack = body.parameter(FLOAT, (c.dim(0), width), LARGEST)
    operators(body, body.rng.randint(0, 2))
    source = body.pick(lambda v: True, local=0.9)
    number = body.scalar(1, FLOAT) if source is None else to_scalar(body, source, FLOAT)
    row = body.emit("Expand", [number, body.ints(1, width)], FLOAT, (1, width), number.mag)
    row = body.squash(row, LARGEST)
    if c.chance(0.5):
        sizes = body.emit("Shape", [stack], INT64, (2,), 12.0)
        count = body.emit("Gather", [sizes, body.constant(np.array(0))], INT64, (), 12.0, axis=0)
        few = compare(body, "Less", count, body.scalar(least, INT64), ())
    else:
        few = compare(body, "Less", iteration, body.scalar(least - rows, INT64), ())
    then, other = inner(body, "If", "type"), inner(body, "If", "type")
    more = then.emit("Concat", [stack, row], FLOAT, (c.dim(1), width), LARGEST, axis=0)
    full = _last_rows(other, stack, least, width)
    if c.chance(0.5):
        full = other.emit("Concat", [full, row], FLOAT, (least + 1, width), LARGEST, axis=0)
    graphs = {"then_branch": then.graph(c.fresh("then"), [produced(then, more)]),
              "else_branch": other.graph(c.fresh("else"), [produced(other, full)])}  # fmt: skip
    name = c.fresh("o")
    body.node("If", [few], [name], **graphs)
    after = body.add(FLOAT, (c.dim(1), width), LARGEST, name)
    taken = [produced(body, flag_in), produced(body, after)]
    out = s.context.fresh("o")
    start = s.random_constant(FLOAT, (rows, width))
    s.node("Loop", [_trips(s), None, start], [out], body=body.graph(c.fresh("body"), taken))
    return [s.add(FLOAT, (c.dim(0), width), LARGEST, out)]


def _last_rows(s: Scope, stack: Val, least: int, width: int) -> Val:
    """A function of the last rows that is refused for a tensor with fewer rows."""
    if s.context.chance(0.3):
        k = s.ints(least)
        name, places = s.context.fresh("o"), s.context.fresh("o")
        s.node("TopK", [stack, k], [name, places], axis=0)
        return s.add(FLOAT, (least, width), LARGEST, name)
    cut = s.emit("Slice", [stack, s.ints(-least), s.ints(2**31 - 1), s.ints(0)], FLOAT, (s.context.dim(0), width),
                 LARGEST)  # fmt: skip
    s.own.remove(cut)
    flat = s.emit("Reshape", [cut, s.ints(1, least * width)], FLOAT, (1, least * width), LARGEST)
    return s.emit("Reshape", [like(s, flat, LARGEST), s.ints(least, width)], FLOAT, (least, width), LARGEST)
