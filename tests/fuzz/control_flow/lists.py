"""Lists of tensors in random models: made, read, changed, mapped. `carried` makes control flow that carries them.

    x = [2, N]  ->  s = [x, y]; t = insert(s, z, n mod (len(s) + 1)); e = t[-1]; l = len(t)

Models are valid by construction: positions are taken modulo the length, and a list that may be empty is read in an If
that tests its length, or after an insertion.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from onnx import helper

from .pieces import to_scalar
from .scope import Scope
from .values import BOOL, FLOAT, INT32, INT64, LIMIT, STATE_LIMIT, Dim, Seq, Val

LARGEST = 4
"""The maximum of a size that differs between elements."""


def list_op(s: Scope) -> None:
    """Append one random operator on lists."""
    seq = chosen(s)
    if seq is None or s.context.chance(0.12):
        build(s)
        return
    reading, changing = (read, read, length, join), (append, insert, erase, mapped)
    s.rng.choice((*reading, *changing))(s, seq)


def chosen(s: Scope) -> Seq | None:
    """A visible list: mostly a recent one of this scope."""
    own = s.lists[-3:]
    if own and s.context.chance(0.7):
        return s.rng.choice(own)
    found = s.visible_lists()
    return s.rng.choice(found) if found else None


# ----------------------------------------------------------------------------------------------------- building lists


def build(s: Scope) -> Seq:
    """A new list: empty, of given elements, or the pieces of a tensor."""
    way = s.rng.choices(("empty", "elements", "split"), (2, 4, 4))[0]
    made = split(s) if way == "split" else None
    if made is None:
        made = _of_elements(s, _kind(s), int(way != "empty") * s.rng.randint(1, 3))
    count(s, made)
    return made


def _of_elements(s: Scope, kind: Seq, number: int) -> Seq:
    if not number:
        s.context.features["list empty at first"] += 1
        return s.emit_list("SequenceEmpty", [], kind, 0, dtype=kind.dtype)
    s.context.features["list of elements"] += 1
    return s.emit_list("SequenceConstruct", [element(s, kind) for _ in range(number)], kind, number)


def count(s: Scope, seq: Seq) -> None:
    """Count the kind of list among the features."""
    features = s.context.features
    features["list"] += 1
    features["list ragged"] += None in seq.sizes
    features["list ragged in two sizes"] += seq.sizes.count(None) > 1
    features["list of integers or booleans"] += seq.dtype != FLOAT


def _kind(s: Scope) -> Seq:
    """A random element type and sizes: those of a value, or any."""
    val = s.pick(lambda v: v.rank < 4)
    if val is not None and s.context.chance(0.5):
        sizes = tuple(None if s.context.chance(0.3) else dim for dim in val.shape)
        return Seq("", val.dtype, sizes, mag=max(val.mag, STATE_LIMIT[val.dtype]))
    dtype = s.rng.choices((FLOAT, INT64, INT32, BOOL), (7, 2, 1, 0.7))[0]
    rank = s.rng.choices((0, 1, 2, 3), (2, 4, 4, 1))[0]
    sizes = tuple(None if s.context.chance(0.45) else s.rng.randint(1, 3) for _ in range(rank))
    return Seq("", dtype, sizes, mag=STATE_LIMIT[dtype])


def split(s: Scope) -> Seq | None:
    """A tensor split into rows, chunks of one size, or pieces of given sizes."""
    val = s.pick(lambda v: 0 < v.rank < 4 and all(s.context.at_least(d, 1) for d in v.shape))
    if val is None:
        return None
    axis = s.rng.randrange(val.rank)
    named = axis - val.rank if s.context.chance(0.3) else axis
    way = s.rng.choice(("rows", "chunks", "sizes")) if not s.context.widens else "ones"
    s.context.features[f"list split in {way}"] += 1
    before, length, after = val.shape[:axis], val.shape[axis], val.shape[axis + 1 :]
    kind = Seq("", val.dtype, (*before, None, *after), mag=max(val.mag, STATE_LIMIT[val.dtype]))
    if way == "rows":
        kept = s.rng.randint(0, 1)
        rows = replace(kind, sizes=(*before, 1, *after) if kept else (*before, *after))
        least = length if isinstance(length, int) else s.context.minimum[length]
        return s.emit_list("SplitToSequence", [val], rows, least, axis=named, keepdims=kept)
    if way == "ones":
        ones = s.emit("Expand", [s.ints(1), _size(s, val, axis)], INT64, (s.context.dim(1),), 1.0)
        s.own.remove(ones)
        rows = replace(kind, sizes=(*before, 1, *after))
        least = length if isinstance(length, int) else s.context.minimum[length]
        return s.emit_list("SplitToSequence", [val, ones], rows, least, axis=named)
    if way == "chunks":
        each = s.constant(np.array(s.rng.randint(1, 3), np.int64))
        if s.context.chance(0.5):
            each = s.emit("Add", [modulo(s, number(s), _scalar(s, 3)), _scalar(s, 1)], INT64, (), 3.0)
        return s.emit_list("SplitToSequence", [val, each], kind, 1, axis=named)
    whole = _size(s, val, axis)
    first = s.constant(np.array([1], np.int64))
    if s.context.chance(0.6):
        place = s.emit("Add", [whole, s.ints(1)], INT64, (1,), 12.0)
        first = modulo(s, s.emit("Reshape", [number(s), s.ints(1)], INT64, (1,), 12.0), place)
    rest = s.emit("Sub", [whole, first], INT64, (1,), 12.0)
    return s.emit_list("SplitToSequence", [val, _vector(s, [first, rest])], kind, 2, axis=named)


# ----------------------------------------------------------------------------------------------------------- elements


def element(s: Scope, seq: Seq) -> Val:
    """A tensor that may be an element of a list: a visible one, or a new one."""
    ready = s.candidates(lambda v: _fits(v, seq))
    if ready and s.context.chance(0.5):
        return s.squash(s.rng.choice(ready), seq.mag)
    dtype = FLOAT if seq.dtype == BOOL else seq.dtype
    small = [d if isinstance(d, int) else 1 for d in seq.sizes]
    source = s.input(dtype, tuple(small)) if s.context.chance(0.3) else s.random_constant(dtype, small)
    open_ = [axis for axis, d in enumerate(seq.sizes) if not isinstance(d, int)]
    made = source
    if open_:
        sizes = _vector(s, [_size_for(s, d) for d in seq.sizes])
        shape = tuple(s.context.dim(0) if d is None else d for d in seq.sizes)
        made = s.emit("Expand", [source, sizes], dtype, shape, source.mag)
        for axis in open_:  # or all sizes along it would be equal
            at = s.constant(np.array(axis, np.int64))
            made = s.squash(s.emit("CumSum", [made, at], dtype, shape, made.mag * LARGEST), STATE_LIMIT[dtype])
    other = s.pick(lambda v: True, local=0.8)
    if other is not None and s.context.chance(0.6):
        shift = to_scalar(s, other, dtype)
        made = s.emit("Add", [made, shift], dtype, made.shape, made.mag + shift.mag)
    if seq.dtype == BOOL:
        return s.emit("Greater", [made, s.scalar(0.1)], BOOL, made.shape)
    return s.squash(made, seq.mag)


def _fits(val: Val, seq: Seq) -> bool:
    if val.dtype != seq.dtype or val.rank != seq.rank or val.mag > LIMIT[val.dtype]:
        return False
    return all(size is None or size == dim for size, dim in zip(seq.sizes, val.shape, strict=True))


def _size_for(s: Scope, size: Dim | None) -> Val:
    """A size [1]: a number, the size of a tensor, or one known only at run time, rarely 0."""
    if isinstance(size, int):
        return s.ints(size)
    if size is not None:
        owner = next((v for v in s.visible() if size in v.shape), None)
        return s.ints(1) if owner is None else _size(s, owner, owner.shape.index(size))
    some = modulo(s, s.emit("Reshape", [number(s), s.ints(1)], INT64, (1,), 12.0), s.ints(LARGEST))
    return some if s.context.chance(0.1) else s.emit("Add", [some, s.ints(1)], INT64, (1,), 4.0)


def _size(s: Scope, val: Val, axis: int) -> Val:
    sizes = s.emit("Shape", [val], INT64, (val.rank,), 12.0)
    return s.emit("Gather", [sizes, s.ints(axis)], INT64, (1,), 12.0, axis=0)


def _vector(s: Scope, parts: list[Val]) -> Val:
    return s.emit("Concat", parts, INT64, (len(parts),), max((part.mag for part in parts), default=1.0), axis=0)


def _scalar(s: Scope, value: int) -> Val:
    return s.scalar(value, INT64)


# ------------------------------------------------------------------------------------------------- numbers and places


def number(s: Scope) -> Val:
    """An integer scalar of any sign: the iteration number, a length, an input, or a constant."""
    counter = s.counter
    if counter is not None and s.context.chance(0.4):
        return counter if counter.rank == 0 else s.emit("Reshape", [counter, s.ints()], INT64, (), counter.mag)
    found = s.pick(lambda v: v.dtype == INT64 and v.rank == 0)
    if found is not None and s.context.chance(0.7):
        return found
    if s.context.chance(0.4):
        return s.input(INT64, (), tuple(s.rng.randint(-2, 7) for _ in range(3)))
    return _scalar(s, s.rng.randint(-3, 5))


def modulo(s: Scope, val: Val, limit: Val) -> Val:
    """From 0 to less than a limit above 0."""
    return s.emit("Mod", [val, limit], INT64, val.shape, limit.mag)


def place(s: Scope, seq: Seq, last: int = 0) -> Val:
    """A position among the elements, counted from either end, or up to `last` positions after them."""
    if s.context.chance(0.4) and seq.least + last > 0:
        return _scalar(s, s.rng.randint(-seq.least, seq.least + last - 1))
    size = size_of(s, seq)
    limit = s.emit("Add", [size, _scalar(s, 1)], INT64, (), size.mag + 1) if last else size
    found = modulo(s, number(s), limit)
    s.context.features["list place of the run"] += 1
    return s.emit("Sub", [found, size], INT64, (), size.mag) if s.context.chance(0.3) else found


def size_of(s: Scope, seq: Seq) -> Val:
    return s.emit("SequenceLength", [seq], INT64, (), 12.0)


# ------------------------------------------------------------------------------------------------------------- reading


def length(s: Scope, seq: Seq) -> None:
    s.context.features["list length"] += 1
    size_of(s, seq)


def read(s: Scope, seq: Seq) -> Val:
    """An element; of a list that may be empty, after a test or an insertion."""
    if seq.least < 1 and s.context.carries_lists and s.context.chance(0.5):
        return _read_if_any(s, seq)
    seq = seq if seq.least else append(s, seq)
    s.context.features["list read"] += 1
    return _at(s, seq)


def _at(s: Scope, seq: Seq) -> Val:
    shape = tuple(s.context.dim(0) if d is None else d for d in seq.sizes)
    return s.emit("SequenceAt", [seq, place(s, seq)], seq.dtype, shape, seq.mag)


def _read_if_any(s: Scope, seq: Seq) -> Val:
    s.context.features["list read after a test"] += 1
    name = s.context.fresh("o")
    found = branches(s, _any(s, seq), lambda body: _at(body, replace(seq, least=1)), lambda body: element(body, seq))
    s.node("If", [found[0]], [name], then_branch=found[1], else_branch=found[2])
    return s.add(seq.dtype, tuple(s.context.dim(0) if d is None else d for d in seq.sizes), seq.mag, name)


def _any(s: Scope, seq: Seq) -> Val:
    return s.emit("Greater", [size_of(s, seq), _scalar(s, 0)], BOOL, ())


def branches(s: Scope, condition: Val, then: Callable[[Scope], Val | Seq],
             otherwise: Callable[[Scope], Val | Seq]) -> tuple:
    """A condition and two bodies of one output each."""
    graphs = []
    for title, make in (("then", then), ("else", otherwise)):
        body = Scope(s.context, s)
        body.kind, body.style = "If", "type"
        made = make(body)
        if made.name not in body.names or any(tensor.name == made.name for tensor in body.initializers):
            made = body.copy(made)
        graphs.append(body.graph(s.context.fresh(title), [made]))
    return (condition, *graphs)


def join(s: Scope, seq: Seq) -> Val:
    """All elements as one tensor, along one of their axes or a new one."""
    ragged = [axis for axis, d in enumerate(seq.sizes) if d is None]
    new = not seq.rank or (not ragged and s.context.chance(0.5))
    if len(ragged) > 1 or seq.rank > 3:
        return read(s, seq)
    seq = seq if seq.least else append(s, seq)
    rank = seq.rank + new
    axis = ragged[0] if ragged else s.rng.randrange(rank)
    dims = [d for i, d in enumerate(seq.sizes) if i != axis or new]
    named = axis - rank if s.context.chance(0.3) else axis
    s.context.features["list joined on a new axis" if new else "list joined"] += 1
    shape = (*dims[:axis], s.context.dim(0), *dims[axis:])
    return s.emit("ConcatFromSequence", [seq], seq.dtype, shape, seq.mag, axis=named, new_axis=int(new))  # type: ignore[arg-type]


def shown(s: Scope) -> list[Val]:
    """Outputs that depend on the elements of the most recent lists."""
    found = []
    for seq in s.lists[-3:]:
        found.append(size_of(s, seq))
        found.append(join(s, seq) if s.context.chance(0.6) else read(s, seq))
    return found


# ------------------------------------------------------------------------------------------------------------ changing


def change(s: Scope, seq: Seq) -> Seq:
    """The list changed in some way."""
    made: Seq = s.rng.choice((append, append, insert, insert, erase, mapped))(s, seq)
    return made


def append(s: Scope, seq: Seq) -> Seq:
    s.context.features["list appended to"] += 1
    return s.emit_list("SequenceInsert", [seq, element(s, seq)], seq, seq.least + 1)


def insert(s: Scope, seq: Seq) -> Seq:
    s.context.features["list inserted into"] += 1
    return s.emit_list("SequenceInsert", [seq, element(s, seq), place(s, seq, 1)], seq, seq.least + 1)


def erase(s: Scope, seq: Seq) -> Seq:
    """Without one element; for a list that may be empty, in a branch that is taken if it is not."""
    s.context.features["list erased in"] += 1
    if seq.least > 0:
        return _erased(s, seq)
    if not s.context.carries_lists:
        return _erased(s, append(s, seq))
    found = branches(s, _any(s, seq), lambda body: _erased(body, replace(seq, least=1)), lambda body: seq)
    s.context.features["list returned from If"] += 1
    return s.emit_list("If", [found[0]], seq, 0, then_branch=found[1], else_branch=found[2])


def _erased(s: Scope, seq: Seq) -> Seq:
    where = [place(s, seq)] if s.context.chance(0.7) else []
    return s.emit_list("SequenceErase", [seq, *where], seq, seq.least - 1)


def mapped(s: Scope, seq: Seq) -> Seq:
    """A function of every element: of the list alone, the list twice, or with a tensor as another operand."""
    if s.context.opset < 17 or seq.dtype not in (FLOAT, INT32):
        return append(s, seq)
    s.context.features["list mapped"] += 1
    way = s.rng.choice(("alone", "twice", "tensor"))
    body = Scope(s.context)
    names = [s.context.fresh("e") for _ in range(1 if way == "alone" else 2)]
    inputs: list[Val | Seq] = [seq]
    if way == "twice":
        inputs.append(seq)
    elif way == "tensor":
        inputs.append(_beside(s, seq.dtype))
    op = {"alone": "Neg", "twice": "Max", "tensor": "Sub"}[way]
    made = Val(s.context.fresh("e"), seq.dtype, ())
    body.nodes.append(helper.make_node(op, names, [made.name], name=s.context.fresh("n")))
    mag = seq.mag + (inputs[-1].mag if way == "tensor" else 0)
    if mag > seq.mag:
        made = body.emit("Tanh" if seq.dtype == FLOAT else "Sign", [made], seq.dtype, ())
    sizes = [d if isinstance(d, int) else None for d in seq.sizes]
    shapes = [sizes, [] if way == "tensor" else sizes]
    ports = [helper.make_tensor_value_info(n, seq.dtype, shape) for n, shape in zip(names, shapes, strict=False)]
    result = helper.make_tensor_value_info(made.name, seq.dtype, shapes[0])
    graph = helper.make_graph(body.nodes, s.context.fresh("map"), ports, [result])
    return s.emit_list("SequenceMap", inputs, seq, seq.least, body=graph)


def _beside(s: Scope, dtype: int) -> Val:
    other = s.pick(lambda v: v.dtype == dtype)
    return s.scalar(0.5 if dtype == FLOAT else 2, dtype) if other is None else to_scalar(s, other, dtype)
