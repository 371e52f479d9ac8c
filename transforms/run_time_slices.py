"""Slices with an end that is known only at run time.

    y  ->  Slice(y, 0, end) of every element of y

The runtime keeps the result of such a Slice in memory of its own, and infers no size for it.
"""

TO_THE_END = 2**30
"""A Slice end beyond every dimension; the runtime computes wrong results for ends above 2^31 - 1."""
