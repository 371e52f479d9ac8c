"""The code that bodies of Loop, Scan and If share: operators, states, outputs, and nested control flow.

Each operator has its file (loops, scans, branches) and registers a function in `GENERATORS`, which appends one
control-flow node to a scope and returns the node's outputs. `depth` is the number of levels of control flow that the
node shall have, including itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from .lists import list_op
from .pieces import cast, cut, is_number, like, random_op, squeeze, to_scalar, unsqueeze
from .scope import Scope
from .values import BOOL, FLOAT, INT32, INT64, Dim, Seq, Shape, Val

STYLES = ("full",) * 5 + ("rank",) * 2 + ("type", "nothing")
Generator = Callable[[Scope, int], list[Val]]
GENERATORS: dict[str, Generator] = {}


def generates(kind: str) -> Callable[[Generator], Generator]:
    """Register a function for an operator."""

    def register(function: Generator) -> Generator:
        GENERATORS[kind] = function
        return function

    return register


def control(s: Scope, depth: int, kind: str | None = None) -> list[Val]:
    """A random control-flow node."""
    if s.context.recurs and s.context.chance(0.8):
        return GENERATORS["recurrence"](s, min(depth, 2))
    if s.context.widens and depth == 1:
        return GENERATORS["widening"](s, depth)
    nested = depth > 1 or s.outer is not None
    # Scan-8 has many forms, and few models have opset 8.
    first = "Scan" if s.context.opset == 8 else "Loop"
    more: tuple[str, ...] = (first,) if not nested else ("Loop",) if s.kind == "Loop" else ()
    if s.context.carries_lists and s.kind in ("", "Loop"):
        more = ("Loop", "Loop")  # only loops carry lists, and loops in loops are the difficult case
    kind = kind or s.rng.choice((*more, "Loop", "Scan", "If"))
    features = s.context.features
    features[kind] += 1
    features[f"{kind}-{version(kind, s.context.opset)}"] += 1
    if s.outer is not None:
        features[f"{kind} in {s.kind}"] += 1
        if s.outer.outer is not None:
            features[f"{kind} in {s.kind} in {s.outer.kind}"] += 1
    return GENERATORS[kind](s, depth)


def version(kind: str, opset: int) -> str:
    """The version of an operator in an opset; `newer` for those after 21."""
    since = {"Loop": (1, 11, 13, 16, 19, 21), "Scan": (8, 9, 11, 16, 19, 21), "If": (1, 11, 13, 16, 19, 21)}[kind]
    return "newer" if opset > 22 else str(max(each for each in since if each <= opset))


def operators(s: Scope, number: int) -> None:
    """Random operators, some of them on lists."""
    for _ in range(number):
        if s.context.chance(s.context.lists):
            list_op(s)
        else:
            random_op(s)


def fill(body: Scope, depth: int) -> None:
    """Random operators, and control flow of the next level among them."""
    operators(body, body.rng.randint(1, 3))
    if depth > 1:
        control(body, depth - 1)
        operators(body, body.rng.randint(0, 2))


def inner(s: Scope, kind: str, style: str | None = None) -> Scope:
    """A body whose types are declared in a style; by default in one that declares no more than the graph around it."""
    body = Scope(s.context, s)
    body.kind = kind
    body.style = style or max(s.style, s.rng.choice(STYLES), key=list(dict.fromkeys(STYLES)).index)
    return body


V = TypeVar("V", Val, Seq)


def produced(body: Scope, val: V, taken: Sequence[Val | Seq] = ()) -> V:
    """The value as an output of this body: through an Identity if it is captured, or an output already."""
    own = val.name in body.names
    if own and any(tensor.name == val.name for tensor in body.initializers):
        # ONNX Runtime accepts an initializer as output of a graph, the checker does not.
        own = body.context.chance(0.1)
        body.context.features["initializer as body output"] += own
    if own and (val not in taken or (body.kind == "Loop" and body.context.chance(0.3))):
        if val in taken:
            body.context.features["one value to several outputs"] += 1
        return val
    copied: V = body.copy(val)
    return copied


def fixed(known: set[Dim], shape: Shape) -> bool:
    """Whether a shape inside a body is the same in every iteration and known to the runtime.

    For tensors without elements the runtime keeps known dimensions only.
    """
    return all(isinstance(d, int) or (d in known and 0 not in shape) for d in shape)


def ranked(s: Scope, val: Val, rank: int) -> Val:
    """A single element as a tensor of another rank."""
    while val.rank < rank:
        val = unsqueeze(s, val, 0)
    return squeeze(s, val, list(range(val.rank - rank))) if val.rank > rank else val


def flag(s: Scope, rank: int) -> Val:
    """A condition computed from visible values."""
    val = s.pick(lambda v: True, local=0.8)
    if val is None:
        return s.constant(np.full((1,) * rank, True))
    return ranked(s, to_scalar(s, val, BOOL), rank)


def as_condition(s: Scope, val: Val) -> Val:
    """A condition as it is, as an integer, or of a rank that ONNX Runtime refuses."""
    if val.rank > 1:
        s.context.features["condition of rank 2 and more"] += 1
        return s.dropped("Squeeze", [val], BOOL, ())
    if s.context.chance(0.15):
        s.context.features["condition of integers"] += 1
        return s.dropped("Cast", [cast(s, val, INT64)], BOOL, val.shape, to=BOOL)
    return val


@dataclass
class State:
    """A state: its kind decides what the body does with it."""

    kind: str
    init: Val
    inside: Val
    limit: float
    axis: int = 0


def initial_value(s: Scope, accepts_rank: int = 0) -> Val:
    """The initial value of a state: a visible value, a constant, a new input."""
    kind = s.rng.choices(("visible", "constant", "input"), (5, 2, 1))[0]
    dtype = s.rng.choices((FLOAT, INT64, INT32, BOOL), (7, 2, 1, 1))[0]
    found = s.pick(lambda v: v.rank >= accepts_rank and (is_number(v) or dtype == BOOL)) if kind == "visible" else None
    if found is not None:
        return found
    shape = tuple(s.rng.randint(1, 3) for _ in range(s.rng.randint(accepts_rank, 2)))
    if kind == "input":
        return s.input(dtype, (*shape, s.context.symbol()) if s.context.chance(0.4) else shape)
    return s.random_constant(dtype, shape)


def next_state(body: Scope, state: State, states: list[State]) -> Val:
    inside = state.inside
    if state.kind == "same":
        return inside
    if state.kind == "swapped":
        twins = [other for other in states if other.kind == "swapped" and other is not state]
        return twins[0].inside if twins else inside
    if state.kind == "constant" and inside.is_static:
        return body.random_constant(inside.dtype, [int(d) for d in inside.shape])
    if state.kind == "captured" and state.init.name not in body.hidden:
        return state.init
    if state.kind == "other":
        same = body.candidates(lambda v: v.dtype == inside.dtype and v.shape == inside.shape and v.mag <= state.limit)
        return body.rng.choice(same) if same else inside
    if state.kind == "grown":
        sizes = [1 if i == state.axis else int(d) for i, d in enumerate(inside.shape) if i == state.axis or d != ""]
        other = body.pick(lambda v: v.name != inside.name, local=0.9)
        added = body.random_constant(inside.dtype, sizes)
        if other is not None and body.context.chance(0.8):
            number = to_scalar(body, other, inside.dtype)
            added = body.emit("Expand", [number, body.ints(*sizes)], inside.dtype, tuple(sizes), number.mag)
        parts = [inside, added] if body.context.chance(0.7) else [added, inside]
        mag = max(inside.mag, added.mag)
        return body.squash(body.emit("Concat", parts, inside.dtype, inside.shape, mag, axis=state.axis), state.limit)
    if state.kind == "shrunk":
        return cut(body, inside, state.axis, 1, 2**31 - 1, inside.shape[state.axis])
    return like(body, inside, state.limit)


def final(s: Scope, state: State, name: str) -> Val:
    shape = list(state.init.shape)
    if state.kind in ("grown", "shrunk"):
        shape[state.axis] = s.context.dim(0)
    return s.add(state.init.dtype, tuple(shape), max(state.limit, state.init.mag), name)


def scan_output(body: Scope, known: set[Dim], inputs: list[Val], flag_in: Val | None) -> Val:
    """The value of a scan output: something computed, a body input, a constant, a capture, the iteration number."""
    features = body.context.features
    kind = body.rng.choices(("computed", "input", "constant", "capture", "iteration", "flag"), (8, 2, 1, 1, 1, 0.5))[0]
    computed = [v for v in body.own if v not in body.parameters and fixed(known, v.shape)]
    if kind == "input" and inputs:
        features["scan output of a body input"] += 1
        return body.rng.choice(inputs)
    if kind == "iteration" and body.iteration is not None and body.kind == "Loop":
        features["scan output of the iteration"] += 1
        return body.iteration
    if kind == "flag" and flag_in is not None:
        return flag_in
    if kind == "capture":
        found = body.outer and body.outer.pick(lambda v: v.rank < 4 and fixed(known, v.shape))
        if found and found.name not in body.hidden:
            features["scan output of a capture"] += 1
            return found
    if kind == "constant" or not computed:
        features["scan output of a constant"] += 1
        shape = [body.rng.randint(1, 3) for _ in range(body.rng.randint(0, 2))]
        return body.random_constant(body.rng.choice((FLOAT, INT64)), shape)
    return body.rng.choice(computed[-5:])
