"""The axis of channels in tensors of images: the second in ONNX, the last in operators with `channels_last`."""

from mo_loop.frontend.vocabulary import UnsupportedError, Value, ops


def channels_first(x: Value) -> Value:
    """[N, D..., C] as [N, C, D...]."""
    rank = _rank(x)
    return ops.Transpose(x, [0, rank - 1, *range(1, rank - 1)])


def channels_last(x: Value) -> Value:
    """[N, C, D...] as [N, D..., C]."""
    rank = _rank(x)
    return ops.Transpose(x, [0, *range(2, rank), 1])


def _rank(x: Value) -> int:
    if x.rank is None:
        raise UnsupportedError("the last axis of a tensor of unknown rank", code="ML314", hint="declare the rank")
    return x.rank
