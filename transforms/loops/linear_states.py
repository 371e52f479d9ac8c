"""States that are matrices to which every step adds a product of a column and a row, read by products.

    S' = a * S + k v                a: a number, or one for each row or each column of S
    S' = a * S + k (v - r p a S)    the delta rule; also with p S
    y = q S'                        also S' q, and both with S; sum (q * S') along rows or columns

This is linear attention in the forms that RetNet, GLA, Mamba-2 and RWKV give it. No step needs S itself, so all steps
are computed in chunks (transforms/loops/chunks.py).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from mo_loop.graph.dimension import low
from mo_loop.ops.port_map import Concatenated
from mo_loop.transforms.loops.chunks import Chunks, Decay
from mo_loop.transforms.loops.closed_forms import FLOATS, Solved, State
from mo_loop.transforms.loops.lifted import Lifted, Steps, squeezed, unsqueezed
from mo_loop.transforms.loops.lifting import Lifting
from mo_loop.transforms.loops.pieces import FEW
from mo_loop.transforms.vocabulary import F, Node, Result, Value, is_static, ops

NUMBERS = 512
"""The least numbers of a state: smaller ones are computed faster one step after the other."""

STEPS = 32
"""The least steps, if their number is known."""


@dataclass(frozen=True)
class _Read:
    """A product of rows [.., r, K] with a state [.., K, V], or with its transpose; `shaped` makes `output` of it."""

    output: Value
    rows: Lifted
    is_after: bool
    of_transpose: bool
    shaped: Callable[[Value], Value]


@dataclass(frozen=True)
class _Retrieval:
    """r p S, where S is the state after its decay or before it; `node` reads S."""

    node: Node
    rows: Lifted
    rate: Lifted | None
    is_decayed: bool


@dataclass(frozen=True)
class _Update:
    """a * S + k (v - r p S): `keys` are the rows k^T, `values` the rows v; `kept` is the node that reads S."""

    factor: Lifted | None
    keys: Lifted
    values: Lifted
    kept: Node
    retrieval: _Retrieval | None = None


def solved_in_chunks(state: State) -> Solved | None:
    """The last value of a state and all that reads it, if it is of this kind and large enough."""
    dims, count = state.initial.shape, state.steps.count
    if state.exact_order or dims is None or len(dims) < 2 or not is_static(dims) or state.initial.dtype not in FLOATS:
        return None
    has_few = state.node.graph.name == FEW or (isinstance(count, int) and count < STEPS)
    if math.prod(map(low, dims)) < NUMBERS or has_few:
        return None
    update = _update(state)
    if update is None:
        return None
    reads = list(_reads(state, update))
    known = [each for each in reads if each is not None]
    return _computed(state, update, known) if len(known) == len(reads) else None


def _computed(state: State, update: _Update, reads: list[_Read]) -> Solved | None:
    """All of it; with a factor for each column, for the transpose of the state."""
    steps, rank = state.steps, state.initial.type.rank
    keys, values, initial, factor = update.keys, update.values, state.initial, update.factor
    by_column = _is_long(factor)
    if by_column:
        keys, values, initial = values, keys, _swapped(Lifted(initial, False)).value
        reads = [replace(each, of_transpose=not each.of_transpose) for each in reads]
    elif factor is not None and factor.rank > 1:
        factor = _swapped(factor)
    by_row = _is_long(factor)
    if by_row and any(each.of_transpose for each in reads):
        return None
    retrieval = update.retrieval
    if retrieval is not None and (by_row or by_column):
        return None
    chunks = Chunks.of(steps, rank, is_short=by_row or retrieval is not None)
    decay = None if factor is None else Decay.of(chunks, factor, by_row=by_row)
    k, v = chunks.apart(keys), chunks.apart(values)
    retrieving = None
    if retrieval is not None:
        rate = None if retrieval.rate is None else chunks.apart(retrieval.rate)
        rows = chunks.apart(retrieval.rows)
        v, retrieving = chunks.retrieved(rows, k, v, rate, decay, is_decayed=retrieval.is_decayed)
    before, last, v = chunks.states(initial, decay, k, v, retrieving)
    made = {}
    for each in reads:
        pair = (v, k) if each.of_transpose else (k, v)
        found = chunks.read(each.rows, *pair, before, decay, is_after=each.is_after, of_transpose=each.of_transpose)
        made[each.output] = each.shaped(found)
    return Solved(None, None, _swapped(Lifted(last, False)).value if by_column else last, made)


def _is_long(factor: Lifted | None) -> bool:
    """Whether the last dimension of a factor holds several numbers."""
    return factor is not None and factor.dims[-1:] not in ((), (1,))


# -- what a step adds


def _update(state: State) -> _Update | None:
    made, held = state.next.node, state.entry.parameter.output
    if not isinstance(made, ops.Add):
        return None
    for kept, added in (made.operands, made.operands[::-1]):
        factor = None
        if kept is not held:
            by = kept.node
            if not isinstance(by, ops.Multiply) or held not in by.operands:
                continue
            others = [each for each in by.operands if each is not held]
            factor = state.lifting[others[0]] if others else None
            if factor is None or not _is_factor(factor, state.initial.type.dims):
                continue
        pair = _pair(state.lifting, added)
        found = _delta(state, kept, added) if pair is None else (*pair, None)
        if found is None:
            continue
        column, row, retrieval = found
        readers = {made} | ({retrieval.node} if retrieval is not None and retrieval.is_decayed else set())
        if kept is not held and {use.node for use in kept.uses} != readers:
            continue
        sizes = (column.dims[-2], row.dims[-1])
        if sizes == state.initial.type.dims[-2:] and max(column.rank, row.rank) <= state.initial.type.rank:
            return _Update(factor, _swapped(column), row, made if kept is held else kept.node, retrieval)
    return None


def _is_factor(factor: Lifted, dims: tuple[object, ...]) -> bool:
    """Whether a value is the same for all rows, or for all columns."""
    last = (1, 1, *factor.dims)[-2:]
    return factor.rank <= len(dims) and is_static(factor.dims) and 1 in last


def _pair(lifting: Lifting, value: Value) -> tuple[Lifted, Lifted] | None:
    """A column [.., K, 1] and a row [.., 1, V] or [V] of which `value` is the product."""
    node, steps = value.node, lifting.steps
    if isinstance(node, ops.MatMul):
        a, b = (lifting[each] for each in node.operands)
        if a is None or b is None or a.rank < 2 or b.rank < 2:
            return None
        a, b = _swapped(a) if node.transpose_a else a, _swapped(b) if node.transpose_b else b
        return (a, b) if a.dims[-1] == 1 else None
    if not isinstance(node, ops.Multiply):
        return None
    for x, y in (node.operands, node.operands[::-1]):
        first, second = lifting[x], lifting[y]
        if first is not None and second is not None and _is_column(first) and _is_row(second):
            return first, second
        inner = _pair(lifting, x)
        if inner is None or second is None:
            continue
        column, row = inner
        if second.rank == 0 or _is_column(second):
            return _product(steps, column, second), row
        if _is_row(second):
            return column, _product(steps, row, second)
    return None


def _delta(state: State, kept: Value, added: Value) -> tuple[Lifted, Lifted, _Retrieval] | None:
    """k, v and r p S of k (v - r p S)."""
    node, lifting, dims = added.node, state.lifting, state.initial.type.dims
    if not isinstance(node, ops.Multiply | ops.MatMul) or getattr(node, "transpose_a", False):
        return None
    orders = [node.operands] if isinstance(node, ops.MatMul) else [node.operands, node.operands[::-1]]
    for column, row in orders:
        keys = lifting[column]
        if keys is None or keys.rank < 2 or keys.dims[-1] != 1 or getattr(node, "transpose_b", False):
            continue
        found = _difference(state, row) if _is_row_of(row, dims) else None
        if found is None:
            return None
        values, rate, read = found
        while isinstance(read.node, ops.Unsqueeze | ops.Squeeze):
            read = read.node.operands[0]
        by = read.node.operands[0].node if isinstance(read.node, ops.ReduceSum) else read.node
        held = state.entry.parameter.output
        source = next((each for each in (kept, held) if each in by.inputs), None)
        if source is None or not isinstance(by, ops.MatMul | ops.Multiply):
            return None
        form = _by_product if isinstance(by, ops.MatMul) else _by_sum
        reading = form(state, by, source, False)
        if reading is None or reading.output is not read or reading.of_transpose or reading.rows.dims[-2] != 1:
            return None
        is_decayed = source is kept and kept is not held
        return keys, values, _Retrieval(by, reading.rows, rate, is_decayed)
    return None


def _is_row_of(value: Value, dims: tuple[object, ...]) -> bool:
    """Whether a value is a row [.., 1, V] of a state."""
    return value.rank == len(dims) and value.type.dims == (*dims[:-2], 1, dims[-1])


def _difference(state: State, value: Value) -> tuple[Lifted, Lifted | None, Value] | None:
    """v, r and x of a row v - r x; the steps do not determine x."""
    lifting, rank, node = state.lifting, state.initial.type.rank, value.node
    if isinstance(node, ops.Unsqueeze) and _is_row_of(value, state.initial.type.dims):
        inner = node.operands[0]
        return _difference(state, inner) if inner.type.dims == (*value.type.dims[:-2], value.type.dims[-1]) else None
    if isinstance(node, ops.Multiply):
        for x, y in (node.operands, node.operands[::-1]):
            factor = lifting[x]
            found = None if factor is None else _difference(state, y)
            if factor is None or found is None or (factor.rank and factor.dims[-1] != 1):
                continue
            factor, (values, former, read) = _as_row(factor, value, rank), found
            both = factor if former is None else _product(lifting.steps, factor, former)
            return _product(lifting.steps, values, factor), both, read
        return None
    whole = lifting[node.operands[0]] if isinstance(node, ops.Subtract) else None
    if whole is None or whole.rank != value.rank or whole.dims[-1] != state.initial.type.dims[-1]:
        return None
    return _as_row(whole, value, rank), None, node.operands[1]


def _as_row(x: Lifted, beside: Value, rank: int) -> Lifted:
    """An operand of a row of a state of some rank, as [.., 1, N]: the row may lack the dimension of 1."""
    if x.rank == 0 or beside.rank == rank:
        return x
    return Lifted(unsqueezed(x.value, [x.value.type.rank - 1]), x.varies)


def _is_column(x: Lifted) -> bool:
    return x.rank > 1 and x.dims[-1] == 1


def _is_row(x: Lifted) -> bool:
    return x.rank == 1 or (x.rank > 1 and x.dims[-2] == 1)


def _product(steps: Steps, a: Lifted, b: Lifted) -> Lifted:
    rank = max(a.rank, b.rank)
    return Lifted(steps.wide(a, rank) * steps.wide(b, rank), a.varies or b.varies)


# -- what reads a state


def _reads(state: State, update: _Update) -> Iterator[_Read | None]:
    """The products that read the state before and after a step; None for another use."""
    outputs = [each for each in state.node.output_map if isinstance(each, Concatenated)]
    for value, is_after in ((state.entry.parameter.output, False), (state.next, True)):
        for use in value.uses:
            if not is_after and (use.node is update.kept or (update.retrieval and use.node is update.retrieval.node)):
                continue
            if isinstance(use.node, Result):
                is_known = use.node is state.entry.result and all(each.result is not use.node for each in outputs)
                if not is_known:
                    yield None
            elif isinstance(use.node, ops.MatMul):
                yield _by_product(state, use.node, value, is_after)
            elif isinstance(use.node, ops.Multiply):
                yield _by_sum(state, use.node, value, is_after)
            else:
                yield None


def _by_product(state: State, node: ops.MatMul, value: Value, is_after: bool) -> _Read | None:
    """q S or S q"""
    place = node.operands.index(value)
    query = state.lifting[node.operands[1 - place]]
    if query is None or query.rank > state.initial.type.rank or not is_static(query.dims[-2:]):
        return None
    on_left = place == 1
    swaps = node.transpose_a if on_left else not node.transpose_b
    transposed = node.transpose_b if on_left else not node.transpose_a
    if query.rank == 1:
        rows = Lifted(unsqueezed(query.value, [int(query.varies)]), query.varies)
        return _Read(node.output, rows, is_after, transposed, lambda made: squeezed(made, made.type.rank - 2))
    rows = _swapped(query) if swaps else query
    return _Read(node.output, rows, is_after, transposed, _as_is if on_left else _swapped_value)


def _by_sum(state: State, node: ops.Multiply, value: Value, is_after: bool) -> _Read | None:
    """sum (q * S) along the rows or the columns"""
    use = node.output.only_use
    others = [each for each in node.operands if each is not value]
    query = state.lifting[others[0]] if len(others) == 1 else None
    if query is None or use is None or not isinstance(use.node, ops.ReduceSum):
        return None
    total, rank = use.node, state.initial.type.rank
    axes = total.along
    if axes is None or len(axes) != 1 or not 1 <= query.rank <= rank or node.output.rank != rank:
        return None
    axis = axes[0] - rank
    if axis == -2 and query.rank > 1 and query.dims[-2:] == (state.initial.type.dims[-2], 1):
        shaped = _as_is if total.keep_dims else lambda made: squeezed(made, made.type.rank - 2)
        return _Read(total.output, _swapped(query), is_after, False, shaped)
    if axis == -1 and _is_row(query) and query.dims[-1] == state.initial.type.dims[-1]:
        shaped = _swapped_value if total.keep_dims else lambda made: squeezed(made, made.type.rank - 2)
        rows = query if query.rank > 1 else Lifted(unsqueezed(query.value, [int(query.varies)]), query.varies)
        return _Read(total.output, rows, is_after, True, shaped)
    return None


def _as_is(made: Value) -> Value:
    return made


def _swapped_value(made: Value) -> Value:
    return _swapped(Lifted(made, False)).value


def _swapped(x: Lifted) -> Lifted:
    """Each matrix transposed."""
    order = list(range(x.value.type.rank))
    order[-2:] = order[-1], order[-2]
    return Lifted(F.Transpose(x.value, order), x.varies)
