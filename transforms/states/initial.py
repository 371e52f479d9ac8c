"""The shape of a variable and its initial value, zeros of that shape.

    past [B,2,T,8], growing along axis 2, and an input ids [B,L]:

    variable_shape [B,2,T,8], which the file writes as ?,2,?,8
    %batch = Gather(ShapeOf(%ids), [0], 0)
    %none = Divide(%batch, 2147483647)                 0, which the runtime does not see
    %initial = Broadcast(0.0, Concat(%batch, [2], %none, [8]))

The CPU plugin computes the initial value inside the ReadValue, and takes its sizes for those that the variable always
has: a variable that grows from a size that is known to be 0 does not compile (OpenVINO 2025.4 to 2026.4). The size is
therefore computed, in a form that still has bounds. Without them the other sizes would be unknown as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

import numpy as np

from mo_loop import ops
from mo_loop.errors import UnsupportedError
from mo_loop.graph import Graph, Value
from mo_loop.graph.dimension import Dim, Dimension, fresh
from mo_loop.graph.types import ElementType, TensorType
from mo_loop.ops.base import Constant, Parameter
from mo_loop.transforms.states.pairing import Pair

HUGE = 2**31 - 1
"""More than any size: the quotient is 0."""

Size: TypeAlias = int | tuple[Parameter, int] | None
"""A static size, or that of an axis of an input; None is that of the axis that grows, which is 0."""


def variable_shape(pair: Pair) -> tuple[Dimension, ...]:
    """The dimensions of a variable: those of the input, without bounds where they vary. The growing one starts at 0."""
    dims = pair.parameter.output.type.dims
    return tuple(dim if isinstance(dim, int) and axis != pair.growing else _free(dim) for axis, dim in enumerate(dims))


def _free(dim: Dimension) -> Dimension:
    """A symbol without bounds as it is. The runtime compares bounds with those of the initial value."""
    is_free = isinstance(dim, Dim) and dim.symbol is not None and dim.lo == 0 and dim.hi is None
    return dim if is_free else fresh()


class InitialValues:
    """Makes the initial values of one graph. States of one shape share the nodes that compute it."""

    def __init__(self, graph: Graph, remaining: Sequence[Parameter]) -> None:
        self.graph = graph
        self.remaining = list(_tensors(remaining))
        self._sizes: dict[tuple[Parameter, int], Value] = {}
        self._shapes: dict[tuple[Size, ...], Value] = {}
        self._zeros: dict[ElementType, Value] = {}

    def require(self, pair: Pair, shape: tuple[Dimension, ...]) -> None:
        """UnsupportedError if there are no zeros of the type, or if a dimension is not known."""
        dtype = pair.parameter.output.dtype
        if dtype.kind in ("string", "complex"):
            raise _unknown(pair, f"there is no initial value of type {dtype}")
        self._sources(pair, shape)

    def of(self, pair: Pair, shape: tuple[Dimension, ...]) -> Value:
        """Zeros of the shape of a variable."""
        dtype = pair.parameter.output.dtype
        sizes = self._sources(pair, shape)
        static = [size or 0 for size in sizes if not isinstance(size, tuple)]
        if len(static) == len(sizes):
            return Constant(np.zeros(static, dtype.numpy), graph=self.graph, dtype=dtype).output
        if dtype not in self._zeros:
            self._zeros[dtype] = Constant(np.zeros((), dtype.numpy), graph=self.graph, dtype=dtype).output
        if sizes not in self._shapes:
            self._shapes[sizes] = self._joined(sizes)
        return ops.Broadcast(self._zeros[dtype], self._shapes[sizes]).output

    def _sources(self, pair: Pair, shape: tuple[Dimension, ...]) -> tuple[Size, ...]:
        return tuple(
            None if axis == pair.growing else dim if isinstance(dim, int) else self._source(pair, axis)
            for axis, dim in enumerate(shape)
        )

    def _source(self, pair: Pair, axis: int) -> tuple[Parameter, int]:
        """The input, and its axis, that has the size of an axis of a state.

        Exporters may give it another name at the input; the next value has the name that the graph computes.
        """
        dims, after = pair.parameter.output.type.dims, pair.result.value.type.dims
        for dim in dims[axis], after[axis]:
            for parameter in self.remaining if isinstance(dim, Dim) else ():
                if dim in parameter.output.type.dims:
                    return parameter, parameter.output.type.dims.index(dim)
        unknown = [at for at, each in enumerate(dims) if isinstance(each, Dim) and at != pair.growing]
        found = self._any_size() if len(unknown) == 1 else None
        if found is None:
            what = f"dimension {axis} of its initial value is not known: {dims[axis]} is the size of no other input"
            raise _unknown(pair, what)
        return found

    def _any_size(self) -> tuple[Parameter, int] | None:
        """The first size that is only known at run time of an input; any other one, if all such sizes are the same."""
        for parameter in self.remaining:
            if parameter.output.shape and isinstance(parameter.output.shape[0], Dim):
                return parameter, 0
        sizes = [
            (parameter, axis) for parameter in self.remaining for axis, dim in enumerate(parameter.output.type.dims)
            if isinstance(dim, Dim)
        ]  # fmt: skip
        return sizes[0] if len({parameter.output.type.dims[axis] for parameter, axis in sizes}) == 1 else None

    def _joined(self, sizes: Sequence[Size]) -> Value:
        """The vector of some sizes."""
        known = next(self.size(*size) for size in sizes if isinstance(size, tuple))
        parts: list[Value] = []
        for kind, group in groupby(sizes, type):
            if kind is int:
                parts.append(Constant(np.array(list(group), np.int64), graph=self.graph).output)
                continue
            for size in group:
                parts.append(self.size(*size) if isinstance(size, tuple) else ops.Divide(known, HUGE).output)
        return parts[0] if len(parts) == 1 else ops.Concat(*parts, axis=0).output

    def size(self, parameter: Parameter, axis: int) -> Value:
        """One dimension of an input, as a vector of one element."""
        if (parameter, axis) not in self._sizes:
            self._sizes[parameter, axis] = ops.Gather(ops.ShapeOf(parameter), [axis], 0).output
        return self._sizes[parameter, axis]


def _tensors(parameters: Sequence[Parameter]) -> Iterator[Parameter]:
    for each in parameters:
        if isinstance(each.output.type, TensorType) and each.output.shape is not None:
            yield each


def _unknown(pair: Pair, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"the input {pair.input!r}, {pair.parameter.output.type}, cannot be a state with the output {pair.output!r}: "
        f"{what}",
        where=pair.parameter.origin, why="a variable starts with zeros of a shape that the other inputs determine",
        code="ML327", hint=f'give its sizes with --input, or keep it an input (--stateful-pair "{pair.input}=")',
    )  # fmt: skip
