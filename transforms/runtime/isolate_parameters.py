"""Parameters of bodies that in-place operations of the runtime would overwrite."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph.types import string
from mo_loop.ops.base import Parameter
from mo_loop.ops.control import Iteration
from mo_loop.target import ERROR, Gap
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.runtime.memory import overwritten


class IsolateParameters(FunctionPass):
    """p  ->  Barrier(p, memory)

    After an iteration the runtime copies the new slices, the new iteration number and then the back edges, one after
    another. A view of one Parameter can thus be overwritten before it is copied to another. Let A be the operations of
    IN_PLACE, control flow and Identity. A Parameter p of a Loop or TensorIterator is isolated if

    - p is the Result of another state;
    - p is a state, an A reads it, and the Result of another state depends on that A;
    - p is sliced or the iteration number, and the Result of a state depends on it;
    - p is invariant, and an A or the Result of a state reads it. A Gather whose index changes with the iteration does
      not count, nor does a view that only such a Gather reads: it copies, and isolation would copy the whole of p in
      every iteration. An element-wise operation on two scalars counts if the other scalar is the output of an A: then
      the runtime lets it write into p.
    """

    instead = "`max(p, p)` after the body Parameter, `p or p` for booleans"
    avoids = (
        Gap(
            "swapped-states",
            "back edges are copied one after another: a state that becomes another state has its new value by then",
        ),
        Gap(
            "view-of-state",
            "a view of one state (Reshape, Squeeze, Gather with a constant index) becomes another state too late",
        ),
        Gap("previous-slice", "a state that is a slice of the iteration before is the slice of the current one"),
        Gap(
            "iteration-number-as-state",
            "a state that is the number of the iteration before is that of the current one",
        ),
        Gap("captured-tensor-overwritten", "a captured tensor that a scatter reads is overwritten in place"),
        Gap(
            "captured-scalar-overwritten",
            "an elementwise operation of a captured scalar and a view of a slice overwrites the scalar: the results "
            "are running sums or products",
        ),
        Gap(
            "captured-tensor-as-state", "a state that becomes a captured tensor and is read elsewhere does not compile",
            severity=ERROR,
        ),
    )  # fmt: skip

    kinds = (Iteration,)

    def rewrite(self, node: Iteration) -> bool:
        isolated = [_isolate(parameter) for parameter in overwritten(node)]
        if any(isolated):
            return self.accept(node)
        return self.refuse(node, "they are isolated already" if isolated else "nothing overwrites its Parameters")


def _isolate(parameter: Parameter) -> bool:
    readers = parameter.output.uses
    if parameter.output.dtype is string or not readers or all(isinstance(node, ops.Barrier) for node, _ in readers):
        return False
    copy = ops.Barrier(parameter.output, hides="memory").output
    for node, port in readers:
        if not isinstance(node, ops.Barrier):
            parameter.graph.set_input(node, port, copy)
    return True
