"""Operators for the reference evaluator of the onnx package: QLinearMatMul and QLinearConv in exact integers, and
SequenceInsert, which its own version does not compute for empty sequences.

The evaluator's own versions of the first two add the zero point before they round, so a tie goes to the even *output*;
ONNX rounds half to even before it adds the zero point (`saturate(round(x / y_scale) + y_zero_point)`), and so does ONNX
Runtime. Scales are multiplied in f32 as there: (first * second) / output, then by the sum.
"""

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_conv_integer import ConvInteger


class QLinearMatMul(OpRun):
    """Spec: QLinearMatMul-21."""

    def _run(
        self, a: Any, a_scale: Any, a_zero_point: Any, b: Any, b_scale: Any, b_zero_point: Any, y_scale: Any,
        y_zero_point: Any,
    ) -> tuple[Any]:
        left = a.astype(np.int64) - _rows(a_zero_point.astype(np.int64), a.ndim)
        right = b.astype(np.int64) - b_zero_point.astype(np.int64)
        scale = _rows(np.asarray(a_scale, np.float32), a.ndim) * np.asarray(b_scale, np.float32)
        return (_requantized(left @ right, scale / np.asarray(y_scale, np.float32), y_zero_point),)


class QLinearConv(ConvInteger):
    """Spec: QLinearConv-10."""

    def _run(  # type: ignore[override]  # the operator has other inputs than the one whose sums it uses
        self, x: Any, x_scale: Any, x_zero_point: Any, w: Any, w_scale: Any, w_zero_point: Any, y_scale: Any,
        y_zero_point: Any, bias: Any = None, **attributes: Any,
    ) -> tuple[Any]:
        channels = (-1, *[1] * (x.ndim - 2))
        filters = w.astype(np.int32) - w_zero_point.astype(np.int32).reshape(-1, *[1] * (w.ndim - 1))
        centred = x.astype(np.int32) - x_zero_point.astype(np.int32)
        (sums,) = super()._run(centred, filters, **attributes)
        if bias is not None:
            sums = sums + bias.reshape(channels)
        scale = np.asarray(x_scale, np.float32) * np.asarray(w_scale, np.float32).reshape(channels)
        return (_requantized(sums, scale / np.asarray(y_scale, np.float32), y_zero_point),)


class Insertion(OpRun):
    """Spec: SequenceInsert-11."""

    def _run(self, items: Any, tensor: Any, position: Any = None) -> tuple[Any]:
        place = len(items) if position is None else int(np.asarray(position).reshape(-1)[0])
        place += len(items) if place < 0 else 0
        return ([*items[:place], tensor, *items[place:]],)


Insertion.__name__ = "SequenceInsert"  # the operator that the evaluator runs by it


def _rows(values: Any, rank: int) -> Any:
    """One value for each row of a matrix as a column; a single value as it is."""
    return values[..., None] if values.ndim and values.size > 1 and rank > 1 and values.ndim < rank else values


def _requantized(sums: Any, scale: Any, zero_point: Any) -> Any:
    limits = np.iinfo(zero_point.dtype)
    steps = np.rint(sums.astype(np.float32) * scale.astype(np.float32)).astype(np.int64)
    return np.clip(steps + zero_point.astype(np.int64), limits.min, limits.max).astype(zero_point.dtype)
