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
from collections.abc import Callable, Iterable
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
    """The differences of one graph. It holds a few numbers for each value and each iteration, and no arrays."""

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

    def iteration(self, loop: Node, number: int, outputs: Iterable[Key]) -> Recorded:
        """An iteration of a loop, for the tensors in it; `outputs` are those of the body."""
        curves = self.loops.setdefault(loop, Curves(tuple(outputs)))
        curves.iterations = max(curves.iterations, number + 1)
        return curves, number

    def add(self, value: Value, key: Key, found: Distance, inside: Recorded | None = None) -> None:
        """Record a comparison of the value that contains the tensor `key` of the ONNX model, maybe in an iteration."""
        curves, number = (None, None) if inside is None or isinstance(value.node, Constant) else inside
        known = self.tensors.get(value)
        if known is None or found.worst > known[0].worst:
            self.tensors[value] = found, number
        if curves is not None and number is not None:
            curves.add(key, number, found.worst)

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
        self._curves: dict[Key, array[float]] = {}
        self._begins: Key | None = None

    def add(self, key: Key, iteration: int, worst: float) -> None:
        """Keep the larger of `worst` and the worst difference of an iteration so far."""
        curve = self._curves.setdefault(key, array("f"))
        curve.extend([NOT_COMPARED] * (iteration + 1 - len(curve)))
        curve[iteration] = max(curve[iteration], worst)
        if self._begins is None and worst > 1:
            self._begins = key

    def as_json(self) -> dict[str, Any]:
        """The curves that are shown: where the body begins to differ, and its outputs."""
        scope, step = self.outputs[0][0] if self.outputs else (), 1
        while max(map(len, self._curves.values()), default=0) > POINTS * step:
            step *= 2
        plain: dict[str, Any] = {}
        for (path, name), curve in ((key, self._curves[key]) for key in self._shown()):
            points = [max(curve[place : place + step]) for place in range(0, len(curve), step)]
            plain["/".join((*path[len(scope) :], name))] = [None if each < 0 else _rounded(each) for each in points]
        return {"iterations": self.iterations, "per_point": step, "tensors": plain}

    def _shown(self) -> list[Key]:
        outputs = [key for key in self.outputs if key in self._curves] or list(self._curves)
        kept = sorted(outputs, key=lambda key: -max(self._curves[key]))[:CURVES]
        begins = [] if self._begins is None or self._begins in kept else [self._begins]
        return [*begins, *(key for key in outputs if key in kept)]


Recorded = tuple[Curves, int]
"""The curves of a loop, and the number of an iteration of it."""


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
    usual = tolerance(left.dtype)
    is_float = usual != (0.0, 0.0)
    if not is_float and np.array_equal(left, right):
        return Distance(0.0, size=left.size)
    usual = usual if is_float else (RTOL, ATOL)
    limits = usual[0] if rtol is None else rtol, usual[1] if atol is None else atol
    left, right = left.reshape(-1), right.reshape(-1)
    with np.errstate(all="ignore"):
        blocks = [
            _of_block(left[start : start + BLOCK], right[start : start + BLOCK], *limits, is_float)
            for start in range(0, left.size, BLOCK)
        ]
    worst, largest, relative, count = np.array(blocks or [(0.0, 0.0, 0.0, 0)]).T
    text = "numbers that are not finite" if worst.max() >= BEYOND else ""
    return Distance(
        min(float(worst.max()), BEYOND), float(largest.max()), float(relative.max()), int(count.sum()), left.size, text
    )


def _of_block(
    left: np.ndarray, right: np.ndarray, rtol: float, atol: float, is_float: bool, kind: Any = None
) -> tuple[float, float, float, int]:
    """The worst multiple of the tolerance, the largest absolute and relative difference, the number beyond it."""
    if kind is None:
        is_small = is_float and left.dtype.itemsize <= 4
        kind = np.complex128 if left.dtype.kind == "c" else np.float32 if is_small else np.float64
    a, b = left.astype(kind, copy=False), right.astype(kind, copy=False)
    size, apart = np.abs(a), np.abs(a - b)
    multiple = apart / (size * rtol + atol)
    if not is_float or not multiple.max() < BEYOND:
        if kind is np.float32:  # the difference may be beyond its range
            return _of_block(left, right, rtol, atol, is_float, np.float64)
        wrong = (left != right) & ~(np.isnan(a) & np.isnan(b))
        finite = np.isfinite(a) & np.isfinite(b)
        least = 0.0 if is_float else EXACT
        multiple = np.where(wrong, np.where(finite, np.maximum(multiple, least), np.inf), 0.0)
        apart, size = np.where(finite, apart, 0.0), np.where(finite, size, 0.0)
    relative = np.divide(apart, size, out=np.zeros_like(size), where=size > 0)
    return float(multiple.max()), float(apart.max()), float(relative.max()), int(np.count_nonzero(multiple > 1))
