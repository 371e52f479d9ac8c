"""Inputs and vectors whose sizes are not known, with the ranks that other nodes force or that the model declares.

    start = with_rank(start, scope, translation)    # an input of the model, of the rank that the nodes after it force
    inputs = with_length(node, inputs)              # Reshape(x, v): v has as many elements as the result dimensions

`Ranks` (forced_ranks.py) finds the ranks. A rank that only a declaration gives is a warning.
"""

from __future__ import annotations

from mo_loop import ops
from mo_loop.frontend.context import Context, Translation
from mo_loop.frontend.cut import Start
from mo_loop.frontend.scope import Scope
from mo_loop.graph import Value
from mo_loop.graph.dimension import fresh
from mo_loop.graph.shape import assume_fixed
from mo_loop.graph.types import TensorType

SHAPED = {"Reshape": 1, "Expand": 1, "ConstantOfShape": 0, "Squeeze": 1, "Unsqueeze": 1}
"""Operator -> the input whose number of elements decides the rank of the output."""


def with_rank(start: Start, scope: Scope, translation: Translation) -> Start:
    """The input; if its rank is not known, with the one that the nodes after it force."""
    if not isinstance(start.type, TensorType) or start.type.rank is not None or start.value is not None:
        return start
    rank = _forced_rank(start.name, scope, translation)
    if rank is None:
        return start
    return start._replace(type=start.type.with_shape(tuple(fresh() for _ in range(rank))))


def _forced_rank(name: str, scope: Scope, translation: Translation) -> int | None:
    found = scope.ranks.of(name) if scope.ranks is not None and name else None
    if found is not None and found.by_declaration:
        translation.doubts.declared_rank(scope.path, name, found.rank)
    return None if found is None else found.rank


def with_length(context: Context, inputs: list[Value | None]) -> list[Value | None]:
    """The inputs of a node whose output has the number of dimensions that a vector has elements: if this number is
    not known, the one that forced ranks give."""
    place = SHAPED[context.op_type]
    vector = inputs[place] if place < len(inputs) and not context.domain else None
    if vector is None or vector.rank != 1 or isinstance(vector.type.dims[0], int):
        return inputs
    assume_fixed(vector.type.dims)
    count = _forced_rank(context.outputs[0], context.scope, context.translation)
    data = inputs[0]
    if count is not None and context.op_type in ("Squeeze", "Unsqueeze") and data is not None:
        count = None if data.rank is None else abs(count - data.rank)
    if count is None:
        return inputs
    return [*inputs[:place], ops.Reshape(vector, [count]).output, *inputs[place + 1 :]]
