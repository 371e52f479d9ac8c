"""Recurrences over sequences of many steps: affine states, reductions, delay lines, written buffers, projections, maps,
early exits.

`recurrence` appends one Scan, or one Loop that reads x[i], as those that `bodies.GENERATORS` holds. Its states and
outputs are of the kinds that exporters write; lengths are 0, 1, and some that blocks of steps do not divide.
"""

from collections.abc import Callable

import numpy as np

from .bodies import generates, inner, operators, produced
from .pieces import compare, unsqueeze
from .scope import Scope
from .values import BOOL, FLOAT, INT64, Dim, Val

LENGTHS = (1, 2, 3, 5, 8, 15, 16, 17, 31, 40)
ROWS = 44
"""The size of a buffer into which steps write."""

WIDE = 60.0
"""A bound of states that add up the elements of a sequence."""

STATES: dict[str, Callable[[Scope, Val, Val], Val]] = {}
OUTPUTS: dict[str, Callable[[Scope, Val, Val], Val]] = {}
Made = Callable[[Scope, Val, Val], Val]


def _kind(table: dict[str, Made]) -> Callable[[Made], Made]:
    def register(function: Made) -> Made:
        table[function.__name__.strip("_")] = function
        return function

    return register


@generates("recurrence")
def recurrence(s: Scope, depth: int) -> list[Val]:
    """A Scan or a Loop over one or two sequences of vectors."""
    c = s.context
    length = _length(s)
    kinds = s.rng.choices(tuple(STATES), k=s.rng.choice((0, 1, 1, 2)))
    width = 24 if "outer_product" in kinds and c.chance(0.5) else s.rng.randint(1, 4)
    is_loop = c.chance(0.5)
    sources = [_source(s, length, width) for _ in range(s.rng.choice((1, 1, 2)))]
    c.features["recurrence in a Loop" if is_loop else "recurrence in a Scan"] += 1
    body = inner(s, "Loop" if is_loop else "Scan", s.rng.choice(("full", "rank")))
    firsts = [_first(s, kind, width) for kind in kinds]
    ends = bool(kinds) and is_loop and c.chance(0.25)
    if is_loop:
        body.iteration = body.parameter(INT64, (), 40.0)
        flag_in = body.parameter(BOOL, (), 1.0)
        body.pinned = [body.iteration, flag_in]
    states = [body.parameter(first.dtype, first.shape, WIDE) for first in firsts]
    elements = [_element(s, body, source, axis, is_loop, length) for source, axis in sources]
    if depth > 1:
        c.features["recurrence around another"] += 1
        recurrence(body, depth - 1)
    operators(body, s.rng.choice((0, 0, 1)))
    nexts = []
    for kind, state in zip(kinds, states, strict=True):
        c.features[f"recurrence {kind}"] += 1
        nexts.append(STATES[kind](body, state, s.rng.choice(elements)))
    outputs = []
    for _ in range(s.rng.choice((0, 1, 1, 2)) if kinds else s.rng.randint(1, 2)):
        if ends and c.chance(0.7):
            break
        read = s.rng.choice([*states, *nexts] or elements)
        kind = "query" if read.rank == 2 and c.chance(0.6) else s.rng.choice(tuple(OUTPUTS))
        c.features[f"recurrence output {kind}"] += 1
        outputs.append(OUTPUTS[kind](body, read if read.dtype == FLOAT else elements[0], s.rng.choice(elements)))
    taken: list[Val] = []
    for val in (*nexts, *outputs):
        taken.append(produced(body, val, taken))
    names = [c.fresh("o") for _ in taken]
    if is_loop:
        node_inputs, going = _loop_inputs(s, body, sources[0], nexts, ends)
        taken.insert(0, produced(body, going or flag_in, taken))
        s.node("Loop", [*node_inputs, *firsts], names, body=body.graph(c.fresh("body"), taken))
        axes = [0] * len(outputs)
    else:
        axes = [s.rng.choice((0, 0, s.rng.randint(0, val.rank))) for val in outputs]
        _scan(s, body, taken, names, firsts, sources, axes)
    return _results(s, body, names, firsts, outputs, axes, None if ends else length)


def _length(s: Scope) -> Dim:
    """A length, known or of one size for each input set: 0 is among them."""
    c = s.context
    if c.chance(0.4):
        return s.rng.choice(LENGTHS)
    name = c.fresh("N")
    c.sizes[name] = tuple(s.rng.choice((0, *LENGTHS)) for _ in range(3))
    c.minimum[name] = min(c.sizes[name])
    return name


def _source(s: Scope, length: Dim, width: int) -> tuple[Val, int]:
    axis = s.rng.choice((0, 0, 1))
    shape: tuple[Dim, ...] = (length, width) if axis == 0 else (width, length)
    return s.input(FLOAT, shape, declared="exact"), axis


def _first(s: Scope, kind: str, width: int) -> Val:
    """The initial value: a known one or an input."""
    shapes = {"counter": (), "window": (3, width), "outer_product": (width, width), "written": (ROWS, width)}
    shape = shapes.get(kind, (width,))
    if kind in ("every", "counter"):
        dtype = BOOL if kind == "every" else INT64
        return s.random_constant(dtype, shape)
    if s.context.chance(0.5):
        return s.constant(np.zeros(shape, np.float32))
    return s.input(FLOAT, shape, declared="exact")


def _element(s: Scope, body: Scope, source: Val, axis: int, is_loop: bool, length: Dim) -> Val:
    """One slice of a sequence in the body: a parameter of a Scan, or x[i], also from the end."""
    (width,) = (size for at, size in enumerate(source.shape) if at != axis)
    if not is_loop:
        return body.parameter(FLOAT, (width,), 1.0)
    assert body.iteration is not None
    place = body.iteration
    if s.context.chance(0.25):
        sizes = body.emit("Shape", [source], INT64, (2,), 40.0)
        size = body.emit("Gather", [sizes, body.constant(np.array(axis, np.int64))], INT64, (), 40.0, axis=0)
        last = body.emit("Sub", [size, body.scalar(1, INT64)], INT64, (), 40.0)
        place = body.emit("Sub", [last, place], INT64, (), 40.0)
    return body.emit("Gather", [source, place], FLOAT, (width,), 1.0, axis=axis)


def _loop_inputs(s: Scope, body: Scope, source: tuple[Val, int], nexts: list[Val],
                 ends: bool) -> tuple[list[Val | None], Val | None]:
    """Trip count and condition, and the condition in the body if it may end the loop early."""
    sequence, axis = source
    sizes = s.emit("Shape", [sequence], INT64, (2,), 40.0)
    trip = s.emit("Gather", [sizes, s.constant(np.array(axis, np.int64))], INT64, (), 40.0, axis=0)
    s.own.remove(trip)
    if not ends:
        return [trip, None if s.context.chance(0.5) else s.constant(np.array(True))], None
    s.context.features["recurrence that ends early"] += 1
    val = nexts[0]
    number = body.emit("Cast", [val], FLOAT, val.shape, WIDE, to=FLOAT) if val.dtype != FLOAT else val
    if number.rank:
        flat = body.emit("Reshape", [number, body.ints(-1)], FLOAT, (1,), WIDE)
        number = body.emit("ReduceMax", [flat], FLOAT, (), WIDE, keepdims=0)
    limit = body.scalar(s.rng.choice((0.3, 0.97, 3.0, 30.0)))  # not 1, near which tanh rounds otherwise
    return [trip, s.constant(np.array(True))], compare(body, "Less", number, limit, ())


def _scan(s: Scope, body: Scope, taken: list[Val], names: list[str], firsts: list[Val], sources: list[tuple[Val, int]],
          axes: list[int]) -> None:
    rng, attributes = s.rng, {}
    if any(axis for _, axis in sources):
        attributes["scan_input_axes"] = [axis for _, axis in sources]
    if any(axes):
        attributes["scan_output_axes"] = axes
    if s.context.chance(0.4):
        attributes["scan_input_directions"] = [rng.randint(0, 1) for _ in sources]
    if axes and s.context.chance(0.4):
        attributes["scan_output_directions"] = [rng.randint(0, 1) for _ in axes]
    inputs = [*firsts, *(val for val, _ in sources)]
    graph = body.graph(s.context.fresh("body"), taken)
    node = s.node("Scan", inputs, names, body=graph, num_scan_inputs=len(sources), **attributes)
    s.context.scan_ranks[node.name] = [val.rank + 1 for val in taken[len(firsts) :]]


def _results(s: Scope, body: Scope, names: list[str], firsts: list[Val], outputs: list[Val], axes: list[int],
             length: Dim | None) -> list[Val]:
    results = [s.add(first.dtype, first.shape, WIDE, name) for first, name in zip(firsts, names, strict=False)]
    for val, axis, name in zip(outputs, axes, names[len(firsts) :], strict=True):
        size = s.context.dim(0) if length is None else length
        results.append(s.add(val.dtype, (*val.shape[:axis], size, *val.shape[axis:]), WIDE, name))
        if length is None or not s.context.at_least(length, 1):
            s.own.remove(results[-1])  # without iterations ONNX Runtime may return other dimensions
    return results


# -- states: the next value of one


def _weights(body: Scope, *shape: int) -> Val:
    return body.constant(body.context.numbers.uniform(-0.6, 0.6, shape).astype(np.float32))


def _decay(body: Scope, state: Val, element: Val) -> Val:
    """A factor between 0 and 1: of the step, constant, captured, or 0."""
    kind = body.rng.choice(("step", "constant", "captured", "zero"))
    body.context.features[f"recurrence decay {kind}"] += 1
    if kind == "step":
        return body.emit("Sigmoid", [element], FLOAT, element.shape, 1.0)
    if kind == "captured":
        raw = body.root.input(FLOAT, element.shape, declared="exact")
        return body.emit("Sigmoid", [raw], FLOAT, element.shape, 1.0)
    return body.scalar(0.0 if kind == "zero" else body.rng.choice((0.5, 0.9, 0.999)))


@_kind(STATES)
def _affine(body: Scope, state: Val, element: Val) -> Val:
    kept = body.emit("Mul", [state, _decay(body, state, element)], FLOAT, state.shape, 1.0)
    added = body.emit(body.rng.choice(("Tanh", "Identity")), [element], FLOAT, element.shape, 1.0)
    return body.emit("Add", body.rng.sample((kept, added), 2), FLOAT, state.shape, 1.0)


@_kind(STATES)
def _accumulated(body: Scope, state: Val, element: Val) -> Val:
    op = body.rng.choice(("Add", "Add", "Sub", "Max", "Min"))
    return body.emit(op, [state, element], FLOAT, state.shape, 1.0)


@_kind(STATES)
def _counter(body: Scope, state: Val, element: Val) -> Val:
    return body.emit("Add", [state, body.scalar(body.rng.choice((1, 1, 2, -1)), INT64)], INT64, (), 1.0)


@_kind(STATES)
def _every(body: Scope, state: Val, element: Val) -> Val:
    here = compare(body, "Less", element, body.scalar(0.95), element.shape)
    return body.emit(body.rng.choice(("And", "Or")), [state, here], BOOL, state.shape)


@_kind(STATES)
def _previous(body: Scope, state: Val, element: Val) -> Val:
    return element


@_kind(STATES)
def _window(body: Scope, state: Val, element: Val) -> Val:
    rest = body.emit("Slice", [state, body.ints(1), body.ints(3), body.ints(0)], FLOAT, (2, *state.shape[1:]), 1.0)
    return body.emit("Concat", [rest, unsqueeze(body, element, 0)], FLOAT, state.shape, 1.0, axis=0)


@_kind(STATES)
def _cell(body: Scope, state: Val, element: Val) -> Val:
    width = int(element.shape[0])
    recurrent = body.emit("MatMul", [state, _weights(body, width, width)], FLOAT, state.shape, 1.0)
    projected = body.emit("MatMul", [element, _weights(body, width, width)], FLOAT, state.shape, 1.0)
    return body.emit("Tanh", [body.emit("Add", [recurrent, projected], FLOAT, state.shape, 1.0)], FLOAT, state.shape)


@_kind(STATES)
def _outer_product(body: Scope, state: Val, element: Val) -> Val:
    column, row = unsqueeze(body, element, 1), unsqueeze(body, element, 0)
    product = body.emit("Mul", [column, row], FLOAT, state.shape, 1.0)
    kept = body.emit("Mul", [state, _decay(body, state, element)], FLOAT, state.shape, 1.0)
    return body.emit("Add", [kept, product], FLOAT, state.shape, 1.0)


@_kind(STATES)
def _written(body: Scope, state: Val, element: Val) -> Val:
    """A row, also made of itself or the one before, or an element replaced: at the iteration number, or by data."""
    number = body.iteration if body.context.chance(0.8) else None
    if number is None:
        number = body.emit("ArgMax", [element], INT64, (), 4.0, axis=0, keepdims=0)
    one, last = body.scalar(1, INT64), body.scalar(body.rng.choice((2, ROWS - 3)), INT64)
    for _ in range(body.rng.choice((0, 0, 1, 2))):
        op, pair = body.rng.choice((("Add", [number, one]), ("Sub", [last, number])))
        number = body.emit(op, pair, INT64, (), 40.0)
    if body.context.chance(0.4):
        before = body.rng.choice((number, body.emit("Sub", [number, one], INT64, (), 40.0)))
        row = body.emit("Gather", [state, before], FLOAT, element.shape, 1.0, axis=0)
        half = body.emit("Mul", [row, body.scalar(0.5)], FLOAT, element.shape, 1.0)
        element = body.emit("Add", [half, element], FLOAT, element.shape, 1.0)
    place = body.emit("Reshape", [number, body.ints(1, 1)], INT64, (1, 1), 40.0)
    if body.context.chance(0.6):
        return body.emit("ScatterND", [state, place, unsqueeze(body, element, 0)], FLOAT, state.shape, 1.0)
    column = body.emit("ArgMax", [element], INT64, (1,), 4.0, axis=0)
    place = body.emit("Concat", [place, unsqueeze(body, column, 0)], INT64, (1, 2), 40.0, axis=1)
    largest = body.emit("ReduceMax", [element], FLOAT, (1,), 1.0)
    return body.emit("ScatterND", [state, place, largest], FLOAT, state.shape, 1.0)


@_kind(STATES)
def _chosen(body: Scope, state: Val, element: Val) -> Val:
    larger = compare(body, "Greater", element, state, state.shape)
    halved = body.emit("Mul", [state, body.scalar(0.5)], FLOAT, state.shape, 1.0)
    return body.emit("Where", [larger, element, halved], FLOAT, state.shape, 1.0)


# -- outputs of all steps


@_kind(OUTPUTS)
def _itself(body: Scope, state: Val, element: Val) -> Val:
    return state


@_kind(OUTPUTS)
def _projection(body: Scope, state: Val, element: Val) -> Val:
    width = int(state.shape[-1]) if state.rank else 1
    if not state.rank:
        return body.emit("Mul", [state, _weights(body, width)], FLOAT, (1,), 1.0)
    scores = body.emit("MatMul", [state, _weights(body, width, 3)], FLOAT, (*state.shape[:-1], 3), 1.0)
    return body.emit("Softmax", [scores], FLOAT, scores.shape, 1.0, axis=-1)


@_kind(OUTPUTS)
def _map(body: Scope, state: Val, element: Val) -> Val:
    width = int(element.shape[0])
    return body.emit("Tanh", [body.emit("MatMul", [element, _weights(body, width, 2)], FLOAT, (2,), 1.0)], FLOAT, (2,))


@_kind(OUTPUTS)
def _query(body: Scope, state: Val, element: Val) -> Val:
    """The product of a row or a column with a matrix."""
    if state.rank != 2:
        return element
    rows, columns = (int(size) for size in state.shape)
    if rows == columns == int(element.shape[0]) and body.context.chance(0.5):
        return body.emit("MatMul", [state, unsqueeze(body, element, 1)], FLOAT, (rows, 1), 1.0)
    if rows != int(element.shape[0]):
        return state
    if body.context.chance(0.5):
        return body.emit("MatMul", [element, state], FLOAT, (columns,), 1.0)
    weighted = body.emit("Mul", [state, unsqueeze(body, element, 1)], FLOAT, state.shape, 1.0)
    return body.emit("ReduceSum", [weighted, body.ints(0)], FLOAT, (columns,), 1.0, keepdims=0)


@_kind(OUTPUTS)
def _difference(body: Scope, state: Val, element: Val) -> Val:
    return body.emit("Sub", [element, state], FLOAT, state.shape if state.rank else element.shape, 1.0)
