"""Variables of dynamic shape whose next value has a known one."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.target import ERROR, Gap
from transforms.function_pass import FunctionPass
from transforms.replace import insert_before


class MakeAssignedShapesDynamic(FunctionPass):
    """Assign(x), where a size of the variable is dynamic and that of x is known  ->  Assign(Barrier(x, bounds))

    The runtime does not copy a tensor of static shape into a variable of dynamic shape.
    """

    instead = "`Tile` of the value by a number known only at run time"
    avoids = (
        Gap(
            "static-value-of-dynamic-variable",
            "a tensor of static shape is not copied into a variable of dynamic shape", severity=ERROR,
        ),
    )  # fmt: skip

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, ops.Assign, self._hide)

    def _hide(self, node: ops.Assign) -> bool:
        value = node.operands[0]
        if value.shape is None:
            return self.refuse(node, "the rank of its value is not known")
        sizes = list(zip(value.shape, node.variable_shape, strict=True))
        axes = tuple(axis for axis, (dim, stored) in enumerate(sizes) if _is_known(dim) and not _is_known(stored))
        if not axes:
            return self.refuse(node, "each size that is known is known of the variable as well")
        insert_before(node, 0, lambda value: ops.Barrier(value, hides="bounds", axes=axes))
        return self.accept(node)


def _is_known(dim: object) -> bool:
    return isinstance(dim, int) and dim >= 0
