"""Random Scan nodes: any axes, both directions, static and dynamic lengths; of opset 8, over a batch of sequences."""

from .bodies import State, fill, final, generates, initial_value, inner, next_state, produced, scan_output
from .scope import Scope, known_outside
from .values import BOOL, FLOAT, INT64, STATE_LIMIT, Dim, Val


@generates("Scan")
def scan(s: Scope, depth: int) -> list[Val]:
    """A Scan of the model's opset."""
    return _scan_8(s, depth) if s.context.opset == 8 else _scan_9(s, depth)


def _scan_8(s: Scope, depth: int) -> list[Val]:
    """States [batch, ...], scan inputs and outputs [batch, sequence, ...], limited by `sequence_lens` if given."""
    c = s.context
    batch, known = s.rng.randint(1, 3), known_outside(s)
    length: Dim = s.rng.randint(1, 4) if c.chance(0.75) else c.symbol()
    if not c.at_least(length, 1):
        length = 2  # ONNX Runtime changes the states in a Scan-8 of length 0
    lengths = None
    if isinstance(length, int) and c.chance(0.75):
        lengths = s.input(INT64, (batch,), tuple(range(1, length + 1)), mixed=True)
    c.features["Scan-8 with sequence_lens"] += lengths is not None
    body = inner(s, "Scan")
    states, initial = [], []
    for _ in range(s.rng.choice((0, 1, 1, 2))):
        shape = tuple(s.rng.randint(1, 3) for _ in range(s.rng.randint(0, 2)))
        whole = (batch, *shape)
        init = s.input(FLOAT, whole) if c.chance(0.5) else s.random_constant(s.rng.choice((FLOAT, INT64)), whole)
        kind = s.rng.choices(("update", "same", "other"), (8, 1, 2))[0]
        limit = max(init.mag, STATE_LIMIT[init.dtype])
        states.append(State(kind, init, body.parameter(init.dtype, shape, limit), limit))
        initial.append(init)
    elements, sources = [], []
    for _ in range(s.rng.choice((1, 1, 2))):
        shape = tuple(s.rng.randint(1, 3) for _ in range(s.rng.randint(0, 2)))
        sources.append(s.input(s.rng.choice((FLOAT, FLOAT, INT64)), (batch, length, *shape)))
        elements.append(body.parameter(sources[-1].dtype, shape, sources[-1].mag))
    fill(body, depth)
    taken: list[Val] = []
    for state in states:
        taken.append(produced(body, next_state(body, state, states), taken))
    count = s.rng.choice((0, 1, 1, 2)) if states else s.rng.randint(1, 2)
    for _ in range(count):
        val = scan_output(body, known, [*elements, *(state.inside for state in states)], None)
        taken.append(produced(body, val, taken))
    c.features["Scan without state"] += not states
    c.features["Scan K != M"] += count != len(sources)
    names = [c.fresh("o") for _ in taken]
    attributes = _directions(s, "directions", len(sources))
    graph = body.graph(c.fresh("body"), taken)
    s.node("Scan", [lengths, *initial, *sources], names, body=graph, num_scan_inputs=len(sources), **attributes)
    results = [final(s, state, name) for state, name in zip(states, names, strict=False)]
    for val, name in zip(taken[len(states) :], names[len(states) :], strict=True):
        results.append(s.add(val.dtype, (batch, length, *val.shape), val.mag, name))
    return results


def _scan_9(s: Scope, depth: int) -> list[Val]:
    c = s.context
    length: Dim = s.rng.choice((1, 2, 3, 4)) if c.chance(0.35) else c.symbol()
    c.features["Scan static" if isinstance(length, int) else "Scan dynamic"] += 1
    sources = [_scanned(s, length) for _ in range(s.rng.choice((1, 1, 2, 3)))]
    known = known_outside(s)
    body = inner(s, "Scan")
    states = []
    for _ in range(s.rng.choice((0, 1, 1, 2))):
        init = initial_value(s)
        kind = s.rng.choices(("update", "same", "constant", "captured", "other"), (8, 1, 1, 1, 2))[0]
        limit = max(init.mag, STATE_LIMIT[init.dtype])
        states.append(State(kind, init, body.parameter(init.dtype, init.shape, limit), limit))
        c.features[f"Scan state {kind}"] += 1
    elements = []
    for val, axis in sources:
        elements.append(body.parameter(val.dtype, (*val.shape[:axis], *val.shape[axis + 1 :]), val.mag))
    fill(body, depth)
    taken: list[Val] = []
    for state in states:
        taken.append(produced(body, next_state(body, state, states), taken))
    count = s.rng.choice((0, 1, 1, 2, 3)) if states else s.rng.randint(1, 3)
    for _ in range(count):
        val = scan_output(body, known, [*elements, *(state.inside for state in states)], None)
        taken.append(produced(body, val, taken))
    c.features["Scan without state"] += not states
    c.features["Scan K != M"] += count != len(sources)

    outputs = taken[len(states) :]
    axes = [s.rng.randint(0, val.rank) for val in outputs]
    attributes = {
        **_per_port(s, "scan_input_axes", [(a, v.rank) for v, a in sources]),
        **_per_port(s, "scan_output_axes", [(a, v.rank + 1) for v, a in zip(outputs, axes, strict=True)]),
        **_directions(s, "scan_input_directions", len(sources)),
        **_directions(s, "scan_output_directions", count),
    }
    names = [c.fresh("o") for _ in taken]
    initial = [*(state.init for state in states), *(val for val, _ in sources)]
    graph = body.graph(c.fresh("body"), taken)
    node = s.node("Scan", initial, names, body=graph, num_scan_inputs=len(sources), **attributes)
    c.scan_ranks[node.name] = [val.rank + 1 for val in outputs]
    results = [final(s, state, name) for state, name in zip(states, names, strict=False)]
    for val, axis, name in zip(outputs, axes, names[len(states) :], strict=True):
        certain = c.at_least(length, 1)
        dims = [d if certain or (isinstance(d, int) and body.style == "full") else c.dim(0) for d in val.shape]
        results.append(s.add(val.dtype, (*dims[:axis], length, *dims[axis:]), val.mag, name))
        if not certain and not all(isinstance(d, int) for d in dims):
            s.own.remove(results[-1])  # without iterations ONNX Runtime gives 0 for an unknown dimension
    return results


def _scanned(s: Scope, length: Dim) -> tuple[Val, int]:
    """A value with the given length along an axis, and that axis."""
    found = s.pick(lambda v: length in v.shape)
    if found is None or s.context.chance(0.4):
        shape: list[Dim] = [s.rng.randint(1, 3) for _ in range(s.rng.randint(0, 2))]
        if shape and s.context.chance(0.2):
            shape[0] = s.context.symbol()
        shape.insert(s.rng.randint(0, len(shape)), length)
        found = s.input(s.rng.choices((FLOAT, INT64, BOOL), (8, 1, 0.5))[0], tuple(shape))
    axis = s.rng.choice([i for i, d in enumerate(found.shape) if d == length])
    s.context.features["Scan axis > 0"] += axis > 0
    return found, axis


def _per_port(s: Scope, name: str, axes: list[tuple[int, int]]) -> dict[str, list[int]]:
    """An attribute of axes, some counted from the end; sometimes omitted if all are 0."""
    if not axes or (all(axis == 0 for axis, _ in axes) and s.context.chance(0.6)):
        return {}
    chance = 0.35 if s.context.opset >= 11 else 0.0
    named = [axis - rank if s.context.chance(chance) else axis for axis, rank in axes]
    s.context.features[f"{name} negative"] += min(named) < 0
    return {name: named}


def _directions(s: Scope, name: str, count: int) -> dict[str, list[int]]:
    if not count or s.context.chance(0.55):
        return {}
    flags = [s.rng.randint(0, 1) for _ in range(count)]
    s.context.features[f"{name} reverse"] += any(flags)
    return {name: flags}
