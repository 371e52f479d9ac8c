"""The convolution operators Conv and ConvTranspose, and the attributes that all operators with a sliding window share.

The axis of channels in tensors of images is the second in ONNX, the last in operators with `channels_last`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mo_loop.errors import TypeError_
from mo_loop.frontend.ops.linear import reshaped
from mo_loop.frontend.ops.shared import number, ranked, require_choice
from mo_loop.frontend.vocabulary import Attributes, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.shape import is_static
from mo_loop.ops.lengths import joined
from mo_loop.ops.ranges import AtLeast2, Indices, NotNegatives, Positive, Positives, Vector
from mo_loop.target import NEVER, Gap, without_avx512


def channels_first(x: Value) -> Value:
    """[N, D..., C] as [N, C, D...]."""
    rank = ranked(x)
    return ops.Transpose(x, [0, rank - 1, *range(1, rank - 1)])


def channels_last(x: Value) -> Value:
    """[N, C, D...] as [N, D..., C]."""
    return ops.Transpose(x, [0, *range(2, ranked(x)), 1])


# VALID is explicit padding by 0: with VALID, the runtime rounds down even if ceil_mode is set.
_AUTO_PADS = {
    "NOTSET": "explicit", "": "explicit", "VALID": "explicit", "SAME_UPPER": "same_upper", "SAME_LOWER": "same_lower",
}


@dataclass(frozen=True)
class Window:
    """Strides, pads and dilations, one for each spatial dimension."""

    strides: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]
    dilations: tuple[int, ...]
    auto_pad: str

    @property
    def count(self) -> int:
        """The number of spatial dimensions."""
        return len(self.strides)

    @property
    def is_dilated(self) -> bool:
        return any(each != 1 for each in self.dilations)

    def reach(self, kernel: Sequence[int]) -> list[int]:
        """The number of elements that the window spans in each dimension."""
        return [(length - 1) * dilation + 1 for length, dilation in zip(kernel, self.dilations, strict=True)]

    def cropped(self, excess: Sequence[int]) -> "Window":
        """Explicit pads of `excess` elements; an odd one at the end with SAME_UPPER, else at the beginning."""
        less, more = tuple(each // 2 for each in excess), tuple(each - each // 2 for each in excess)
        begin, end = (less, more) if self.auto_pad == "same_upper" else (more, less)
        return replace(self, begin=begin, end=end, auto_pad="explicit")

    def attributes(self) -> dict[str, Any]:
        """The attributes of the IR operations."""
        return {"strides": self.strides, "pads_begin": self.begin, "pads_end": self.end, "auto_pad": self.auto_pad}


@dataclass(frozen=True)
class WindowAttributes(Attributes):
    """The attributes of an operator with a sliding window, with ONNX's defaults."""

    auto_pad: str = "NOTSET"
    dilations: Positives | None = None
    pads: Indices | None = None
    strides: Positives | None = None

    def over(self, count: int) -> Window:
        """The window over `count` dimensions; ModelError if a list has another length."""
        require_choice("auto_pad", self.auto_pad or "NOTSET", filter(None, _AUTO_PADS))
        if count < 1:
            raise ModelError("the window has no dimensions: the input has no spatial ones", code="ML227")
        both = _listed(self.pads if self.auto_pad in ("NOTSET", "") else None, 2 * count, 0, "pads")
        steps, gaps = _listed(self.strides, count, 1, "strides"), _listed(self.dilations, count, 1, "dilations")
        return Window(steps, both[:count], both[count:], gaps, _AUTO_PADS[self.auto_pad])


def _listed(given: Sequence[int] | None, count: int, default: int, name: str) -> tuple[int, ...]:
    if not given:
        return (default,) * count
    if len(given) != count:
        raise ModelError(f"{name} has {len(given)} entries, not {count}", code="ML227")
    return tuple(given)


AVOIDS = (
    Gap(
        "convolution-of-one-place",
        "`Convolution` of one channel with a single place along the last dimension, a stride above 1 there and of "
        "1 before it is wrong", "one position more, removed afterwards", on=without_avx512(NEVER),
        rule="translator of Conv",
    ),
)
"""The errors of the runtime that these translators avoid."""


@dataclass(frozen=True)
class ConvolutionAttributes(WindowAttributes):
    """The attributes of a convolution. `kernel_shape` is read if the shape of the filters is not known."""

    group: Positive = 1
    kernel_shape: Positives | None = None

    def at(self, x: Value, w: Value) -> Window:
        """The window over the spatial dimensions."""
        return self.over(spatial_rank(x, w, self.kernel_shape))


@translates("Conv", since=1, one_rank="x w")
def conv(x: AtLeast2, w: AtLeast2, b: Vector = None, *, given: ConvolutionAttributes):
    """The shape of the kernel comes from w if it is known."""
    w = sized(w, (_length(b), _channels(x, given.group), *(given.kernel_shape or ())))
    at = given.at(x, w)
    return biased(convolved(x, w, given.group, at), b, at.count)


def convolved(x: Value, w: Value, group: int, at: Window) -> Value:
    """The convolution without the bias.

    For one channel, the runtime computes wrong values if the last dimension of the result is 1, its stride is above 1
    and the stride of the dimension before it is 1. Then one more position is computed and removed.
    """
    if group > 1:
        return ops.GroupConvolution(x, grouped(w, group, at), dilations=at.dilations, **at.attributes())
    has_one_more = _is_single_column(x, w, at)
    if has_one_more:
        stride = at.strides[-1]
        if at.auto_pad == "explicit":
            at = replace(at, end=(*at.end[:-1], at.end[-1] + stride))
        else:  # automatic padding stays the same; the runtime would replace all of it by an explicit Pad
            sizes = [x.size(axis) for axis in range(x.type.known_rank - 1)]
            x = ops.Concat(x, ops.Broadcast(number(x, 0), joined([*sizes, stride], x)), axis=x.type.known_rank - 1)
    y = ops.Convolution(x, w, dilations=at.dilations, **at.attributes())
    return y[..., :-1] if has_one_more else y


def _is_single_column(x: Value, w: Value, at: Window) -> bool:
    """Whether there is one channel and the last dimension of the result may be 1."""
    if at.strides[-2:-1] != (1,) or at.strides[-1] == 1 or x.shape is None or w.shape is None or w.shape[1] != 1:
        return False
    size, length = x.shape[-1], w.shape[-1]
    if not isinstance(size, int) or not isinstance(length, int):
        return True
    if at.auto_pad != "explicit":
        return size <= at.strides[-1]
    reach = (length - 1) * at.dilations[-1] + 1
    return size + at.begin[-1] + at.end[-1] - reach < at.strides[-1]


def grouped(w: Value, group: int, at: Window) -> Value:
    """Filters [O, C, K...] as [group, O / group, C, K...]; those of a transposed convolution begin with C."""
    if w.shape is None or not all(isinstance(dim, int) for dim in w.shape[1:]):
        tail = w.sizes[1 : 2 + at.count]
        return ops.Reshape(w, ops.Concat(ops.Constant([group, -1], graph=w.graph), tail, axis=0))
    first, *rest = w.shape
    if isinstance(first, int) and first % group:
        raise ModelError(f"{first} channels do not divide into {group} groups", code="ML227")
    return reshaped(w, [group, -1, *(int(str(dim)) for dim in rest)])


def biased(y: Value, b: Value | None, count: int) -> Value:
    """Add one number for each channel."""
    return y if b is None else y + reshaped(b, [1, -1, *[1] * count])


def sized(w: Value, sizes: Sequence[int | None]) -> Value:
    """Filters whose unknown sizes are known from `sizes`: the runtime compiles static ones only."""
    if w.shape is None or len(w.shape) != len(sizes) or is_static(w.shape):
        return w
    found = [dim if isinstance(dim, int) else size for dim, size in zip(w.shape, sizes, strict=True)]
    return w if None in found else ops.Reshape(w, found)


def _length(b: Value | None) -> int | None:
    return b.shape[0] if b is not None and b.shape and isinstance(b.shape[0], int) else None


def _channels(x: Value, group: int) -> int | None:
    return x.shape[1] // group if x.shape is not None and isinstance(x.shape[1], int) else None


def spatial_rank(x: Value, w: Value | None, kernel_shape: Sequence[int] | None) -> int:
    """The number of spatial dimensions."""
    if w is not None and w.rank is not None:
        if x.rank not in (None, w.rank):
            raise TypeError_(f"a tensor {x.type} with filters {w.type}", code="ML235")
        return w.rank - 2
    return len(kernel_shape) if kernel_shape is not None else ranked(x) - 2


@translates("ConvTranspose", since=1, one_rank="x w")
def conv_transpose(
    x: AtLeast2, w: AtLeast2, b: Vector = None, *, output_padding: NotNegatives | None = None,
    output_shape: tuple[int, ...] | None = None, given: ConvolutionAttributes,
):
    """All padding becomes explicit. An `output_shape` with dimensions known only at run time is sliced afterwards."""
    group, kernel_shape, outputs = given.group, given.kernel_shape, _length(b)
    w = sized(w, (_channels(x, 1), outputs and outputs // group, *(kernel_shape or ())))
    at = given.at(x, w)
    count = at.count
    extra = tuple(output_padding or (0,) * count)
    asked = tuple(output_shape[-count:]) if output_shape else None
    for name, numbers in (("output_padding", extra), ("output_shape", asked), ("kernel_shape", kernel_shape)):
        if numbers and len(numbers) != count:
            raise ModelError(f"ConvTranspose has {len(numbers)} numbers in {name}, not {count}", code="ML227")
    if asked is None:
        if at.auto_pad in ("same_upper", "same_lower"):
            # The result has the size * stride, so the number of elements to remove does not depend on the size.
            reach = at.reach(_kernel(w, kernel_shape))
            at = at.cropped([max(r + e - s, 0) for r, e, s in zip(reach, extra, at.strides, strict=True)])
        return biased(_transposed(x, w, group, at, extra), b, count)
    sizes = x.shape[2:] if x.shape is not None else (None,)
    if not all(isinstance(size, int) for size in sizes):
        return biased(_cut_out(x, w, group, at, extra, asked), b, count)
    reach = at.reach(_kernel(w, kernel_shape))
    made = [(int(str(n)) - 1) * s + r for n, s, r in zip(sizes, at.strides, reach, strict=True)]
    excess = [m + e - wanted for m, e, wanted in zip(made, extra, asked, strict=True)]
    extra = tuple(e + max(-each, 0) for e, each in zip(extra, excess, strict=True))
    at = at.cropped([max(each, 0) for each in excess])
    return biased(_transposed(x, w, group, at, extra), b, count)


def _transposed(x: Value, w: Value, group: int, at: Window, extra: tuple[int, ...]) -> Value:
    keywords = {"dilations": at.dilations, "output_padding": extra, **at.attributes()}
    if group == 1:
        return ops.ConvolutionBackpropData(x, w, **keywords)
    return ops.GroupConvolutionBackpropData(x, grouped(w, group, at), **keywords)


def _cut_out(x: Value, w: Value, group: int, at: Window, extra: tuple[int, ...], asked: tuple[int, ...]) -> Value:
    """The full result without the elements of the pads. The CPU device ignores an output_shape input where
    dimensions are dynamic."""
    none = (0,) * len(asked)
    reserve = tuple(stride - 1 for stride in at.strides)  # zeros at the end: the shape may exceed the computed one
    y = _transposed(x, w, group, replace(at, begin=none, end=none, auto_pad="explicit"), reserve)
    sizes = y.sizes[2 : 2 + len(asked)]
    excess = ops.Maximum(sizes - [wanted + r - e for wanted, r, e in zip(asked, reserve, extra, strict=True)], 0)
    less = excess // 2
    start = less if at.auto_pad == "same_upper" else excess - less
    axes = list(range(2, 2 + len(asked)))
    cut = ops.Slice(y, start, start + list(asked), [1] * len(asked), axes)
    return ops.Reshape(cut, [0, 0, *asked], special_zero=True)


def _kernel(w: Value, kernel_shape: Sequence[int] | None) -> tuple[int, ...]:
    given = w.shape[2:] if w.shape is not None else kernel_shape
    if given is None or not all(isinstance(dim, int) for dim in given):
        raise UnsupportedError("the pads need the shape of the kernel, which is known only at run time", code="ML314")
    return tuple(int(str(dim)) for dim in given)
