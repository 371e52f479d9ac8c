"""Discrete Fourier transforms; a complex tensor has its real and imaginary parts in a last dimension of 2.

DFT    X[k] = sum of x[t] e^(-2 pi i k t / n)
"""

import functools
from collections.abc import Sequence

from mo_loop.graph.dimension import Dimension, fresh, low
from mo_loop.graph.shape import merge_dim, normalise_axis
from mo_loop.graph.types import TensorType, bf16, f16, f32
from mo_loop.ops.base import Op

_VECTORS = {"axes": 1, "signal_size": 1}


class Fourier(Op, abstract=True, along="axes"):
    """Base of the transforms. `signal_size` has for each axis the length to which the signal is sliced or padded with
    zeros; -1 keeps the length."""

    def _require_floats(self, x) -> None:
        self.require(x.dtype in (f32, f16, bf16), f"{x.dtype}, not one of f32, f16, bf16")

    def _places(self, axes, rank: int, signal_size) -> list[int] | None:
        """The axes of a tensor of that rank without the complex dimension; None if they are not known."""
        given = [each.shape[0] for each in (axes, signal_size) if each is not None and each.shape is not None]
        count = functools.reduce(merge_dim, given) if given else fresh()
        self.require(low(count) <= rank, f"{count} axes of rank {rank}")
        if axes.integers is None:
            return None
        places = [normalise_axis(axis, rank) for axis in axes.integers]
        self.require(len(set(places)) == len(places), f"axes {axes.integers} repeat")
        return places

    def _require_complex(self, x, least: int) -> None:
        self.require(len(x.shape) >= least, f"rank {len(x.shape)}, not {least} or more")
        last = x.shape[-1]
        self.require(not isinstance(last, int) or last == 2, f"a last dimension of {last}, not of 2")

    def _resized(self, dims: Sequence[Dimension], places: Sequence[int] | None, signal_size) -> list[Dimension]:
        """The dimensions, those of the axes replaced by the signal sizes."""
        if places is None:
            return [fresh() for _ in dims]
        result = list(dims)
        if signal_size is None:
            return result
        sizes = [fresh() for _ in places] if signal_size.known is None else list(signal_size.known.reshape(-1))
        self.require(len(sizes) == len(places), f"{len(sizes)} signal sizes for {len(places)} axes")
        for place, size in zip(places, sizes, strict=True):
            if not isinstance(size, int) or size != -1:
                result[place] = size
        return result


class DFT(Fourier, opset=7, index=("axes", "signal_size"), ranks=_VECTORS, keeps_axes=True):
    """Complex to complex. Spec: DFT-7."""

    def infer(self, x, axes, signal_size=None):
        self._require_floats(x)
        if x.shape is None:
            return TensorType(x.dtype, None)
        self._require_complex(x, 2)
        places = self._places(axes, len(x.shape) - 1, signal_size)
        return TensorType(x.dtype, (*self._resized(x.shape[:-1], places, signal_size), x.shape[-1]))


class IDFT(DFT, opset=7, index=("axes", "signal_size")):
    """The inverse of DFT. Spec: IDFT-7."""


class RDFT(Fourier, opset=9, index=("axes", "signal_size"), ranks=_VECTORS):
    """Real to complex; the last axis has only the first half, which determines the other half. Spec: RDFT-9."""

    def infer(self, x, axes, signal_size=None):
        self._require_floats(x)
        if x.shape is None:
            return TensorType(x.dtype, None)
        places = self._places(axes, len(x.shape), signal_size)
        dims = self._resized(x.shape, places, signal_size)
        if places is not None:
            dims[places[-1]] = dims[places[-1]] // 2 + 1
        return TensorType(x.dtype, (*dims, 2))


class IRDFT(Fourier, opset=9, index=("axes", "signal_size"), ranks=_VECTORS):
    """Complex to real: the inverse of RDFT. Spec: IRDFT-9."""

    def infer(self, x, axes, signal_size=None):
        self._require_floats(x)
        if x.shape is None:
            return TensorType(x.dtype, None)
        self._require_complex(x, 2)
        places = self._places(axes, len(x.shape) - 1, signal_size)
        dims = self._resized(x.shape[:-1], places, signal_size)
        if places is None:
            return TensorType(x.dtype, tuple(dims))
        last = places[-1]
        given = signal_size is not None and signal_size.known is not None
        if signal_size is None or (given and signal_size.known.reshape(-1)[-1] == -1):
            half = x.shape[last]
            dims[last] = (half - 1) * 2 if isinstance(half, int) or half.lo >= 1 else fresh()
        return TensorType(x.dtype, tuple(dims))
