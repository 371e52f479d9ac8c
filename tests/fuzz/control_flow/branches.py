"""Random If nodes: captures, constants, branches of different shapes."""

import numpy as np

from .bodies import as_condition, fill, flag, generates, inner, produced, ranked
from .carried import returned_lists
from .pieces import compare, like, remainder
from .scope import Scope, known_outside
from .values import BOOL, FLOAT, INT64, STATE_LIMIT, Dim, Seq, Shape, Val


@generates("If")
def branch(s: Scope, depth: int) -> list[Val]:
    c = s.context
    condition, known = _if_condition(s)
    deep = s.rng.choice(("then", "else", "both"))
    then = inner(s, "If")
    other = inner(s, "If", then.style)
    lonely = c.chance(0.25)
    for body, name in ((then, "then"), (other, "else")):
        if not (lonely and name == "else"):
            fill(body, depth if deep in (name, "both") else 1)
    outputs: list[Val | Seq] = []
    answers: list[Val | Seq] = []
    results: list[tuple[Val, Val, Shape]] = []
    for _ in range(s.rng.choice((1, 1, 2, 3))):
        val = produced(then, _branch_output(then), outputs)
        answer = produced(other, _matching(other, val, lonely), answers)
        outputs.append(val)
        answers.append(answer)
        results.append((val, answer, _union(s, val.shape, answer.shape)))
    lists = [] if lonely else returned_lists(s, then, other)
    for made, answered, _ in lists:
        outputs.append(produced(then, made, outputs))
        answers.append(produced(other, answered, answers))
    c.features["If branch without captures"] += (not then.captured) + (not other.captured)
    dead = None if known is None or c.opset < 9 else other if known else then
    if dead is not None and c.chance(0.7):
        _break(dead)
    names = [c.fresh("o") for _ in outputs]
    graphs = {"then_branch": then.graph(c.fresh("then"), outputs), "else_branch": other.graph(c.fresh("else"), answers)}
    s.node("If", [condition], names, **graphs)
    found = []
    for (_, _, seq), name in zip(lists, names[len(results) :], strict=True):
        s.add_list(seq, seq.least, name)
    for (val, answer, shape), name in zip(results, names, strict=False):
        if val.rank == answer.rank:
            found.append(s.add(val.dtype, shape, max(val.mag, answer.mag), name))
            continue
        c.features["If ranks differ"] += 1
        s.names.add(name)
        found.append(_of_one_rank(s, Val(name, val.dtype, (), max(val.mag, answer.mag))))
    return found


def _of_one_rank(s: Scope, val: Val) -> Val:
    """Operators on a value whose rank depends on the condition, until its rank is known again."""
    if val.dtype != BOOL and s.context.chance(0.6):
        s.context.features["If ranks differ, a chain of readers"] += 1
        for _ in range(s.rng.randint(1, 3)):
            operand = s.scalar(2, val.dtype)
            made = s.emit(s.rng.choice(("Add", "Mul", "Sub")), [val, operand], val.dtype, (), val.mag)
            s.own.remove(made)
            val = made
    kind = s.rng.choice(("flat", "flat", "sum", "rank", "body"))
    if kind == "sum" and val.dtype != BOOL:
        return s.emit("ReduceSum", [val], val.dtype, (), val.mag * 50, keepdims=0)
    if kind == "body" and val.dtype != BOOL:
        return _summed_in_a_loop(s, val)
    if kind == "rank":
        sizes = s.emit("Shape", [val], INT64, (s.context.dim(0),), 4.0)
        return s.emit("ReduceSum", [sizes], INT64, (1,), 12.0, keepdims=1)
    return s.emit("Reshape", [val, s.ints(-1)], val.dtype, (s.context.dim(0),), val.mag)


def _summed_in_a_loop(s: Scope, val: Val) -> Val:
    """A Loop that captures a value whose rank depends on the condition."""
    body = inner(s, "Loop", "full")
    body.iteration = body.parameter(INT64, (), 2.0)
    flag_in = body.parameter(BOOL, (), 1.0)
    total = body.parameter(val.dtype, (), STATE_LIMIT[val.dtype])
    part = body.emit("ReduceSum", [val], val.dtype, (), val.mag * 50, keepdims=0)
    added = body.emit("Add", [total, part], val.dtype, (), total.mag + part.mag)
    taken = [produced(body, flag_in), body.squash(added, STATE_LIMIT[val.dtype])]
    name = s.context.fresh("o")
    graph = body.graph(s.context.fresh("body"), taken)
    s.node("Loop", [s.scalar(2, INT64), None, s.scalar(1, val.dtype)], [name], body=graph)
    return s.add(val.dtype, (), STATE_LIMIT[val.dtype], name)


def _break(body: Scope) -> None:
    """Put an unknown operator into a branch that is never taken."""
    nodes = [node for node in body.nodes if node.op_type not in ("Constant", "Loop", "Scan", "If")]
    if nodes:
        body.context.broken.add(body.rng.choice(nodes).name)


def _if_condition(s: Scope) -> tuple[Val, bool | None]:
    """The condition, and its value if that is known."""
    c = s.context
    rank = s.rng.choices((0, 1, 2), (7, 2, 1))[0]
    kinds = ("input", "computed", "iteration", "constant", "shape")
    kind = s.rng.choices(kinds, (4, 4, 2, 1.2, 1.2))[0]
    counter = s.counter
    if kind == "iteration" and counter is None:
        kind = "computed"
    c.features[f"If condition {kind}"] += 1
    c.features["If condition of rank 2 and more"] += rank > 1
    if kind == "iteration":
        assert counter is not None
        parity = remainder(s, counter, 2)
        return _loosened(s, ranked(s, s.emit("Equal", [parity, s.scalar(1, INT64)], BOOL, parity.shape), rank)), None
    if kind == "input":
        choices = tuple(s.rng.sample((0, 1, s.rng.randint(0, 1)), 3))
        return _loosened(s, s.input(BOOL, (1,) * rank, choices)), None
    if kind == "constant":
        value = c.chance(0.5)
        return _hidden(s, s.constant(np.full((1,) * rank, value))), value
    sized = s.pick(lambda v: v.rank > 0)
    if kind == "shape" and sized is not None:
        count = s.emit("Shape", [s.emit("Shape", [sized], INT64, (sized.rank,), 12.0)], INT64, (1,), 12.0)
        guess = s.rng.randint(1, 3)
        same = s.emit("Equal", [count, s.ints(guess)], BOOL, (1,))
        return _hidden(s, ranked(s, same, rank)), guess == sized.rank
    return _loosened(s, flag(s, rank)), None


def _hidden(s: Scope, val: Val) -> Val:
    """A known condition that ONNX Runtime does not fold: it refuses some known ones whose branches differ in shape."""
    size = s.emit("Size", [s.context.inputs[0].val], INT64, (), 100.0)
    negative = compare(s, "Less", size, s.scalar(0, INT64), ())
    return s.dropped("Or", [val, negative], BOOL, val.shape)


def _loosened(s: Scope, val: Val) -> Val:
    return val if val.rank > 1 else as_condition(s, val)


def _branch_output(body: Scope) -> Val:
    # Before opset 11 both branches return one shape, which only static shapes guarantee.
    own = [v for v in body.own if v.rank <= 4 and (v.is_static or body.context.opset >= 11)]
    kind = body.rng.choices(("computed", "capture", "constant"), (8, 2, 1))[0]
    fits = lambda v: v.rank <= 4 and (v.is_static or body.context.opset >= 11)  # noqa: E731
    captured = body.outer.pick(fits) if kind == "capture" and body.outer else None
    if captured is not None and captured.name not in body.hidden:
        body.context.features["If capture returned"] += 1
        return captured
    if kind == "constant" or not own:
        shape = [body.rng.randint(1, 3) for _ in range(body.rng.randint(0, 2))]
        return body.random_constant(body.rng.choice((FLOAT, INT64)), shape)
    return body.rng.choice(own[-5:])


def _matching(body: Scope, val: Val, lonely: bool) -> Val:
    """A value for the other branch: the same type and rank, mostly the same shape."""
    c = body.context
    if c.opset >= 11 and c.chance(0.07) and val.rank:
        return body.random_constant(val.dtype, [body.rng.randint(1, 2) for _ in range(val.rank - 1)])
    differ = c.opset >= 11 and c.chance(0.25)
    same = [] if lonely or differ else body.candidates(lambda v: v.dtype == val.dtype and v.shape == val.shape)
    if same:
        return like(body, body.rng.choice(same)) if c.chance(0.6) else body.rng.choice(same)
    near = body.candidates(lambda v: v.dtype == val.dtype and v.rank == val.rank > 0)
    near = [] if lonely or c.opset < 11 else near
    if near and (differ or c.chance(0.6)):
        return body.rng.choice(near)
    if val.is_static and not differ:
        c.features["If branch a constant"] += 1
        return body.random_constant(val.dtype, [int(d) for d in val.shape])
    return body.random_constant(val.dtype, [body.rng.randint(1, 3) for _ in range(val.rank)])


def _union(s: Scope, a: Shape, b: Shape) -> Shape:
    if len(a) != len(b):
        return ()
    known = known_outside(s)
    dims: list[Dim] = []
    for x, y in zip(a, b, strict=True):
        same = x == y and (isinstance(x, int) or x in known)
        sizes = [d if isinstance(d, int) else s.context.minimum[d] for d in (x, y)]
        dims.append(x if same else s.context.dim(min(sizes)))
    if tuple(dims) != a:
        s.context.features["If shapes differ"] += 1
    return tuple(dims)
