"""States that the first type does not hold: of ranks that differ by ones, and stacks that begin without enough rows.

Each function appends one loop to a scope, as those that `bodies.GENERATORS` holds.
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
    """A Loop or a Scan of one of these kinds, at the innermost level, or several in each other."""
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
    """A state that may have another rank in each iteration, of one loop or of several in each other."""
    s.context.features["state of ranks that differ by ones"] += 1
    sizes = s.rng.choice(((), (), (3,), (2, 3)))
    start = s.random_constant(FLOAT, (*s.rng.choice(ONES), *sizes))
    last, flat = _loop_of_ranks(s, start, sizes, s.rng.choice((1, 1, 2, 3)))
    count = int(np.prod(sizes))
    end = s.emit("Reshape", [_read(s, last, sizes), s.ints(-1)], FLOAT, (count,), LARGEST)
    rows = s.add(FLOAT, (s.context.dim(0), count), LARGEST, flat)
    s.own.remove(rows)  # without iterations ONNX Runtime returns other dimensions
    return [end, rows]


def _loop_of_ranks(s: Scope, start: Val, sizes: tuple[int, ...], depth: int) -> tuple[Val, str]:
    """The last state, and the name of a scan output of its elements."""
    is_scan = s.context.chance(0.3)
    if is_scan:
        body = inner(s, "Scan", "type")
    else:
        body, iteration, flag_in = _body(s)
    state = body.parameter(FLOAT, (), LARGEST)
    body.own.remove(state)
    element = body.parameter(FLOAT, (), 1.0) if is_scan else None
    operators(body, body.rng.randint(0, 2))
    val = _read(body, state, sizes)
    flat = body.emit("Reshape", [val, body.ints(-1)], FLOAT, (int(np.prod(sizes)),), LARGEST)
    if depth > 1:
        s.context.features["state of ranks in another loop"] += 1
        val = _read(body, _loop_of_ranks(body, _of_rank(body, val, sizes), sizes, depth - 1)[0], sizes)
    operators(body, body.rng.randint(0, 1))
    after = _of_rank(body, val, sizes)
    if body.context.chance(0.4):
        then, other = inner(body, "If", "type"), inner(body, "If", "type")
        if element is not None:
            condition = compare(body, "Less", element, body.scalar(0.0), ())
        else:
            condition = compare(body, "Less", remainder(body, iteration, 2), body.scalar(1, INT64), ())
        graphs = {name: branch.graph(body.context.fresh(name),
                                     [produced(branch, _of_rank(branch, _read(branch, val, sizes), sizes))])
                  for name, branch in (("then_branch", then), ("else_branch", other))}
        name = body.context.fresh("o")
        body.node("If", [condition], [name], **graphs)
        body.names.add(name)
        after = Val(name, FLOAT, (), LARGEST)
    taken = [produced(body, after), produced(body, flat)]
    names = [s.context.fresh("o") for _ in taken]
    if element is not None:
        sequence = s.input(FLOAT, (s.context.symbol() if s.context.chance(0.5) else 3,), declared="exact")
        graph = body.graph(s.context.fresh("body"), taken)
        node = s.node("Scan", [start, sequence], names, body=graph, num_scan_inputs=1)
        s.context.scan_ranks[node.name] = [2]
    else:
        taken.insert(0, produced(body, flag_in))
        s.node("Loop", [_trips(s), None, start], names, body=body.graph(s.context.fresh("body"), taken))
    s.names.add(names[0])
    return Val(names[0], FLOAT, (), LARGEST), names[1]


def _read(s: Scope, val: Val, sizes: tuple[int, ...]) -> Val:
    """A value that broadcasting operators make of a value of some rank, bounded by 1; `sizes` are its last ones."""
    for _ in range(s.rng.randint(0, 3)):
        if s.context.chance(0.4):
            val = _emit(s, s.rng.choice(("Neg", "Abs", "Sigmoid", "Identity")), [val])
        elif s.context.chance(0.2) and not sizes:
            val = _emit(s, "ReduceSum", [val], keepdims=s.rng.randint(0, 1))
        else:
            other = s.pick(lambda v: True, local=0.8) if s.context.chance(0.4) else None
            shape = (*s.rng.choice(ONES), *s.rng.choice((sizes, sizes[1:], ())))
            operand = s.random_constant(FLOAT, shape) if other is None else to_scalar(s, other, FLOAT)
            val = _emit(s, s.rng.choice(("Add", "Mul", "Sub", "Max")), [val, operand])
    return _emit(s, "Tanh", [val])


def _of_rank(s: Scope, val: Val, sizes: tuple[int, ...]) -> Val:
    """The value as it is, or of a random rank."""
    shape = s.rng.choice((None, *ONES))
    if shape is None:
        return val
    return _emit(s, "Reshape", [val, s.constant(np.array((*shape, *sizes), np.int64))])


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
              "else_branch": other.graph(c.fresh("else"), [produced(other, full)])}
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
                 LARGEST)
    s.own.remove(cut)
    flat = s.emit("Reshape", [cut, s.ints(1, least * width)], FLOAT, (1, least * width), LARGEST)
    return s.emit("Reshape", [like(s, flat, LARGEST), s.ints(least, width)], FLOAT, (least, width), LARGEST)
