"""Steps in chunks: the arithmetic of a state S' = a * S + k v that products q S' read.

Inside a chunk of C steps, from the state S before it (i and j are steps):

    d(i, j) = a[j + 1] .. a[i] for j <= i, else 0        s(i) = a[0] .. a[i]        e(j) = d(C - 1, j)
    y[i] = (s(i) * q[i]) S + sum over j of d(i, j) (q[i] . k[j]) v[j]
    S    = s(C - 1) * S + sum over j of e(j) k[j] v[j]

If step j adds k (v - r p S), where S is the state that it reads (the delta rule), u[j] replaces v[j]:

    (I + L) u = v - r s(j) p[j] S                       L(i, j) = r[i] d(i, j) (p[i] . k[j]) for j < i

Only the last line needs the chunk before: a loop of T / C iterations. Products of factors are made of those of halves;
nothing is divided, so factors near 0 lose nothing. A NaN or an infinity of one step reaches all steps of its chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.ops.lengths import Length, as_value, ceil_divided, joined, larger
from mo_loop.ops.linear import inverse_of_lower
from mo_loop.ops.port_map import Concatenated, Final, Invariant, Merged, Sliced
from mo_loop.transforms.loops.lifted import Lifted, Steps, moved
from mo_loop.transforms.loops.worth import USUAL
from mo_loop.transforms.vocabulary import Constant, F, Graph, Parameter, Result, Value

SIZE, SIZE_SHORT = 32, 16
"""The steps of a chunk, powers of two. With a factor for each row, a pair of steps costs as many products as rows; with
the delta rule a chunk is a system of equations."""


@dataclass(frozen=True)
class Chunks:
    """Rows of steps [T, .., r, N] as those of chunks [.., count, size * r, N], for states of a rank."""

    steps: Steps
    size: int
    count: Length
    rank: int

    @classmethod
    def of(cls, steps: Steps, rank: int, *, is_short: bool) -> Chunks:
        size = SIZE_SHORT if is_short else SIZE
        return cls(steps, size, larger(ceil_divided(steps.count, size), 1), rank)  # no steps: one chunk of nothing

    @property
    def axis(self) -> int:
        """The axis of the chunks."""
        return self.rank - 2

    @property
    def is_whole(self) -> bool:
        """Whether the last chunk has as many steps as the others."""
        missing = self.count * self.size - self.steps.count
        return isinstance(missing, int) and missing == 0

    def apart(self, x: Lifted, filler: float = 0) -> Value:
        """A body value [.., r, N] in chunks; after the last step there is a filler."""
        whole = self.steps.wide(Lifted(self.steps.each(x), True), self.rank)
        rank = self.rank + 1
        if not self.is_whole:
            ends = joined([self.count * self.size - self.steps.count, *[0] * (rank - 1)], whole)
            value = Constant(np.array(filler), graph=whole.graph, dtype=whole.dtype)
            whole = F.Pad(whole, [0] * rank, ends, value)
        *batch, rows, columns = (whole.size(axis) for axis in range(1, rank))
        whole = moved(whole, 0, self.axis)
        made = whole.reshape([*batch, self.count, rows * self.size, columns])
        if not isinstance(self.count, int):
            self.steps.usual[made.type.dims[self.axis]] = USUAL // self.size
        return made

    def together(self, y: Value, rows: Length) -> Value:
        """Chunks of a body value [.., r, N] as it is in all steps."""
        batch = [y.size(axis) for axis in range(self.axis)]
        every = moved(F.Reshape(y, joined([*batch, self.count * self.size, rows, y.size(-1)], y)), self.axis, 0)
        return every if self.is_whole else every[: self.steps.count]

    def read(
        self, query: Lifted, keys: Value, values: Value, before: Value, decay: Decay | None, *,
        is_after: bool, of_transpose: bool,
    ) -> Value:
        """Rows times the state before or after each step."""
        q, rows = self.apart(query), query.value.size(-2)
        between, since = (_ones(self.size, q, is_after), None) if decay is None else decay.read(is_after)
        if isinstance(rows, int) and rows > 1:
            places = np.repeat(np.arange(self.size), rows)
            between = F.Gather(between, places, -3 if decay is not None and decay.by_row else -2)
            since = None if since is None else F.Gather(since, places, -2)
        if decay is not None and decay.by_row:
            every = F.Unsqueeze(q, [-2]) * between * F.Unsqueeze(keys, [-3])
            seen = F.ReduceSum(every, [-1])
        else:
            seen = F.MatMul(q, keys, transpose_b=True) * between
        q = q if since is None else q * since
        return self.together(seen @ values + F.MatMul(q, before, transpose_b=of_transpose), rows)

    def states(
        self, first: Value, decay: Decay | None, keys: Value, values: Value, retrieving: Value | None = None
    ) -> tuple[Value, Value, Value]:
        """The states before each chunk [.., count, K, V], the last state, and the values that the steps add.

        These are `values` without the product of `retrieving` with the state before the chunk.
        """
        ends = keys if decay is None else keys * decay.until
        whole = F.Unsqueeze(first, [self.axis])
        if decay is None and retrieving is None:
            added = F.MatMul(ends, values, transpose_a=True)
            before = whole + F.CumSum(added, self.axis, exclusive=True)
            return before, first + F.ReduceSum(added, [self.axis]), values
        factor = None if decay is None else decay.total
        given = [F.MatMul(ends, values, transpose_a=True)] if retrieving is None else [ends, values, retrieving]
        if self.count == 1:
            before, last = whole, F.Squeeze(_after(whole, factor, given), [self.axis])
        else:
            before, last = self._scanned(first, factor, given)
        if retrieving is not None:
            values = values - retrieving @ before
        if decay is not None and decay.since.type.dims[self.axis] == 1 and not self.is_whole:
            # The factors continue after the last step.
            last = self._after_last(before, decay, keys, values)
        return before, last, values

    def retrieved(
        self, rows: Value, keys: Value, values: Value, rate: Value | None, decay: Decay | None, *, is_decayed: bool
    ) -> tuple[Value, Value]:
        """The addends of the steps of a chunk if the state before it is 0, and the rows whose product with it they
        lack."""
        lower = _ones(self.size, rows, is_after=False)
        between, since = lower, None
        if decay is not None:
            between, since = decay.read(is_decayed)
            between = between * lower
        mixed = F.MatMul(rows, keys, transpose_b=True) * between
        rows = rows if since is None else rows * since
        if rate is not None:
            mixed, rows = mixed * rate, rows * rate
        inverse = inverse_of_lower(mixed, self.size, lambda each: _number(each, mixed))
        return inverse @ values, inverse @ rows

    def _after_last(self, before: Value, decay: Decay, keys: Value, values: Value) -> Value:
        """The state after the last step, within the last chunk."""
        ends, since = decay.after(self.steps.count - (self.count - 1) * self.size)
        ends, since = (F.Squeeze(x, [self.axis]) for x in (ends, since))
        before, keys, values = (F.Gather(x, -1, self.axis) for x in (before, keys, values))
        return before * since + F.MatMul(keys * ends, values, transpose_a=True)

    def _scanned(self, first: Value, factor: Value | None, given: Sequence[Value]) -> tuple[Value, Value]:
        body = Graph("chunks")
        held = Parameter(graph=body, type=first.type.without_known())
        tensors = [*given, *([] if factor is None else [factor])]
        ports = [self._sliced(body, each) for each in tensors]
        pieces = [each.parameter.output for each in ports]
        state = F.Unsqueeze(held.output, [self.axis])
        made = _after(state, None if factor is None else pieces.pop(), pieces)
        after, before = Result(F.Squeeze(made, [self.axis])), Result(state)
        last, every = F.TensorIterator(
            first, *tensors, graph=first.graph, body=body, input_map=(Merged(held, after), *ports),
            output_map=(Final(after), Concatenated(before, self.axis)),
        )
        return every, last

    def _sliced(self, body: Graph, x: Value) -> Any:
        """A tensor [.., count or 1, ..] in the loop over the chunks."""
        parameter = Parameter(graph=body, type=x.type.with_size(self.axis, 1))
        return Invariant(parameter) if x.type.dims[self.axis] == 1 else Sliced(parameter, self.axis)


def _after(state: Value, factor: Value | None, given: Sequence[Value]) -> Value:
    """The state after a chunk, from its addend, or from its keys, values and retrieving rows."""
    kept = state if factor is None else state * factor
    if len(given) == 1:
        return kept + given[0]
    ends, values, retrieving = given
    return kept + F.MatMul(ends, values - retrieving @ state, transpose_a=True)


@dataclass(frozen=True)
class Decay:
    """Products of factors inside chunks of C steps: d [.., C, C] or, by row, [.., C, C, K]; s and e [.., C, K or 1]."""

    factors: Value
    between: Value
    since: Value
    until: Value
    by_row: bool

    @classmethod
    def of(cls, chunks: Chunks, factor: Lifted, *, by_row: bool) -> Decay:
        """The decay of factors that are rows, [.., 1, K or 1]."""
        size = chunks.size
        if factor.varies:
            a = chunks.apart(factor, 1)
        else:  # [.., 1 chunk, C, K or 1]
            rank, x = chunks.rank, factor.value
            x = F.Unsqueeze(x, list(range(rank - factor.rank))) if factor.rank < rank else x
            a = F.Tile(F.Unsqueeze(x, [chunks.axis]), [*[1] * (rank - 1), size, 1])
        until = F.Broadcast(_number(1, a), a.sizes)
        between = _number(np.eye(size)[..., None] if by_row else np.eye(size), a)
        since, width = a, 1
        while width < size:
            block = np.arange(size) // width
            below = (block[:, None] % 2 == 1) & (block[None] == block[:, None] - 1)
            pairs = _outer(since, until, by_row)
            between = F.Select(below[..., None] if by_row else below, pairs, between)
            lasts = block * width + width - 1
            tops = F.Gather(since, np.minimum(lasts - width * (block % 2 == 1), size - 1), -2)
            ends = F.Gather(since, np.minimum(lasts + width * (block % 2 == 0), size - 1), -2)
            is_odd = (block % 2 == 1)[:, None]
            since, until = (F.Select(is_odd, since * tops, since), F.Select(is_odd, until, until * ends))
            width *= 2
        return cls(a, between, since, until, by_row)

    @property
    def total(self) -> Value:
        """The product p of all factors of a chunk, [.., K or 1, 1].

        It multiplies the state of every chunk, so that the same rounding of factors near 1 would add up. There, p is
        1 - sum of (1 - a[j]) e(j), whose rounding is that of 1.
        """
        one, product = _number(1, self.since), F.Gather(self.since, -1, -2)
        lost = F.ReduceSum((one - self.factors) * self.until, [-2])
        is_near_one = F.Less(F.Abs(lost), _number(0.5, lost))
        return F.Unsqueeze(F.Select(is_near_one, one - lost, product), [-1])

    def read(self, is_after: bool) -> tuple[Value, Value]:
        """d and s for readers of the states after each step, or before it: those of the step before."""
        if is_after:
            return self.between, self.since
        between, since = self._from_start()
        rows = -3 if self.by_row else -2
        return F.Slice(between, [0], [-1], [1], [rows]), F.Slice(since, [0], [-1], [1], [-2])

    def after(self, steps: Length) -> tuple[Value, Value]:
        """d and s after some steps of a chunk, [.., C, K or 1] and [.., K or 1, 1]; there may be none of them."""
        between, since = self._from_start()
        place = as_value(steps, since.graph)
        ends = F.Gather(between, place, -3 if self.by_row else -2)
        ends = ends if self.by_row else F.Unsqueeze(ends, [-1])
        return ends, F.Unsqueeze(F.Gather(since, place, -2), [-1])

    def _from_start(self) -> tuple[Value, Value]:
        """d and s after 0, 1, .. C steps of a chunk."""
        made = []
        for x, axis, number in ((self.between, -3 if self.by_row else -2, 0), (self.since, -2, 1)):
            first = F.Slice(x, [0], [1], [1], [axis])
            made.append(F.Concat(F.Broadcast(_number(number, first), F.ShapeOf(first)), x, axis=axis))
        return made[0], made[1]


def _outer(rows: Value, columns: Value, by_row: bool) -> Value:
    """[.., i, N] and [.., j, N]: [.., i, j], or for each of N, [.., i, j, N]."""
    if by_row:
        return F.Unsqueeze(rows, [-2]) * F.Unsqueeze(columns, [-3])
    return F.MatMul(rows, columns, transpose_b=True)


def _ones(size: int, like: Value, is_after: bool) -> Value:
    """d without factors: 1 from a step on, or from the one after it."""
    return _number(np.tril(np.ones((size, size)), 0 if is_after else -1), like)


def _number(array: Any, like: Value) -> Value:
    return F.Constant(np.array(array), graph=like.graph, dtype=like.dtype)
