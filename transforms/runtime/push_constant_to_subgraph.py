"""Constants that enter a body through an input port."""

from __future__ import annotations

from mo_loop.graph import Value
from mo_loop.ops.base import Constant, Parameter
from mo_loop.ops.control import Control
from mo_loop.target import CRASH, Gap
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.port_maps import push_inputs


class PushConstantToSubgraph(FunctionPass):
    """an invariant input that is a Constant  ->  the same Constant in the body

    The runtime crashes on some models that pass constants as inputs of a control-flow operation. Axes and shapes are
    also easier to see where they are used. The file holds the data once in any case. Outer graphs come first, so one
    run moves a constant through all levels.
    """

    instead = "a copy of the constant in the bodies"
    avoids = (Gap(
        "constant-input-of-if",
        "a constant that is an input of If, Loop or TensorIterator, and is read elsewhere, crashes the process",
        severity=CRASH, since="2026.2.1",
    ),)  # fmt: skip

    bodies = "last"

    kinds = (Control,)

    def rewrite(self, node: Control) -> bool:
        if not push_inputs(node, lambda value: isinstance(value.node, Constant), _copy_inside):
            return self.refuse(node, "no invariant input is a Constant")
        return self.accept(node)


def _copy_inside(parameter: Parameter, value: Value) -> None:
    constant = value.node
    assert isinstance(constant, Constant)
    copy = Constant(constant.tensor, graph=parameter.graph, name=constant.name)
    copy.origins = constant.origins
    copy.output.copy_names(parameter.output)
    parameter.output.replace_with(copy.output)
