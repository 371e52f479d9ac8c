"""The values of a loop in its first iteration, as far as constants determine them.

while i + 1 < 1: ...          the condition after the first iteration is false: the loop runs once
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.graph import Node, Value
from mo_loop.ops.base import Constant, Parameter
from mo_loop.ops.control import Loop
from mo_loop.ops.port_map import Invariant, Merged

Array = np.ndarray[Any, Any]

_LARGEST = 64
"""The most elements of a value that is computed."""

_MOST = 100
"""The most operations between the condition and known values."""


def runs_once(loop: Loop) -> bool:
    """Whether a loop begins, and its condition after the first iteration is known to be false."""
    trip, go = loop.inputs[0], loop.inputs[1]
    if go is None or go.type.integers != (1,) or (trip is not None and trip.type.integers == (0,)):
        return False
    condition = _First(loop).value_of(loop.condition.value)
    return condition is not None and not condition.any()


class _First:
    """The values of the body of one loop in its first iteration."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.known: dict[Node, Array] = {}
        for entry, value in loop.fed:
            given = value.constant if isinstance(entry, Invariant | Merged) else None
            if given is not None and given.dtype != object and given.size <= _LARGEST:
                self.known[entry.parameter] = given

    def value_of(self, value: Value) -> Array | None:
        """A value of the body; None if it is not known."""
        needed = self.loop.body.ancestors([value.node])
        if len(needed) > _MOST:
            return None
        found: dict[Value, Array] = {}
        for node in self.loop.body.ordered():
            result = self._of(node, found) if node in needed else None
            if result is not None and result.size <= _LARGEST:
                found[node.outputs[0]] = result
        return found.get(value)

    def _of(self, node: Node, found: dict[Value, Array]) -> Array | None:
        if isinstance(node, Parameter):
            if node is self.loop.iteration:
                return np.zeros([dim for dim in node.output.shape or () if isinstance(dim, int)], np.int64)
            return self.known.get(node)
        if isinstance(node, Constant):
            return node.array if node.tensor.nbytes <= 8 * _LARGEST else None
        if not isinstance(node, ops.Op) or len(node.outputs) != 1 or any(each not in found for each in node.inputs):
            return None
        result = node.evaluate(*(found[each] for each in node.operands))
        return None if result is NotImplemented else np.asarray(result)
