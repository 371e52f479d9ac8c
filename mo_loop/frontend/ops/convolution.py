"""Conv and ConvTranspose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mo_loop import ops
from mo_loop.errors import ModelError, UnsupportedError
from mo_loop.frontend.ops.layout import reshaped
from mo_loop.frontend.ops.windows import Window, window
from mo_loop.frontend.registry import translates
from mo_loop.graph import Value


@translates("Conv", since=1)
def conv(
    x: Any,
    w: Any,
    b: Any = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: tuple[int, ...] | None = None,
    group: int = 1,
    kernel_shape: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Any:
    """The kernel's shape is that of w, whatever `kernel_shape` says."""
    count = spatial_rank(x, w, kernel_shape)
    at = window(count, strides=strides, pads=pads, dilations=dilations, auto_pad=auto_pad)
    return biased(convolved(x, w, group, at), b, count)


def convolved(x: Value, w: Value, group: int, at: Window) -> Value:
    """The convolution alone."""
    if group == 1:
        return ops.Convolution(x, w, dilations=at.dilations, **at.attributes()).output
    return ops.GroupConvolution(x, grouped(w, group, at), dilations=at.dilations, **at.attributes()).output


def grouped(w: Value, group: int, at: Window) -> Value:
    """Filters [O, C, K...] as [group, O / group, C, K...]."""
    if w.shape is None or not all(isinstance(dim, int) for dim in w.shape[1:]):
        tail = ops.Slice(ops.ShapeOf(w), [1], [2 + len(at.strides)], [1], [0])
        pattern = ops.Concat(ops.Constant([group, -1], graph=w.graph), tail, axis=0)
        return ops.Reshape(w, pattern).output
    first, *rest = w.shape
    if isinstance(first, int) and first % group:
        raise ModelError(f"{first} filters do not divide into {group} groups", code="ML227")
    return reshaped(w, [group, -1, *(int(str(dim)) for dim in rest)])


def biased(y: Value, b: Value | None, count: int) -> Value:
    """One number a channel added."""
    return y if b is None else ops.Add(y, reshaped(b, [1, -1, *[1] * count])).output


def spatial_rank(x: Value, w: Value | None, kernel_shape: Sequence[int] | None) -> int:
    """How many dimensions the window slides over."""
    if w is not None and w.rank is not None:
        return w.rank - 2
    if kernel_shape is not None:
        return len(kernel_shape)
    if x.rank is None:
        raise UnsupportedError("a window over tensors of unknown rank", code="ML314", hint="declare the input's rank")
    return x.rank - 2


@translates("ConvTranspose", since=1)
def conv_transpose(
    x: Any,
    w: Any,
    b: Any = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: tuple[int, ...] | None = None,
    group: int = 1,
    kernel_shape: tuple[int, ...] | None = None,
    output_padding: tuple[int, ...] | None = None,
    output_shape: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Any:
    """All padding is made explicit, but where an asked-for shape meets dimensions known only at run time."""
    count = spatial_rank(x, w, kernel_shape)
    at = window(count, strides=strides, pads=pads, dilations=dilations, auto_pad=auto_pad)
    extra = tuple(output_padding or (0,) * count)
    kernel = _kernel(w, kernel_shape, count)
    asked = tuple(output_shape[-count:]) if output_shape else None
    begin, end = at.begin, at.end
    if asked is None and at.auto_pad.startswith("same"):
        # The result is to be size * stride, so the excess does not depend on the size.
        begin, end = _shared_out(
            [r + e - s for r, e, s in zip(at.reach(kernel), extra, at.strides, strict=True)], at.auto_pad == "same_upper"
        )
        asked_input = None
    elif asked is not None:
        sizes = x.shape[2:] if x.shape is not None else (None,) * count
        if all(isinstance(size, int) for size in sizes):
            excess = [
                (size - 1) * s + r + e - wanted
                for size, s, r, e, wanted in zip(sizes, at.strides, at.reach(kernel), extra, asked, strict=True)
            ]
            begin, end = _shared_out(excess, at.auto_pad == "same_upper")
            asked_input = None
        else:
            asked_input = list(asked)
    else:
        asked_input = None
    mode = "explicit"
    if asked_input is not None:
        mode = "same_upper" if at.auto_pad == "same_upper" else "same_lower"
    filters = w if group == 1 else _transposed_groups(w, group, at)
    kind = ops.ConvolutionBackpropData if group == 1 else ops.GroupConvolutionBackpropData
    y = kind(
        x, filters, asked_input, strides=at.strides, dilations=at.dilations, pads_begin=begin, pads_end=end,
        auto_pad=mode, output_padding=extra,
    ).output  # fmt: skip
    return biased(y, b, count)
