"""Heat: how far every compared tensor of an IR is from that of the ONNX model, and how this grows in loops.

    heat = Heat()
    first_difference(model, graph, feeds, heat=heat)        # continues past the first difference
    heat.as_json(describer.id)                              # the page's data, with the ids of nodes there

Of all comparisons of a tensor the worst is kept. Each loop has a curve for each tensor of its body: the worst
difference by iteration. A loop that runs several times has the worst of its runs; above POINTS iterations
neighbours share a point, which is the worst of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.compare.layers.ir_side import Key
from mo_loop.compare.results.array_comparison import ATOL, RTOL, compare, tolerance
from mo_loop.graph import Node, Value
from mo_loop.ops.base import Constant

POINTS = 512
"""The most points of a curve."""

CURVES = 8
"""The most outputs of a body whose curves are shown; more than these are the ones that differ least."""

NOT_COMPARED = -1.0


class Heat:
    """The differences of one graph. It holds a few numbers for each value, and no arrays."""

    def __init__(self) -> None:
        self.tensors: dict[Value, tuple[Distance, int | None]] = {}
        """The worst distance, and the iteration of the innermost loop in which it was found."""
        self.loops: dict[Node, Curves] = {}
        self.first: tuple[Node, int, str] | None = None
        """The node and the port of the first difference, and its description."""
        self.sets: list[str] = []
        """The names of the sets of inputs that were compared."""
        self.precision = ""
        """The precision of OpenVINO; empty for f32."""
        self.notes: dict[str, None] = {}
        """The reasons why some tensors were not compared."""
        self._inside: list[tuple[Curves, int]] = []

    @contextmanager
    def iteration(self, loop: Node, number: int, outputs: Iterable[Key]) -> Iterator[None]:
        """Within it, the tensors that are added are those of an iteration of a loop; `outputs` are its body's."""
        curves = self.loops.setdefault(loop, Curves(tuple(outputs)))
        curves.iterations = max(curves.iterations, number + 1)
        self._inside.append((curves, number))
        try:
            yield
        finally:
            self._inside.pop()

    def add(self, value: Value, key: Key, found: Distance) -> None:
        """Record a comparison of the value that contains the tensor `key` of the ONNX model."""
        is_inside = bool(self._inside) and not isinstance(value.node, Constant)
        curves, iteration = self._inside[-1] if is_inside else (None, None)
        known = self.tensors.get(value)
        if known is None or found.worst > known[0].worst:
            self.tensors[value] = found, iteration
        if curves is not None and iteration is not None:
            curves.add(key, iteration, found.worst)

    def as_json(self, id_of: Callable[[Node], int]) -> dict[str, Any]:
        """The data of the page."""
        found: dict[str, Any] = {
            "tensors": [[id_of(value.node), value.index, _plain(*each)] for value, each in self.tensors.items()],
            "loops": {str(id_of(loop)): curves.as_json() for loop, curves in self.loops.items()},
            "sets": self.sets, "precision": self.precision or "f32",
        }  # fmt: skip
        if self.first is not None:
            node, port, text = self.first
            found["first"] = {"node": id_of(node), "port": port, "text": text}
        return found


class Curves:
    """The tensors of the body of a loop: their worst difference by iteration."""

    def __init__(self, outputs: tuple[Key, ...]) -> None:
        self.outputs = outputs
        self.iterations = 0
        self.per_point = 1
        self._curves: dict[Key, array[float]] = {}
        self._begins: Key | None = None

    def add(self, key: Key, iteration: int, worst: float) -> None:
        """Keep the larger of `worst` and the worst difference of an iteration so far."""
        while iteration >= POINTS * self.per_point:
            self._halve()
        curve = self._curves.setdefault(key, array("f"))
        place = iteration // self.per_point
        curve.extend([NOT_COMPARED] * (place + 1 - len(curve)))
        curve[place] = max(curve[place], worst)
        if self._begins is None and worst > 1:
            self._begins = key

    def _halve(self) -> None:
        self.per_point *= 2
        for key, curve in self._curves.items():
            self._curves[key] = array("f", map(max, curve[::2], [*curve[1::2], NOT_COMPARED]))

    def as_json(self) -> dict[str, Any]:
        """The curves that are shown: where the body begins to differ, and its outputs."""
        scope = self.outputs[0][0] if self.outputs else ()
        curves = {"/".join((*key[0][len(scope) :], key[1])): self._curves[key] for key in self._shown()}
        plain = {name: [None if each < 0 else _rounded(each) for each in curve] for name, curve in curves.items()}
        return {"iterations": self.iterations, "per_point": self.per_point, "tensors": plain}

    def _shown(self) -> list[Key]:
        outputs = [key for key in self.outputs if key in self._curves] or list(self._curves)
        kept = sorted(outputs, key=lambda key: -max(self._curves[key]))[:CURVES]
        begins = [] if self._begins is None or self._begins in kept else [self._begins]
        return [*begins, *(key for key in outputs if key in kept)]


def _plain(found: Distance, iteration: int | None) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "worst": _rounded(found.worst), "abs": _rounded(found.abs), "rel": _rounded(found.rel),
        "count": found.count, "size": found.size,
    }  # fmt: skip
    if iteration is not None:
        plain["iteration"] = iteration
    return {**plain, "text": found.text} if found.text else plain


def _rounded(number: float) -> float:
    """Three digits: the numbers are many, and are for the eye."""
    return float(f"{number:.3g}")


BEYOND = 1e30
"""The `worst` of differences that have no measure. JSON has no infinity."""

EXACT = 2.0

BLOCK = 1 << 15
"""The elements that are compared at once: they stay in the cache of the processor."""


@dataclass(frozen=True, slots=True)
class Distance:
    """`abs` and `rel` are the largest differences of finite numbers, `count` elements of `size` are beyond the
    tolerance, and `text` is the reason if `worst` is BEYOND."""

    worst: float
    abs: float = 0.0
    rel: float = 0.0
    count: int = 0
    size: int = 0
    text: str = ""


def distance(expected: Any, actual: Any, rtol: float | None, atol: float | None) -> Distance:
    """Return the distance of two arrays."""
    left, right = np.asarray(expected), np.asarray(actual)
    is_text = left.dtype.kind in "OSU" or right.dtype.kind in "OSU"
    if is_text or left.shape != right.shape or left.dtype != right.dtype:
        result = compare(left, right, dtype=not is_text)
        text = "other texts" if result.kind == "values" else result.message
        return Distance(0.0 if result else BEYOND, count=result.count, size=left.size, text=text)
    if not _is_float(left.dtype) and np.array_equal(left, right):
        return Distance(0.0, size=left.size)
    limits, is_real = _tolerances(left.dtype, rtol, atol), _is_float(left.dtype) and left.dtype.kind != "c"
    left, right = left.reshape(-1), right.reshape(-1)
    worst = largest = relative = 0.0
    count = 0
    with np.errstate(all="ignore"):
        for start in range(0, left.size, BLOCK):
            a, b = left[start : start + BLOCK], right[start : start + BLOCK]
            found = (_of_finite(a, b, *limits) if is_real else None) or _of_any(a, b, *limits)
            worst, largest, relative = max(worst, found[0]), max(largest, found[1]), max(relative, found[2])
            count += found[3]
    text = "numbers that are not finite" if worst >= BEYOND else ""
    return Distance(min(worst, BEYOND), largest, relative, count, left.size, text)


Part = tuple[float, float, float, int]
"""The worst multiple of the tolerance, the largest absolute and relative difference, the number beyond it."""


def _of_finite(left: np.ndarray, right: np.ndarray, rtol: float, atol: float) -> Part | None:
    """The distance of a block; None if a number in it is not finite, or there is no tolerance. It takes few passes."""
    kind = np.float32 if left.dtype.itemsize <= 4 else np.float64
    size = np.abs(left.astype(kind, copy=False))
    apart = np.abs(left.astype(kind, copy=False) - right.astype(kind, copy=False))
    limit = size * rtol
    limit += atol
    multiple = np.divide(apart, limit, out=limit)
    worst = float(multiple.max())
    if not worst < BEYOND:
        return None
    count = int(np.count_nonzero(multiple > 1)) if worst > 1 else 0
    size[size == 0] = np.inf
    return worst, float(apart.max()), float(np.divide(apart, size, out=size).max()), count


def _of_any(left: np.ndarray, right: np.ndarray, rtol: float, atol: float) -> Part:
    """The distance of a block of any numbers."""
    kind = np.complex128 if left.dtype.kind == "c" else np.float64
    a, b = left.astype(kind), right.astype(kind)
    wrong = (left != right) & ~(np.isnan(a) & np.isnan(b))
    apart, size = np.abs(a - b), np.abs(a)
    multiple = apart / (size * rtol + atol)
    if not _is_float(left.dtype):
        multiple = np.maximum(multiple, EXACT)
    finite = np.isfinite(a) & np.isfinite(b)
    multiple = np.where(wrong, np.where(finite, multiple, np.inf), 0.0)
    relative = np.divide(apart, size, out=np.zeros_like(size), where=finite & (size > 0))
    largest, count = float(apart.max(where=finite, initial=0)), int(np.count_nonzero(multiple > 1))
    return float(multiple.max()), largest, float(relative.max()), count


def _tolerances(dtype: np.dtype, rtol: float | None, atol: float | None) -> tuple[float, float]:
    usual = tolerance(dtype) if _is_float(dtype) else (RTOL, ATOL)
    return usual[0] if rtol is None else rtol, usual[1] if atol is None else atol


def _is_float(dtype: np.dtype) -> bool:
    return tolerance(dtype) != (0.0, 0.0)
