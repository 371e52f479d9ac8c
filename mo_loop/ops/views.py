"""The shape of a tensor, and operations that change only the shape: Reshape, Squeeze, Unsqueeze."""

from itertools import count
from typing import Any

import numpy as np

from mo_loop.graph.dimension import Dim, Dimension, fresh, low
from mo_loop.graph.shape import MOST_DIMENSIONS, element_count, normalise_axis
from mo_loop.graph.types import ElementType, TensorType, i64, tensor_of_known
from mo_loop.ops.base import Op, View
from mo_loop.ops.infer import dims_of, vector_length


class ShapeOf(Op, opset=3):
    """The dimensions as a vector. Spec: ShapeOf-3."""

    output_type: ElementType = i64

    def infer(self, x):
        if x.shape is None:
            return TensorType(self.output_type, (fresh(),))
        return tensor_of_known(self.output_type, x.shape)


class Reshape(View, opset=1, index=("pattern",), ranks={"pattern": (0, 1)}):
    """The same elements in another shape; -1 is the rest, and with `special_zero` 0 copies a size. Spec: Reshape-1."""

    special_zero: bool = False

    def infer(self, x, pattern):
        if pattern.known is None:
            length = 1 if pattern.shape == () else vector_length(pattern)
            return TensorType(x.dtype, tuple(fresh() for _ in range(length)) if isinstance(length, int) else None)
        shape = self._resolved(x, dims_of(pattern.known))
        known = x.known.reshape(shape) if x.known is not None and all(isinstance(dim, int) for dim in shape) else None
        return TensorType(x.dtype, shape, known)

    def _resolved(self, x, pattern: tuple[Any, ...]) -> tuple[Dimension, ...]:
        shape: list[Dimension] = []
        for i, item in enumerate(pattern):
            if self.special_zero and item == 0:
                self.require(x.shape is None or i < len(x.shape), f"the 0 at {i} copies no dimension of rank {x.rank}")
                shape.append(fresh() if x.shape is None else x.shape[i])
            elif isinstance(item, int) and item < -1:
                self.require(False, f"the pattern has {item}, and a size is -1, 0 or more")
            else:
                shape.append(item)
        # A symbol is a size, so it is assumed not to be the special value -1 or 0. An unknown value can be either; if
        # it is the only one, it is the remaining size in both cases.
        doubtful = [i for i, dim in enumerate(shape) if isinstance(dim, Dim) and dim.is_fresh and dim.lo < 0]
        for i in doubtful:
            shape[i] = -1 if len(doubtful) == 1 and -1 not in shape and not self.special_zero else fresh()
        total = element_count(x.shape)
        vague = [(i, dim) for i, dim in enumerate(shape) if isinstance(dim, Dim)]
        if isinstance(total, int) and len(vague) == 1 and not {-1, 0} & set(shape):
            shape[vague[0][0]] = -1  # the other sizes determine it
        holes = [i for i, dim in enumerate(shape) if dim == -1]
        self.require(len(holes) <= 1, "the pattern has more than one -1")
        if holes:
            rest = element_count(tuple(dim for dim in shape if dim != -1))
            assert rest is not None
            shape[holes[0]] = self._quotient(x, total, rest, tuple(dim for dim in shape if dim != -1))
        elif isinstance(total, int):
            made = element_count(tuple(shape))
            self.require(not isinstance(made, int) or made == total, f"{total} elements do not fit into {list(shape)}")
        return tuple(shape)

    def _quotient(self, x, total, rest: Dimension, others: tuple[Dimension, ...]) -> Dimension:
        if total is None:
            return fresh()
        if isinstance(total, int) and isinstance(rest, int):
            if rest == 0:
                self.require(total == 0, f"{total} elements do not fit into a shape with a size of 0")
                return 0
            self.require(total % rest == 0, f"{total} elements do not divide by {rest}")
            return total // rest
        # Cancel the common factors of both products; the rest is the dimension.
        left, right = list(x.shape), list(others)
        for dim in others:
            if dim in left:
                left.remove(dim)
                right.remove(dim)
        over = element_count(tuple(right))
        product = element_count(tuple(left))
        assert over is not None and product is not None
        return product // over if isinstance(over, int) and over > 0 else fresh()

    def evaluate(self, *inputs):
        x, pattern = inputs
        shape = [x.shape[i] if d == 0 and self.special_zero else int(d) for i, d in enumerate(np.atleast_1d(pattern))]
        if not x.size and 0 in shape:  # numpy does not determine -1 here; for the runtime it is 0
            shape = [max(size, 0) for size in shape]
        return x.reshape(shape)

    def axis_map(self, port):
        return self._no_axes if port else _equal_axes(self)


def _equal_axes(node: Op) -> tuple[int | None, ...]:
    """The axes that a reshape keeps: those of equal dimensions at the front and at the end."""
    old, new = node.operands[0].shape, node.outputs[0].shape
    if old is None or new is None:
        return node._no_axes
    room = min(len(old), len(new))
    front = next((i for i in range(room) if old[i] != new[i]), room)
    end = next((i for i in range(room - front) if old[-1 - i] != new[-1 - i]), room - front)
    return (*range(front), *[None] * (len(new) - front - end), *range(len(old) - end, len(old)))


class Squeeze(View, opset=1, index=("axes",), ranks={"axes": (0, 1)}, along="axes"):
    """Removes the dimensions of size 1 at `axes`, or all of them without axes. Spec: Squeeze-1."""

    def infer(self, x, axes=None):
        if x.shape is None:
            return TensorType(x.dtype, None)
        if axes is None or axes.integers == ():
            if not all(isinstance(dim, int) or low(dim) > 1 for dim in x.shape):
                return TensorType(x.dtype, None)
            gone = {i for i, dim in enumerate(x.shape) if dim == 1}
        elif axes.integers is None:
            return TensorType(x.dtype, None)
        else:
            gone = {normalise_axis(axis, len(x.shape)) for axis in axes.integers}
        for i in gone:
            self.require(not isinstance(x.shape[i], int) or x.shape[i] == 1, f"dimension {i} is {x.shape[i]}, not 1")
        shape = tuple(dim for i, dim in enumerate(x.shape) if i not in gone)
        known = None
        if x.known is not None:
            known = x.known.reshape(shape) if all(isinstance(dim, int) for dim in shape) else None
        return TensorType(x.dtype, shape, known)

    def evaluate(self, *inputs):
        axes = tuple(int(a) for a in np.atleast_1d(inputs[1])) if len(inputs) > 1 and inputs[1] is not None else ()
        return np.squeeze(inputs[0], axis=axes or None)

    def axis_map(self, port):
        if port or not self.along:
            return self._no_axes if port else _equal_axes(self)
        return tuple(axis for axis in range(self.operands[0].type.known_rank) if axis not in self.along)


class Unsqueeze(View, opset=1, index=("axes",), ranks={"axes": (0, 1)}):
    """Inserts dimensions of size 1 at the positions `axes` of the result. Spec: Unsqueeze-1."""

    def infer(self, x, axes):
        self.require(axes.shape != (0,), "there are no axes")
        if x.shape is None:
            return TensorType(x.dtype, None)
        if axes.integers is None:
            count = element_count(axes.shape)
            if not isinstance(count, int):
                return TensorType(x.dtype, None)
            self.require(count <= MOST_DIMENSIONS, f"{count} new dimensions are above {MOST_DIMENSIONS}")
            return TensorType(x.dtype, tuple(fresh() for _ in range(len(x.shape) + count)))
        rank = len(x.shape) + len(axes.integers)
        places = {normalise_axis(axis, rank) for axis in axes.integers}
        self.require(len(places) == len(axes.integers), f"the axes {axes.integers} have one of them twice")
        rest = iter(x.shape)
        shape = tuple(1 if i in places else next(rest) for i in range(rank))
        return TensorType(x.dtype, shape, None if x.known is None else x.known.reshape(shape))

    def evaluate(self, *inputs):
        return np.expand_dims(inputs[0], tuple(int(axis) for axis in np.atleast_1d(inputs[1])))

    def axis_map(self, port):
        axes, rank = self.integers("axes"), self.output.rank
        if port or axes is None or rank is None:
            return self._no_axes if port else _equal_axes(self)
        new, rest = {normalise_axis(axis, rank) for axis in axes}, count()
        return tuple(None if axis in new else next(rest) for axis in range(rank))
