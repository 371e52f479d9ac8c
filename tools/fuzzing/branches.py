"""Random If nodes: captures, constants, branches that differ in shape."""

from __future__ import annotations

import numpy as np

from .bodies import STYLES, fill, flag, generates, inner, produced, ranked
from .pieces import like
from .scope import BOOL, FLOAT, INT64, Dim, Scope, Shape, Val, known_outside


@generates("If")
def branch(s: Scope, depth: int) -> list[Val]:
    c = s.context
    condition = _if_condition(s)
    deep = s.rng.choice(("then", "else", "both"))
    then, other = inner(s, "If"), inner(s, "If")
    lonely = c.chance(0.15)
    for body, name in ((then, "then"), (other, "else")):
        if not (lonely and name == "else"):
            fill(body, depth if deep in (name, "both") else 1)
    style = s.rng.choice(STYLES)
    outputs: list[Val] = []
    answers: list[Val] = []
    results: list[tuple[Val, Shape]] = []
    for _ in range(s.rng.choice((1, 1, 2, 3))):
        val = produced(then, _branch_output(then), outputs)
        answer = produced(other, _matching(other, val, lonely), answers)
        outputs.append(val)
        answers.append(answer)
        results.append((val, _union(s, val.shape, answer.shape)))
    c.features["If branch without captures"] += (not then.captured) + (not other.captured)
    names = [c.fresh("o") for _ in outputs]
    graphs = {
        "then_branch": then.graph(c.fresh("then"), outputs, style),
        "else_branch": other.graph(c.fresh("else"), answers, style),
    }
    s.node("If", [condition], names, **graphs)
    found = []
    for (val, shape), answer, name in zip(results, answers, names, strict=True):
        if val.rank == answer.rank:
            found.append(s.add(val.dtype, shape, max(val.mag, answer.mag), name))
            continue
        c.features["If ranks differ"] += 1
        s.names.add(name)
        found.append(s.emit("Reshape", [name, s.ints(-1)], val.dtype, (c.dim(0),), max(val.mag, answer.mag)))
    return found


def _if_condition(s: Scope) -> Val:
    c = s.context
    rank = int(c.chance(0.3))
    kind = s.rng.choices(("input", "computed", "iteration", "constant"), (4, 4, 2, 0.7))[0]
    c.features[f"If condition {kind}"] += 1
    if kind == "iteration" and s.iteration is not None:
        parity = s.emit("Mod", [s.iteration, s.scalar(2, INT64)], INT64, s.iteration.shape, 2.0)
        return ranked(s, s.emit("Equal", [parity, s.scalar(1, INT64)], BOOL, parity.shape), rank)
    if kind == "input":
        return s.input(BOOL, (1,) * rank, tuple(s.rng.sample((0, 1, s.rng.randint(0, 1)), 3)))
    if kind == "constant":
        return s.constant(np.full((1,) * rank, c.chance(0.5)))
    return flag(s, rank)


def _branch_output(body: Scope) -> Val:
    own = [v for v in body.own if v.rank <= 4]
    kind = body.rng.choices(("computed", "capture", "constant"), (8, 2, 1))[0]
    captured = body.outer.pick(lambda v: v.rank <= 4) if kind == "capture" and body.outer else None
    if captured is not None and captured.name not in body.hidden:
        body.context.features["If capture returned"] += 1
        return captured
    if kind == "constant" or not own:
        shape = [body.rng.randint(1, 3) for _ in range(body.rng.randint(0, 2))]
        return body.random_constant(body.rng.choice((FLOAT, INT64)), shape)
    return body.rng.choice(own[-5:])


def _matching(body: Scope, val: Val, lonely: bool) -> Val:
    """A value for the other branch: same type and rank, mostly the same shape."""
    c = body.context
    if c.chance(0.03) and val.rank:
        return body.random_constant(val.dtype, [body.rng.randint(1, 2) for _ in range(val.rank - 1)])
    differ = c.chance(0.25)
    same = [] if lonely or differ else body.candidates(lambda v: v.dtype == val.dtype and v.shape == val.shape)
    if same:
        return like(body, body.rng.choice(same)) if c.chance(0.6) else body.rng.choice(same)
    near = [] if lonely else body.candidates(lambda v: v.dtype == val.dtype and v.rank == val.rank and v.rank > 0)
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
