"""A value of a body for all steps at once, and the inputs of the rules of operators that make such values.

    body value f32[3,4], in every iteration another one    ->  f32[T,3,4]: one more dimension, of the steps, in front
    body value f32[3,4], the same in every iteration       ->  f32[3,4]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from mo_loop.graph.dimension import Dimension
from mo_loop.graph.shape import normalise_axis
from mo_loop.ops.lengths import Length, joined
from mo_loop.transforms.vocabulary import F, Graph, Op, Value, ops


@dataclass(frozen=True)
class Lifted:
    """`value` holds a body value for all steps; if it `varies`, its first dimension is that of the steps."""

    value: Value
    varies: bool

    @property
    def rank(self) -> int:
        """The rank of the body value."""
        assert self.value.rank is not None
        return self.value.rank - self.varies

    @property
    def dims(self) -> tuple[Dimension, ...]:
        """The dimensions of the body value."""
        dims: tuple[Dimension, ...] = self.value.type.dims
        return dims[1:] if self.varies else dims


@dataclass
class Steps:
    """The steps of a loop in a graph: how many there are, and values for all of them.

    `usual` has the sizes that unknown dimensions usually have, if they depend on the number of steps otherwise.
    """

    graph: Graph
    count: Length
    usual: dict[Dimension, int] = field(default_factory=dict)

    def each(self, x: Lifted) -> Value:
        """`x` with the dimension of the steps, also if it is the same in all of them."""
        return x.value if x.varies else self._repeated(x.value)

    def _repeated(self, value: Value, along: int | None = None) -> Value:
        """`value` in all steps, whose dimension is a new one in front, or replaces one of size 1."""
        sizes = [value.size(axis) for axis in range(value.type.rank)]
        rest = sizes if along is None else sizes[along + 1 :]
        return F.Broadcast(value, joined([*sizes[: along or 0], self.count, *rest], value))

    def wide(self, x: Lifted, rank: int) -> Value:
        """`x` as an operand of numpy broadcasting with body values of up to `rank` dimensions."""
        gap = rank - x.rank
        return unsqueezed(x.value, range(1, 1 + gap)) if x.varies and gap > 0 else x.value

    def along(self, x: Lifted, axis: int) -> Value:
        """The body values of all steps side by side along an axis, [.., T * n, ..]."""
        if x.dims[axis] == 1 and not x.varies:
            return self._repeated(x.value, along=axis)
        whole = self.each(x)
        if x.dims[axis] == 1:
            return moved(squeezed(whole, axis + 1), 0, axis)
        inside = moved(whole, 0, axis)
        sizes = [inside.size(place) for place in range(x.rank + 1)]
        joint = [*sizes[:axis], sizes[axis] * sizes[axis + 1], *sizes[axis + 2 :]]
        return inside.reshape(joint)

    def folded(self, x: Lifted) -> Value:
        """`x` [T, N, ...] as [T * N, ...]."""
        if x.dims[0] == 1:
            return squeezed(x.value, 1) if x.varies else self._repeated(x.value, along=0)
        whole = self.each(x)
        sizes = [whole.size(axis) for axis in range(whole.type.rank)]
        return whole.reshape([sizes[0] * sizes[1], *sizes[2:]])

    def unfolded(self, made: Value, batch: Length) -> Value:
        """[T * N, ...] as [T, N, ...], where N is `batch`."""
        if isinstance(batch, int) and batch == 1:
            return unsqueezed(made, [1])
        sizes = [made.size(axis) for axis in range(1, made.type.rank)]
        return made.reshape([self.count, batch, *sizes])


Rule: TypeAlias = Callable[[Any, Sequence[Any], Steps], Any]
"""Called with a node of the body, its lifted inputs (None: absent), of which at least one varies, and the steps. Gives
the value that has the steps in front, or one for each output; None if it has no form for these inputs."""


def with_inputs(node: Op, *values: Any, **changes: Any) -> Any:
    """The node once more with other inputs and, as far as given, other attributes: its output, or all of several."""
    attributes: dict[str, Any] = {**node.attribute_values(), **changes}
    made = type(node)(*values, name=node.path if node.name else "", **attributes)  # another node may have the name
    if getattr(node, "_rt_info", None):
        made.rt_info.update(node.rt_info)
    return made.outputs[0] if len(made.outputs) == 1 else made.outputs


def shifted(node: Op, xs: Sequence[Lifted], steps: Steps, several: bool = False) -> Any:
    """f(x, axes)  ->  f(x, axes + 1), where the axes are an attribute or an input. Other inputs are the same in every
    step, or with `several` tensors with the same axes."""
    name, port = node.named_along, node.port_along
    axes = (getattr(node, name),) if port is None else numbers(xs[port])
    if axes is None or (not several and any(x.varies for x in xs[1:])):
        return None
    values: list[Any] = [steps.each(x) if several and at != port else x.value for at, x in enumerate(xs)]
    places = vector(*(axis_after_steps(axis, xs[0].rank) for axis in axes))
    if port is None:
        return with_inputs(node, *values, **{name: places[0]})
    values[port] = places if xs[port].rank else places[0]
    return with_inputs(node, *values)


def beside(node: Op, xs: Sequence[Lifted], steps: Steps) -> Any:
    """f(x, y, axis)  ->  f(x, y, axis + 1), of tensors with the same axes"""
    return shifted(node, xs, steps, several=True)


def numbers(x: Lifted | None) -> tuple[int, ...] | None:
    """The integers of an input that are known and the same in every step."""
    return None if x is None or x.varies else x.value.type.integers


def axis_after_steps(axis: int, rank: int) -> int:
    """An axis of a body value, counted from the front after the steps."""
    return normalise_axis(axis, rank) + 1


def vector(*items: int) -> np.ndarray[Any, Any]:
    return np.array(items, np.int64)


def squeezed(value: Value, axis: int) -> Value:
    """`value` without a dimension of 1."""
    source = value.node
    if isinstance(source, ops.Unsqueeze) and source.operands[1].type.integers == (axis,):
        return source.operands[0]
    return F.Squeeze(value, vector(axis))


def unsqueezed(value: Value, axes: Sequence[int]) -> Value:
    """`value` with dimensions of 1 at some places of the result."""
    source = value.node
    if isinstance(source, ops.Squeeze) and len(source.inputs) == 2 and source.operands[1].type.integers == tuple(axes):
        return source.operands[0]
    return F.Unsqueeze(value, vector(*axes))


def moved(value: Value, source: int, target: int) -> Value:
    """`value` with one of its dimensions at another place."""
    order = list(range(value.type.rank))
    order.insert(target, order.pop(source))
    return value if source == target else F.Transpose(value, vector(*order))


def with_sizes(made: Value, axis: int, others: Sequence[Length]) -> Value:
    """`made`, and if it has no elements along `axis`, with other sizes than 0 along the other axes."""
    own = made.sizes
    sizes: list[Length] = list(others)
    sizes.insert(axis, -1)  # what remains: the runtime takes a size of the tensor itself for one that it may copy
    has_any = F.Greater(F.Gather(own, [axis], 0), 0)
    return F.Reshape(made, F.Select(has_any, own, joined(sizes, made)))
