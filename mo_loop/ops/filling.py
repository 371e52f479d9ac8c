"""Operations that enlarge or create tensors: Broadcast, Tile, Pad, Range, Eye, random numbers."""

import math
from typing import Any, Literal

import numpy as np

from mo_loop.graph.dimension import Dimension, fresh, least, low, most
from mo_loop.graph.shape import broadcast, is_static, merge_dim
from mo_loop.graph.types import KNOWN_LIMIT, ElementType, TensorType, known_array, tensor_of_known
from mo_loop.ops.base import Movement, Op
from mo_loop.ops.infer import dims_of, same_dtype, vector_length
from mo_loop.ops.ranges import NUMBERS


class Broadcast(
    Movement, opset=3, index=("target_shape", "axes_mapping"), ranks={"target_shape": 1, "axes_mapping": 1}
):
    """Elements repeated to a shape; `bidirectional` lets dimensions of 1 in the target grow. Spec: Broadcast-3."""

    mode: Literal["numpy", "explicit", "bidirectional"] = "numpy"

    def infer(self, data, target_shape, axes_mapping=None):
        if target_shape.known is not None:
            target: Any = dims_of(target_shape.known)
            for dim in target:
                self.require(not isinstance(dim, int) or dim >= 0, f"a dimension is {dim}")
        else:
            length = vector_length(target_shape)
            target = None if length is None else tuple(fresh() for _ in range(length))
        if self.mode == "bidirectional":
            target = broadcast(data.shape, target)
        elif target is not None and data.shape is not None and self.mode == "numpy":
            broadcast(data.shape, target)  # raises if the shapes do not fit
            gap = len(target) - len(data.shape)
            self.require(gap >= 0, f"a tensor of rank {len(data.shape)} cannot be broadcast to rank {len(target)}")
            target = (*target[:gap], *map(_grown, data.shape, target[gap:]))
        elif target is not None and self.mode == "explicit" and axes_mapping is not None:
            self._require_mapping(data, target, axes_mapping)
        known = None
        if data.known is not None and self.mode != "explicit" and is_static(target):
            assert target is not None
            if math.prod(target) <= KNOWN_LIMIT:
                known = np.array(np.broadcast_to(data.known, target))
        return TensorType(data.dtype, target, known)

    def _require_mapping(self, data, target, axes_mapping) -> None:
        axes = axes_mapping.integers
        if data.shape is None or axes is None:
            return
        self.require(len(axes) == len(data.shape), f"there are {len(axes)} axes for a tensor of rank {len(data.shape)}")
        for dim, axis in zip(data.shape, axes, strict=True):
            self.require(0 <= axis < len(target), f"axis {axis} is outside a tensor of rank {len(target)}")
            _grown(dim, target[axis])  # raises if the sizes do not fit

    def evaluate(self, *inputs):
        if self.mode == "explicit":
            return NotImplemented
        shape = tuple(int(dim) for dim in inputs[1])
        return np.broadcast_to(inputs[0], np.broadcast_shapes(inputs[0].shape, shape))

    def axis_map(self, port):
        return self._no_axes if port or self.mode == "explicit" else self._from_end(port)


class Tile(Movement, opset=1, index=("repeats",), keeps_axes=True):
    """The whole tensor repeated along each dimension. Spec: Tile-1."""

    def infer(self, x, repeats):
        count = vector_length(repeats)
        if x.shape is None or count is None:
            return TensorType(x.dtype, None)
        rank = max(count, len(x.shape))
        if repeats.known is None:
            return TensorType(x.dtype, tuple(fresh() for _ in range(rank)))
        times = (1,) * (rank - count) + dims_of(repeats.known)
        for time in times:
            self.require(not isinstance(time, int) or time >= 0, f"a tensor cannot be repeated {time} times")
        dims = (1,) * (rank - len(x.shape)) + x.shape
        shape = tuple(dim * time for dim, time in zip(dims, times, strict=True))
        known = None
        if x.known is not None and repeats.integers is not None and is_static(shape):
            known = np.tile(x.known, repeats.integers) if math.prod(shape) <= KNOWN_LIMIT else None
        return TensorType(x.dtype, shape, known)

    def evaluate(self, *inputs):
        return np.tile(inputs[0], tuple(int(time) for time in inputs[1]))


class Pad(Op, opset=1, index=("begin", "end"), ranks={"begin": 1, "end": 1, "value": 0}, keeps_axes=True):
    """Elements added before and after each dimension. Spec: Pad-1."""

    pad_mode: Literal["constant", "edge", "reflect", "symmetric"] = "constant"

    def infer(self, x, begin, end, value=None):
        if value is not None:
            same_dtype(x, value)
        if x.shape is None:
            return TensorType(x.dtype, None)
        for each in (begin, end):
            length = vector_length(each)
            self.require(length in (None, len(x.shape)), f"there are pads for {length} of {len(x.shape)} dimensions")
        if begin.known is None or end.known is None:
            return TensorType(x.dtype, tuple(fresh() for _ in x.shape))
        before, after = dims_of(begin.known), dims_of(end.known)
        shape = tuple(_padded(dim, a, b) for dim, a, b in zip(x.shape, before, after, strict=True))
        known = None
        if self._is_plain(x, begin, end, value):
            filler = 0 if value is None else value.integers[0]
            items = [filler] * begin.integers[0] + list(x.known) + [filler] * end.integers[0]
            known = known_array(items, (len(items),)) if len(items) <= KNOWN_LIMIT else None
        return TensorType(x.dtype, shape, known)

    def _is_plain(self, x, begin, end, value) -> bool:
        if x.known is None or x.known.ndim != 1 or self.pad_mode != "constant":
            return False
        if value is not None and value.integers is None:
            return False
        return all(pads.integers is not None and pads.integers[0] >= 0 for pads in (begin, end))

    def evaluate(self, *inputs):
        x, begin, end = inputs[:3]
        if np.any(begin < 0) or np.any(end < 0):
            return NotImplemented
        widths = [(int(a), int(b)) for a, b in zip(begin, end, strict=True)]
        if self.pad_mode != "constant":
            return np.pad(x, widths, self.pad_mode)
        value = inputs[3] if len(inputs) > 3 and inputs[3] is not None else 0
        return np.pad(x, widths, constant_values=np.asarray(value).item())


class Pad12(Pad, opset=12, type="Pad"):
    """As Pad; negative pads remove elements. Spec: Pad-12."""


def _grown(dim: Dimension, target: Dimension) -> Dimension:
    """A dimension after broadcasting to `target`: one that is not 1 cannot change."""
    stays = dim != 1 if isinstance(dim, int) else low(dim) > 1
    return merge_dim(dim, target) if stays else target


def _padded(dim: Dimension, before, after) -> Dimension:
    result = dim + before + after
    if isinstance(result, int):
        return max(result, 0)
    return result if result.lo >= 0 else fresh(0, result.hi)


class Range(Op, opset=4, types={"start": NUMBERS, "stop": NUMBERS, "step": NUMBERS}):
    """start, start + step, ... before stop. Spec: Range-4."""

    output_type: ElementType

    def infer(self, start, stop, step):
        for each in (start, stop, step):
            self.require(each.shape is None or len(each.shape) == 0, f"a bound or step is {each}, not a scalar")
        self.require(step.integers != (0,), "the step is 0")
        if self.output_type.is_integer and all(each.integers is not None for each in (start, stop, step)):
            self.require(step.integers[0] != 0, "the step is 0")
            numbers = range(start.integers[0], stop.integers[0], step.integers[0])
            if len(numbers) <= KNOWN_LIMIT:
                return tensor_of_known(self.output_type, list(numbers))
            return TensorType(self.output_type, (len(numbers),))
        return TensorType(self.output_type, (self._count(start, stop, step),))

    def _count(self, start, stop, step) -> Dimension:
        """ceil((stop - start) / step), at least 0."""
        if start.known is None or stop.known is None or step.integers is None:
            return fresh()
        (by,) = step.integers
        span = (stop.known.reshape(-1)[0] - start.known.reshape(-1)[0]) * (1 if by > 0 else -1)
        if least(span) >= 0:
            return (span + (abs(by) - 1)) // abs(by)
        top = most(span)
        return fresh(0, None if top is None else max(-(-top // abs(by)), 0))

    def evaluate(self, *inputs):
        return np.arange(*(each.item() for each in inputs), dtype=self.output_type.numpy)


class Eye(Op, opset=9, index=("rows", "columns", "diagonal"), single=("rows", "columns", "diagonal")):
    """1 on a diagonal of a matrix, 0 elsewhere. Spec: Eye-9."""

    output_type: ElementType

    def infer(self, rows, columns, diagonal):
        sizes = [fresh() if each.known is None else each.known.reshape(-1)[0] for each in (rows, columns)]
        return TensorType(self.output_type, tuple(sizes))

    def evaluate(self, *inputs):
        rows, columns, diagonal = (int(np.asarray(each).item()) for each in inputs)
        return np.eye(rows, columns, diagonal).astype(self.output_type.numpy)


class RandomUniform(Op, opset=8, index=("shape",), ranks={"shape": 1}, single=("low", "high"), random=True):
    """Uniformly distributed in [low, high); if both seeds are 0, new in every inference. Spec: RandomUniform-8."""

    output_type: ElementType
    global_seed: int = 0
    op_seed: int = 0

    def infer(self, shape, low, high):
        self.require(same_dtype(low, high) is self.output_type, f"the bounds are {low.dtype}, not {self.output_type}")
        if shape.known is not None:
            return TensorType(self.output_type, dims_of(shape.known))
        length = vector_length(shape)
        return TensorType(self.output_type, None if length is None else tuple(fresh() for _ in range(length)))
