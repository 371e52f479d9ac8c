"""Variables of dynamic shape whose next value has a known one."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Use
from mo_loop.graph.dimension import now
from mo_loop.target import ERROR, Gap
from mo_loop.transforms.runtime.barriers import BarrierPass, HiddenPort


class MakeAssignedShapesDynamic(BarrierPass):
    """Assign(x), where a size of the variable is dynamic and that of x is known  ->  Assign(Barrier(x, bounds))"""

    instead = "`Tile` of the value by a number known only at run time"
    avoids = (Gap(
        "static-value-of-dynamic-variable",
        "a tensor of static shape is not copied into a variable of dynamic shape", severity=ERROR,
    ),)  # fmt: skip

    kinds, hides = (ops.Assign,), "bounds"

    def places(self, node: ops.Assign) -> list[HiddenPort] | str:
        (value,) = node.operands
        if value.shape is None:
            return "the rank of its value is not known"
        sizes = enumerate(zip(value.shape, node.variable_shape, strict=True))
        axes = tuple(axis for axis, (dim, stored) in sizes if now(dim) is not None and not isinstance(stored, int))
        return [(Use(node, 0), axes)] if axes else "each size that is known is known of the variable as well"

