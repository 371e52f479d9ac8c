"""Residual streams: rows of their own, or all rows in the last dimension."""

from tests.fuzz.operators.draw import OMITTED, Draw, Node, Port


def gate(d: Draw) -> Node:
    dtype = d.dtype("T")
    shape = [d.size(empty=0.01), d.size(empty=0.01), d.integer(1, 3), d.size(2, 5, 0)]
    scales = [d.data(shape[2:], dtype, constant=0.6, computed=False) for _ in range(3)]
    value, outputs = d.data([*shape[:2], shape[3]], dtype), d.pick(1, 2)
    return d.node([d.data(shape, dtype), d.data(shape, dtype), value, *scales[: 1 + outputs]], outputs=outputs,
                  epsilon=d.maybe(d.pick(1e-5, 1e-3)))


def _streams(d: Draw) -> tuple[list[int], int, int, bool, Port]:
    """Leading sizes, the number of rows and their width, whether they are flattened, and the streams."""
    before, count, size, flat = d.shape(1, 2, empty=0.01), d.integer(1, 3), d.integer(2, 5), d.chance(0.5)
    shape = [*before, count * size] if flat else [*before, count, size]
    return before, count, size, flat, d.data(shape, d.dtype("T"))


def pre_mix(d: Draw) -> Node:
    before, count, size, flat, x = _streams(d)
    ends = [[count], [count, 1], [count, size]] + ([[count * size]] if flat else [])
    mix = d.data([*before, *d.pick(*ends)], d.dtype("M"))
    return d.node([x, mix], num_branches=count if flat else OMITTED, reduction_scale=d.maybe(d.number(0.3, 2)))


def post_mix(d: Draw) -> Node:
    before, count, size, flat, x = _streams(d)
    kind = d.dtype("M")
    gates = d.data([*before, *d.pick([count], [count, 1], [count, size])], kind)
    mix = d.data([*before, count, count], kind)
    return d.node(
        [x, d.data([*before, size], x.array.dtype), gates, d.optional(mix)], num_branches=count if flat else OMITTED
    )


OPERATORS = {"com.microsoft::EngramGate": gate, "com.microsoft::HyperConnectionPreMix": pre_mix,
             "com.microsoft::HyperConnectionPostMix": post_mix}
