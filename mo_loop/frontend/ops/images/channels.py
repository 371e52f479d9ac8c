"""The axis of channels in tensors of images: the second in ONNX, the last in operators with `channels_last`."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.errors import UnsupportedError
from mo_loop.graph import Value


def channels_first(x: Value) -> Value:
    """[N, D..., C] as [N, C, D...]."""
    rank = _rank(x)
    return ops.Transpose(x, [0, rank - 1, *range(1, rank - 1)]).output


def channels_last(x: Value) -> Value:
    """[N, C, D...] as [N, D..., C]."""
    rank = _rank(x)
    return ops.Transpose(x, [0, *range(2, rank), 1]).output


def _rank(x: Value) -> int:
    if x.rank is None:
        raise UnsupportedError("the last axis of a tensor of unknown rank", code="ML314", hint="declare the rank")
    return x.rank
