"""Random Loop nodes. They always end: the trip count is small, or the body's condition depends on a counter."""

import numpy as np

from .bodies import (
    State,
    as_condition,
    fill,
    final,
    flag,
    generates,
    initial_value,
    inner,
    next_state,
    produced,
    ranked,
    scan_output,
)
from .carried import ListState, list_states, next_list
from .pieces import compare, like, remainder, to_scalar
from .scope import Scope, known_outside
from .values import BOOL, FLOAT, INT64, STATE_LIMIT, Seq, Val

TRIPS = (-1, 0, 0, 1, 2, 3, 5)


@generates("Loop")
def loop(s: Scope, depth: int) -> list[Val]:
    c, features = s.context, s.context.features
    plans = ("for", "both", "early", "while", "huge", "do", "endless")
    plan = s.rng.choices(plans, (5, 3, 3, 2, 2, 1.2, 1.2))[0]
    features[f"Loop {plan}"] += 1
    trip, always = _trip_count(s, plan)
    condition, starts, kind = _initial_condition(s, plan)
    shown = {"omitted": "''", "true": "true"}.get(kind, "condition")
    features[f"Loop({'M' if trip else repr('')}, {shown})"] += 1
    wide = condition is not None and condition.rank > 1
    condition = condition and as_condition(s, condition)
    known = known_outside(s)
    body = inner(s, "Loop")
    style = body.style
    features[f"declared {style}"] += 1
    # The ranks in the body follow those outside; if an input is omitted, only the declaration gives them.
    ranks = [int(c.chance(0.3)) if port is None else min(port.rank, 1) for port in (trip, condition)]
    features["body condition or iteration [1]"] += bool(sum(ranks))
    body.iteration = body.parameter(INT64, (1,) * ranks[0], 6.0)
    flag_in = body.parameter(BOOL, (1,) * ranks[1], 1.0)
    body.pinned = [body.iteration, *([flag_in] if condition is None or wide else [])]
    first = s.context.chance(0.5)
    lists = list_states(s, body, known) if first else []
    states = _states(s, body)
    lists = lists if first else list_states(s, body, known)
    fill(body, depth)

    taken: list[Val | Seq] = []
    go_on = _next_condition(body, plan, flag_in, ranks[1])
    taken.append(produced(body, as_condition(body, go_on)))
    carried: list[State | ListState] = [*lists, *states] if first else [*states, *lists]
    for state in carried:
        if isinstance(state, ListState):
            taken.append(produced(body, next_list(body, state), taken))
        else:
            taken.append(produced(body, next_state(body, state, states), taken))
    scans: list[Val] = []
    steady = [state.inside for state in states if state.kind not in ("grown", "shrunk")]
    for _ in range(s.rng.choice((0, 1, 1, 2, 3)) if carried else s.rng.randint(1, 3)):
        val = scan_output(body, known, steady, flag_in)
        scans.append(produced(body, val, taken))
        taken.append(scans[-1])

    exact = always if plan == "for" and starts else None
    initial = [trip, condition, *(state.init for state in carried)]
    features["list carried beside tensors"] += bool(lists and states)
    features["list carried beside scan outputs"] += bool(lists and scans)
    features["unused iteration output"] += not scans
    names = [c.fresh("o") for _ in taken[1:]]
    title = c.fresh("body")
    # If undeclared, an iteration number is assumed to be a scalar.
    if style in ("type", "nothing") and not ranks[0] and not wide and not (condition is None and ranks[1]):
        c.undeclared[title] = style
    s.node("Loop", initial, names, body=body.graph(title, taken))
    results = []
    for state, name in zip(carried, names, strict=False):
        if isinstance(state, ListState):
            state.final(s, name)
        else:
            results.append(final(s, state, name))
    for val, name in zip(scans, names[len(carried) :], strict=True):
        # Without iterations only a declaration gives a dimension for certain.
        certain = style == "full"
        tail = val.shape if exact else tuple(d if isinstance(d, int) and certain else c.dim(0) for d in val.shape)
        results.append(s.add(val.dtype, (exact or c.dim(0), *tail), val.mag, name))
        if not all(isinstance(d, int) for d in tail) or (not exact and not certain):
            s.own.remove(results[-1])  # without iterations ONNX Runtime may return another rank
    return results


def _trip_count(s: Scope, plan: str) -> tuple[Val | None, int | None]:
    """The trip count, and its value if it is constant and positive."""
    c = s.context
    shape = (1,) * s.rng.choices((0, 1, 2, 3), (7, 2, 0.7, 0.3))[0]
    c.features["trip count of rank 2 and more"] += len(shape) > 1
    if plan in ("while", "endless") or (plan == "do" and c.chance(0.7)):
        c.features["trip omitted"] += 1
        return None, None
    if plan == "huge":
        c.features["trip huge"] += 1
        if c.chance(0.3):  # the runtime reads integer inputs as 32 bits: larger ones are indistinguishable
            huge = s.input(INT64, shape, (2**31 - 1,))
            s.root.own.remove(huge)  # not for arithmetic, which the runtime does in 32 bits
            return huge, None
        value = s.rng.choice((2**31 - 1, 2**63 - 1))
        return s.constant(np.full(shape, value, np.int64)), None
    counter = s.counter
    kind = s.rng.choices(("constant", "input", "computed", "iteration"), (3, 4, 2, 16 if counter else 0))[0]
    c.features[f"trip {kind}"] += 1
    if kind == "constant":
        value = s.rng.choices((-1, 0, 1, 2, 3, 5), (2, 3, 4, 4, 4, 2))[0]
        c.features["trip constant, 0 or below"] += value < 1
        return s.constant(np.full(shape, value, np.int64)), value if value > 0 else None
    if kind == "input":
        choices = tuple(s.rng.choice(TRIPS) for _ in range(3))
        for value in set(choices):
            c.features["trip n" if value > 1 else f"trip {value}"] += 1
        first, second, third = choices
        c.features["no iterations after some"] += (first > 0 and min(second, third) < 1) or second > 0 >= third
        return s.input(INT64, shape, choices), None
    if kind == "iteration":
        assert counter is not None
        left = s.emit("Sub", [s.scalar(s.rng.randint(0, 3), INT64), counter], INT64, counter.shape, 6.0)
        return ranked(s, left, len(shape)), None
    return ranked(s, _computed_count(s), len(shape)), None


def _computed_count(s: Scope) -> Val:
    """A small number from a shape or from integer data."""
    sized = s.pick(lambda v: v.rank > 0)
    if sized is not None and s.context.chance(0.6):
        sizes = s.emit("Shape", [sized], INT64, (sized.rank,), 12.0)
        at = s.constant(np.array(s.rng.randrange(sized.rank), np.int64))
        return s.emit("Gather", [sizes, at], INT64, (), 12.0, axis=0)
    val = s.pick(lambda v: True)
    number = to_scalar(s, val, INT64) if val is not None else s.scalar(2, INT64)
    return remainder(s, number, 4)


def _initial_condition(s: Scope, plan: str) -> tuple[Val | None, bool, str]:
    """The condition at the start, whether it is known to be true, and its kind.

    An omitted condition is true at the start, and the body decides afterwards: ONNX Runtime reads the standard so.
    """
    c = s.context
    shape = (1,) * s.rng.choices((0, 1, 2), (7, 2, 1))[0]
    if plan == "for":
        kind = s.rng.choice(("omitted", "true"))
    elif plan in ("do", "endless"):
        kind = "true" if plan == "do" else "omitted"
    else:
        weights = (2 if plan != "while" else 0, 4, 5, 4, 0.8)
        kind = s.rng.choices(("omitted", "true", "input", "computed", "false"), weights)[0]
    c.features[f"condition {kind}"] += 1
    if kind == "omitted":
        return None, True, kind
    if kind in ("true", "false"):
        return s.constant(np.full(shape, kind == "true")), kind == "true", kind
    if kind == "input":
        return s.input(BOOL, shape, tuple(s.rng.choice((1, 1, 0)) for _ in range(3))), False, kind
    return flag(s, len(shape)), False, kind


def _next_condition(body: Scope, plan: str, flag_in: Val, rank: int) -> Val:
    iteration = body.iteration
    assert iteration is not None
    if plan in ("for", "both"):
        kind = body.rng.choice(("true", "same", "computed") if plan == "both" else ("true", "true", "same"))
        body.context.features[f"body condition {kind}"] += 1
        if kind == "computed":
            return flag(body, rank)
        return flag_in if kind == "same" else body.constant(np.full((1,) * rank, True), here=True)
    bound = body.scalar(body.rng.randint(0, 4), INT64)
    if body.context.chance(0.4):
        bound = body.input(INT64, (), tuple(body.rng.choice(TRIPS) for _ in range(3)))
    going = compare(body, "Less", iteration, bound, iteration.shape)
    body.context.features["body condition counter"] += 1
    if body.context.chance(0.4):
        going = body.emit("And", [going, ranked(body, flag(body, 0), going.rank)], BOOL, going.shape)
        body.context.features["body condition counter and data"] += 1
    return ranked(body, going, rank)


def _states(s: Scope, body: Scope) -> list[State]:
    states: list[State] = []
    kinds = ("update", "same", "constant", "captured", "other", "grown", "shrunk")
    for _ in range(s.rng.choice((0, 1, 1, 2, 2, 3)) or int(s.context.opset < 11)):  # Loop-1 has at least one
        kind = s.rng.choices(kinds, (8, 1.5, 1, 1, 1.5, 2, 0.7))[0]
        state = _grown(s, body) if kind in ("grown", "shrunk") else None
        if state is None:
            init = initial_value(s)
            limit = max(init.mag, STATE_LIMIT[init.dtype])
            state = State("update", init, body.parameter(init.dtype, init.shape, limit), limit)
        state.kind = kind if (state.kind == "grown") == (kind in ("grown", "shrunk")) else state.kind
        states.append(state)
    if states and s.context.chance(0.25):
        first = next((state for state in states if state.kind not in ("grown", "shrunk")), None)
        if first is not None:
            twin = like(s, first.init)
            limit = max(twin.mag, first.limit)
            states.append(State("swapped", twin, body.parameter(twin.dtype, twin.shape, limit), limit))
            first.kind, first.limit = "swapped", limit
    for state in states:
        s.context.features[f"state {state.kind}"] += 1
    return states


def _grown(s: Scope, body: Scope) -> State | None:
    """A state whose length along one axis changes."""
    init = s.pick(lambda v: v.rank > 0 and sum(not isinstance(d, int) for d in v.shape) <= 1 and v.rank <= 3)
    if init is None or s.context.chance(0.3):
        width = s.rng.randint(1, 3)
        init = s.random_constant(FLOAT, s.rng.choice(((0,), (0, width), (1, width))))
    unknown = [i for i, d in enumerate(init.shape) if not isinstance(d, int)]
    axis = unknown[0] if unknown else s.rng.randrange(init.rank)
    shape = (*init.shape[:axis], s.context.dim(0), *init.shape[axis + 1 :])
    limit = max(init.mag, STATE_LIMIT[init.dtype])
    return State("grown", init, body.parameter(init.dtype, shape, limit), limit, axis)
