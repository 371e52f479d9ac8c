"""The tolerance of one piece: how far its rounding alone can move a tensor that it makes.

    tolerance = PieceTolerance(run)
    beyond = tolerance.beyond(frame, "y", expected, actual) # None: they agree; else a Beyond

A piece begins at tensors that both sides have with the same values, so nothing that came before it counts. Numbers
that are within a few roundings of their type agree. For others the nodes of the piece are computed again from inputs
that are changed at random, each by AMPLITUDE of itself: an accumulation moves by the size of what it adds and the root
of the number of its terms, a function by its slope, and a number between two steps of a quantisation to the other
step. Sums and products of two numbers are rounded once, so their inputs are changed by one unit of their type.
Operators that only move or select numbers compute nothing, so their inputs are not changed: ties stay ties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.compare.layers.onnx_loops import OnnxLoop
from mo_loop.compare.layers.onnx_pieces import OnnxError, Piece
from mo_loop.compare.layers.onnx_side import OnnxFrame
from mo_loop.compare.oracle.oracle import OnnxRuntime
from mo_loop.compare.oracle.oracle_errors import RANDOM_OPERATORS

AMPLITUDE = 2.5e-5
"""The relative change of inputs: some hundred roundings of f32, as sums are added in any order."""

RTOL, ATOL = 1e-4, 1e-5
"""The effect of rounding of f32 in a function of one number: relative to it, and to 1 for those that go through 0."""

FACTOR = 4.0
"""A few random changes show a part of the largest possible effect."""

DRAWS = 4
"""Computations with random signs of the changes; two more change all numbers in one direction."""

MEANINGLESS, MOST = 0.05, 0.05
"""Above this share of the largest element, a tolerance shows nothing; if it does for this share of the elements, the
piece is not decided."""

FAR = 100.0
"""The multiple of a tolerance beyond which a number differs, however large the tolerance is."""

EXACT = frozenset({
    "Abs", "And", "ArgMax", "ArgMin", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast",
    "CastLike", "Ceil", "Clip", "Compress", "Concat", "Constant", "ConstantOfShape", "DepthToSpace", "Dropout",
    "Equal", "Expand", "EyeLike", "Flatten", "Floor", "Gather", "GatherElements", "GatherND", "Greater",
    "GreaterOrEqual", "Hardmax", "Identity", "If", "IsInf", "IsNaN", "Less", "LessOrEqual", "Max", "MaxPool",
    "MaxRoiPool", "Min", "Neg", "NonMaxSuppression", "NonZero", "Not", "OneHot", "Optional", "OptionalGetElement",
    "OptionalHasElement", "Or", "PRelu", "Pad", "ReduceMax", "ReduceMin", "Relu", "Reshape", "ReverseSequence",
    "Round", "ScatterElements", "ScatterND", "Shape", "Sign", "Size", "Slice", "SpaceToDepth", "Split", "Squeeze",
    "Tile", "TopK", "Transpose", "Trilu", "Unique", "Unsqueeze", "Where", "Xor",
})  # fmt: skip
"""Operators that move, select or compare numbers, or compute each result with at most one rounding."""

ARITHMETIC = frozenset(("Add", "Div", "Mul", "Reciprocal", "Sqrt", "Sub", "Sum"))
"""Operators that round each result once and add nothing up: their inputs are changed by one unit of their type."""

OF_LARGEST = frozenset(("DFT", "DequantizeLinear", "STFT"))
"""Operators whose results are sums over a whole signal with rounded factors, or steps that the runtime counts from the
end of their range: 0 is as far off as the largest."""

FIRST_ALONE = frozenset(("Resize", "Upsample", "Range"))
"""Operators whose other floating-point inputs decide about sizes."""


Run = Callable[[OnnxFrame], None]


@dataclass(frozen=True)
class Beyond:
    """A tensor that rounding does not explain: `count` elements; `undecided` is why nothing follows from it, `moved` is
    then the largest movement that rounding causes."""

    count: int = 0
    undecided: str = ""
    moved: float = 0.0


class PieceTolerance:
    """Tolerances of the pieces of one comparison; `run` computes a body whose loop ONNX Runtime does not run alone."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def beyond(
        self, frame: OnnxFrame, name: str, expected: Any, actual: Any, coarsest: float = 0.0
    ) -> Beyond | None:
        """The difference beyond the tolerance of the piece that makes a tensor; None if there is none.

        The arrays have the same shape and type; numbers that are not finite are equal where both sides have them.
        `coarsest` is the relative rounding of weights in the piece, where it is above that of the inputs.
        """
        left, right = _wide(expected), _wide(actual)
        finite = np.isfinite(left)
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.abs(right - left)
        apart = np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0.0, apart)
        apart = np.where(np.isnan(apart), np.inf, apart)
        scale = float(np.abs(left).max(where=finite, initial=0.0))
        rtol, atol = base_tolerance(np.asarray(expected).dtype, scale)
        place = frame.plan.makers.get(name, -1)
        if place >= 0 and frame.plan.nodes[place].op_type in OF_LARGEST:
            atol = max(atol, ATOL * scale)
        limit = np.where(finite, atol + rtol * np.abs(np.where(finite, left, 0.0)), 0.0)
        if (apart <= limit).all():
            return None
        try:
            moved = self._moved(frame, name, left, coarsest)
        except _Undecided as error:
            return Beyond(undecided=str(error))
        except OnnxError as error:  # of all computations from changed inputs
            far = int((apart > FAR * limit).sum())
            return Beyond(far) if far else Beyond(undecided=f"ONNX Runtime does not compute it once more: {error}")
        if moved is None:
            return Beyond(int((apart > limit).sum()))
        is_float = rtol > 0
        wide = limit + (FACTOR if is_float else 1.0) * moved
        count = int((apart > wide).sum())
        shows_nothing = np.count_nonzero(moved > MEANINGLESS * scale) > MOST * moved.size
        if shows_nothing and not (apart > FAR * wide).any():
            text = "rounding alone changes it by more than a twentieth of its largest element"
            return Beyond(undecided=text, moved=float(moved.max(where=np.isfinite(moved), initial=0.0)))
        return Beyond(count) if count else None

    def _moved(self, frame: OnnxFrame, name: str, expected: Any, coarsest: float) -> Any:
        """The largest movement of each element when the piece is computed from changed inputs; None: it does not
        depend on any."""
        moved, failed = None, None
        sources: list[Source] = [OneSign(1), OneSign(0), *map(np.random.default_rng, range(DRAWS))]
        for source in sources:
            draw = _Draw(source, coarsest, self._run)
            try:
                value = draw.value(frame, name)
            except OnnxError as error:  # such as a division of integers that became 0
                failed = error
                continue
            if not draw.changes:
                return None
            other = _wide(value)
            if other.shape != expected.shape:
                raise _Undecided("rounding alone changes its shape")
            with np.errstate(invalid="ignore", over="ignore"):
                apart = np.abs(other - expected)
            apart = np.where(np.isfinite(apart), apart, np.where(other == expected, 0.0, np.inf))
            apart[np.isnan(other) & np.isnan(expected)] = 0.0
            moved = apart if moved is None else np.maximum(moved, apart)
        if moved is None and failed is not None:
            raise failed
        return moved


def base_tolerance(dtype: np.dtype, scale: float) -> tuple[float, float]:
    """The relative and absolute tolerance of numbers that are computed once, the largest of which is `scale`."""
    unit = unit_of(dtype)
    if not unit:
        return 0.0, 0.0
    small = min(1.0, scale)
    return (RTOL, ATOL * small) if unit < 1e-5 else (2 * unit, unit * small)


def unit_of(dtype: np.dtype) -> float:
    """The distance of 1 and the next number of a floating-point type; 0 for other types."""
    if dtype in (np.float16, np.float32, np.float64):
        return float(np.finfo(dtype).eps)
    if dtype.kind in "biuOSUc":
        return 0.0
    try:
        import ml_dtypes

        return float(ml_dtypes.finfo(dtype).eps)
    except (TypeError, ValueError):  # integers of fewer than 8 bits
        return 0.0


class _Undecided(Exception):
    """A piece whose rounding cannot be found."""


class OneSign:
    """In place of a source of random numbers: all are `bit`, so that each number between two steps of a quantisation
    moves in one of two directions."""

    def __init__(self, bit: int) -> None:
        self._bit = bit

    def integers(self, low: int, high: int, size: tuple[int, ...]) -> Any:
        return np.full(size, self._bit)


Source = np.random.Generator | OneSign


class _Draw:
    """One computation of a piece from inputs that are changed at random, at least by `coarsest` of themselves."""

    def __init__(self, random: Source, coarsest: float, run: Run) -> None:
        self._random, self._coarsest, self._run = random, coarsest, run
        self._end: tuple[int, str] | None = None
        self._made: dict[tuple[int, str], Any] = {}
        self.changes = False

    def value(self, frame: OnnxFrame, name: str) -> Any:
        """The value of the tensor at the end of the piece."""
        key = self._end = (id(frame), name)
        pending = [(frame, name)]
        while key not in self._made:
            here, wanted = pending[-1]
            missing = [each for each in self._sources(here, wanted) if (id(each[0]), each[1]) not in self._made]
            if missing and len(pending) < 10_000:
                pending += missing
                continue
            pending.pop()
            if (id(here), wanted) not in self._made:
                self._make(here, wanted)
        return self._made[key]

    def _sources(self, frame: OnnxFrame, name: str) -> list[tuple[OnnxFrame, str]]:
        """The tensors that a tensor of the piece is computed from; none where the piece begins."""
        place = frame.plan.makers.get(name)
        if self._is_begin(frame, name) or ((id(frame), name) == self._end and name in frame.again):
            return []
        if place is not None:
            return [(frame, each) for each in sorted(frame.plan.reads[place]) if each]
        if name in frame.values:
            return [frame.sources[name]] if name in frame.sources else []
        return [(frame.outer, name)] if frame.outer is not None else []

    def _is_begin(self, frame: OnnxFrame, name: str) -> bool:
        return (name in frame.cut and (id(frame), name) != self._end) or name in frame.plan.constants

    def _make(self, frame: OnnxFrame, name: str) -> None:
        key, place = (id(frame), name), frame.plan.makers.get(name)
        if key == self._end and name in frame.again:
            self.changes = True
            self._made[key] = frame.again[name](self._random)
            return
        if self._is_begin(frame, name) or (place is None and not self._sources(frame, name)):
            self._made[key] = self._known(frame, name)
        elif place is None:
            ((source, other),) = self._sources(frame, name)
            self._made[key] = self._made[id(source), other]
        else:
            self._made.update(((id(frame), each), value) for each, value in self._computed(frame, place))

    def _known(self, frame: OnnxFrame, name: str) -> Any:
        try:
            return frame.get(name)
        except KeyError:
            raise _Undecided("the values that it is computed from are no longer in memory (--layers-memory)") from None

    def _computed(self, frame: OnnxFrame, place: int) -> Iterator[tuple[str, Any]]:
        node = frame.plan.nodes[place]
        if node.op_type in RANDOM_OPERATORS:
            raise _Undecided(f"{node.op_type} draws random numbers")
        given = {each: self._made[id(frame), each] for each in frame.plan.reads[place] if each}
        rounds = node.op_type not in EXACT or bool(node.domain)
        if rounds:
            only = set(node.input[:1]) if node.op_type in FIRST_ALONE else set(given)
            least = 0.0 if node.op_type in ARITHMETIC and not node.domain else AMPLITUDE
            given = {each: self._changed(value, least) if each in only else value for each, value in given.items()}
        inner = OnnxFrame(frame.plan, {**frame.values, **given}, frame.outer)
        piece = Piece(frame.plan, inner, range(place, place + 1))
        if rounds and _quantises(node) and piece.constants and not isinstance(self._random, OneSign):
            return iter(self._with_changed_steps(piece, inner).items())
        try:
            return iter(piece.run(inner).items())
        except OnnxError:
            if not frame.plan.is_loop(place) or not (loop := OnnxLoop(inner, place)).goes_on():
                raise
        while loop.goes_on():
            body = loop.begin()
            self._run(body)
            loop.end(body)
        return zip(node.output, loop.outputs(), strict=False)

    def _with_changed_steps(self, piece: Piece, frame: OnnxFrame) -> dict[str, Any]:
        """The outputs of an operator that quantises, whose constants, such as steps, are changed as well."""
        from onnx import helper, numpy_helper

        feeds = {name: frame.get(name) for name in piece.inputs}
        model = piece.model(frame, feeds)
        for tensor in [each for each in model.graph.initializer if each.data_type == 1 and len(each.dims) < 2]:
            array = numpy_helper.to_array(tensor)
            feeds[tensor.name] = self._changed(array, AMPLITUDE)
            model.graph.input.append(helper.make_tensor_value_info(tensor.name, 1, array.shape))
            model.graph.initializer.remove(tensor)
        try:
            return dict(OnnxRuntime(model).run(feeds))
        except Exception:  # the errors of ONNX Runtime share no base class: an input that has to be a constant
            return piece.run(frame)

    def _changed(self, value: Any, amplitude: float) -> Any:
        if isinstance(value, list):
            return [self._changed(each, amplitude) for each in value]
        found = value
        if value is not None:
            found = changed(np.asarray(value), self._random, max(amplitude, self._coarsest))
        self.changes = self.changes or found is not value
        return found


def changed(array: Any, random: Source, amplitude: float = AMPLITUDE) -> Any:
    """The array with each number changed at random by `amplitude` of itself, or a unit of its type; the array itself if
    it has no floating-point numbers."""
    unit = unit_of(array.dtype)
    if not unit:
        return array
    signs = random.integers(0, 2, array.shape) * 2.0 - 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(array.astype(np.float64) * (1 + max(amplitude, unit) * signs)).astype(array.dtype)


def _quantises(node: Any) -> bool:
    return any(part in node.op_type for part in ("Quantize", "QLinear", "QGemm", "QAttention"))


def _wide(value: Any) -> Any:
    array = np.asarray(value)
    return array if array.dtype == np.float64 else array.astype(np.float64)
