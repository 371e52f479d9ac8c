"""Reductions, ArgMax and ArgMin."""

from .draw import OMITTED, Draw, Node
from .table import Description

FLOATS = "float float16 double"


def reduction(values: str = "any", only: str = "") -> Description:
    """Axes as an attribute, or as an input in later opsets; without axes all dimensions, or none."""

    def describe(d: Draw) -> Node:
        x = d.data(d.shape(0, 5), d.dtype("T", only), values)
        keep = d.maybe(d.pick(0, 0, 1))
        axes, given = d.axes(x.rank), d.chance(0.8)
        if "axes" in d.schema.attributes:
            return d.node([x], axes=axes if axes and given else OMITTED, keepdims=keep)
        ports = [x, d.parameter(axes, constant=0.7)] if given else [x]
        return d.node(ports, keepdims=keep, noop_with_empty_axes=d.maybe(d.pick(0, 1)))

    return describe


def place(d: Draw) -> Node:
    """The first or the last extreme; equal values are frequent."""
    x = d.data(d.shape(1, 5), d.dtype(), "masked" if d.chance(0.4) else "any")
    last = d.maybe(d.pick(0, 1), 0.5)
    return d.node([x], axis=d.maybe(d.axis(x.rank)), keepdims=d.maybe(d.pick(0, 1)), select_last_index=last)


OPERATORS = {**dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare"), reduction()),
             **dict.fromkeys(("ReduceMax", "ReduceMin"), reduction("masked")), "ReduceProd": reduction("small"),
             "ReduceLogSum": reduction("positive", FLOATS), "ReduceLogSumExp": reduction("small", FLOATS),
             "ArgMax": place, "ArgMin": place}
