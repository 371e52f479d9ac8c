"""GELU and its approximations, with and without a bias."""

from tests.fuzz.operators.draw import Draw, Node
from tests.fuzz.operators.table import between, unary


def with_bias(d: Draw) -> Node:
    """The bias has the size of the last dimension. BiasGelu requires it."""
    x = d.data(d.shape(1, 4))
    bias = d.data(x.shape[-1:], x.array.dtype, constant=0.7, computed=False)
    return d.node([x, bias if d.op.endswith("BiasGelu") else d.optional(bias)])


OPERATORS = {"com.microsoft::Gelu": unary(), "com.microsoft::QuickGelu": unary(alpha=between(0.2, 2)),
             "com.microsoft::BiasGelu": with_bias, "com.microsoft::FastGelu": with_bias}
