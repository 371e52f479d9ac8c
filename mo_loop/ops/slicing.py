"""The number of elements of a slice of a partly known dimension.

    x[1:] of N        ->  0..        x[1:] of 2..   ->  1..        x[:N] of N  ->  N
    x[-3:] of 0..9    ->  0..3       x[::2] of N    ->  floor(N+1/2)

Negative bounds count from the end, and bounds are clamped to the tensor, as in numpy; but with a negative step a start
before the first element is the first element.
"""


from mo_loop.graph.dimension import LEAST, Dimension, fresh, high, least, low, most

FAR = 2**30 - 1
"""Larger bounds mean the end of the tensor, or its beginning if they are negative, also in bounds that are computed.

It is odd: the runtime multiplies bounds of sizes in 32 bits, and takes a size for 0 if the product of its bound is 0.
"""

END = 2**31 - 1
"""The largest bound of a Slice: the runtime computes wrong results for larger ones."""


def sliced_dim(dim: Dimension, start, stop, step) -> Dimension:
    """The number of elements of a slice of a dimension; a bound that is None is not known."""
    if not isinstance(step, int) or step == 0 or start is None or stop is None:
        return fresh(0, high(dim))
    if step < 0:  # the same elements are picked from the reversed tensor by the complements of the bounds
        start, stop, step = -start - 1, -stop - 1, -step
        top = most(start)
        if isinstance(dim, int) and isinstance(start, int):
            start = min(start, max(dim - 1, 0))
        elif top is None or top >= max(low(dim), 1):
            return fresh(0, high(dim))
    begin, end = _place(start, dim), _place(stop, dim)
    if begin is None or end is None:
        return _slice_bounds(dim, start, stop, step)
    span = end - begin
    if isinstance(span, int):
        return -(-max(span, 0) // step)
    if span.lo < 0:
        return _slice_bounds(dim, start, stop, step)
    return (span + (step - 1)) // step


def _place(bound, dim: Dimension) -> Dimension | None:
    """The position of a bound of a slice between 0 and `dim`; None if it depends on values."""
    lo, hi = least(bound), most(bound)
    if lo >= FAR:
        return dim
    if lo < 0 and (hi is None or hi >= 0):
        return None
    if isinstance(bound, int) and bound <= -FAR:
        return 0
    place = bound if lo >= 0 else bound + dim
    top, rest = most(place), least(dim - place)
    if rest >= 0 and least(place) >= 0:
        return place
    if top is not None and top <= 0:
        return 0
    remaining = most(dim - place)
    return dim if remaining is not None and remaining <= 0 else None


def _slice_bounds(dim: Dimension, start, stop, step: int) -> Dimension:
    """The least and the largest number of elements of a slice with a positive step."""
    top = high(dim)
    if not isinstance(start, int) or not isinstance(stop, int):
        ends = [top, most(stop) if least(stop) >= 0 else None]  # no position is greater than either
        if (most(start) or 0) < 0 and least(start) > LEAST:
            ends.append(-least(start))
        end = min((each for each in ends if each is not None and each < FAR), default=None)
        return fresh(0, None if end is None else -(-end // step))
    kept = [len(range(*slice(start, stop, step).indices(size))) for size in (low(dim), FAR if top is None else top)]
    if start < 0 <= stop < FAR:  # more elements are not kept of a longer tensor: these begin too late
        most_kept = -(-min(-start, stop) // step)
        return fresh(0, most_kept if top is None else min(most_kept, -(-top // step)))
    endless = top is None and (0 <= start < FAR or start <= -FAR) and (-FAR < stop < 0 or stop >= FAR)
    return fresh(kept[0], None if endless else kept[1])
