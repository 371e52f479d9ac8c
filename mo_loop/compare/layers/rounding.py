"""The effect of rounding: the tolerance of one piece, and whether a model amplifies it.

    is_beyond(run, frame, "y", expected, actual)

A piece begins at tensors that both sides have with the same values, so nothing that came before it counts. Numbers
that are within a few roundings of their type agree. For others the nodes of the piece are computed again from inputs
that are changed at random, each by AMPLITUDE of itself: an accumulation moves by the size of what it adds and the root
of the number of its terms, a function by its slope, and a number between two steps of a quantisation to the other
step. Sums and products of two numbers are rounded once, so their inputs are changed by one unit of their type.
Operators that only move or select numbers compute nothing, so their inputs are not changed: ties stay ties.

    moves = amplification("model.onnx", feeds, {})          # {"y": 0.31}: the largest movement of each output
    explains(moves, "y", 0.02)

Pieces that agree one by one can differ as a whole only if the model amplifies what rounding does in them, or if the
runtime computes them differently together: it fuses layers, or they share memory. So the outputs of ONNX Runtime itself
have to move if the result of every node is changed by a few roundings. This shows which of both it is, no more: the
pieces decide whether the IR is right.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import onnx

from mo_loop.compare.layers.loop_runs import OnnxLoop
from mo_loop.compare.layers.onnx_side import OnnxError, OnnxFrame, OnnxNodes, in_f64
from mo_loop.compare.oracle.graph_edits import graphs_in, replace_entries
from mo_loop.compare.oracle.oracle import RANDOM_OPERATORS, OnnxRuntime, with_copies
from mo_loop.compare.results.array_comparison import BEYOND, compare, largest_number
from mo_loop.support.traversal import reached

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
})
"""Operators that move, select or compare numbers, or compute each result with at most one rounding."""

ARITHMETIC = frozenset(("Add", "Div", "Mul", "Reciprocal", "Sqrt", "Sub", "Sum"))
"""Operators that round each result once and add nothing up: their inputs are changed by one unit of their type."""

OF_LARGEST = frozenset(("DFT", "DequantizeLinear", "STFT"))
"""Operators whose results are sums over a whole signal with rounded factors, or steps that the runtime counts from the
end of their range: 0 is as far off as the largest."""

QUANTISING = ("Quantize", "QLinear", "QGemm", "QAttention")
"""Parts of the names of operators that quantise."""

FIRST_ALONE = frozenset(("Resize", "Upsample", "Range"))
"""Operators whose other floating-point inputs decide about sizes."""


Run = Callable[[OnnxLoop], None]
"""Computes the iterations of a loop that ONNX Runtime does not run alone."""


class Undecided(Exception):
    """The rounding of a piece cannot be found, or nothing follows from it: `moved` is then its largest movement."""

    def __init__(self, text: str, moved: float = 0.0) -> None:
        super().__init__(text)
        self.moved = moved


def is_beyond(run: Run, frame: OnnxFrame, name: str, expected: Any, actual: Any, coarsest: float = 0.0) -> bool:
    """Whether the difference of a tensor is beyond the tolerance of the piece that makes it. Undecided if it shows
    nothing.

    The arrays have the same shape and type; numbers that are not finite are equal where both sides have them.
    `coarsest` is the relative rounding of weights in the piece, where it is above that of the inputs.
    """
    left = _wide(expected)
    finite = np.isfinite(left)
    apart = _apart(left, _wide(actual))
    scale = float(np.abs(left).max(where=finite, initial=0.0))
    rtol, atol = _tolerance(frame, name, np.asarray(expected).dtype, scale)
    limit = np.where(finite, atol + rtol * np.abs(np.where(finite, left, 0.0)), 0.0)
    if (apart <= limit).all():
        return False
    try:
        moved = _moved(run, frame, name, left, coarsest)
    except OnnxError as error:  # of all computations from changed inputs
        if (apart > FAR * limit).any():
            return True
        raise Undecided(f"ONNX Runtime does not compute it once more: {error}") from error
    if moved is None:
        return True
    wide = limit + (FACTOR if rtol > 0 else 1.0) * moved
    shows_nothing = np.count_nonzero(moved > MEANINGLESS * scale) > MOST * moved.size
    if shows_nothing and not (apart > FAR * wide).any():
        text = "rounding alone changes it by more than a twentieth of its largest element"
        raise Undecided(text, float(moved.max(where=np.isfinite(moved), initial=0.0)))
    return bool((apart > wide).any())


def _tolerance(frame: OnnxFrame, name: str, dtype: np.dtype, scale: float) -> tuple[float, float]:
    """The tolerance of numbers that are computed once, by the node that makes the tensor."""
    rtol, atol = base_tolerance(dtype, scale)
    place = frame.plan.makers.get(name, -1)
    is_of_largest = place >= 0 and frame.plan.nodes[place].op_type in OF_LARGEST
    return rtol, max(atol, ATOL * scale) if is_of_largest else atol


def error_of_oracle(frame: OnnxFrame, name: str, expected: Any, actual: Any) -> float:
    """How far ONNX Runtime is from the numbers of a piece in f64, if it is beyond the tolerance and OpenVINO within;
    else 0. Its Sigmoid, for example, has an absolute error of 1e-7, however small the result is."""
    exact = in_f64(frame, name)
    if exact is None or exact.shape != np.shape(actual) or not np.isfinite(exact).all():
        return 0.0
    rtol, atol = _tolerance(frame, name, np.asarray(expected).dtype, largest_number(exact))
    theirs, ours = (np.abs(_wide(each) - exact) for each in (expected, actual))
    limit = atol + rtol * np.abs(exact)
    return float(theirs.max()) if (theirs > limit).any() and (ours <= limit).all() else 0.0


def _moved(run: Run, frame: OnnxFrame, name: str, expected: Any, coarsest: float) -> Any:
    """The largest movement of each element when the piece is computed from changed inputs; None: it does not depend on
    any."""
    moved, failed = None, None
    sources: list[Source] = [OneSign(1), OneSign(0), *map(np.random.default_rng, range(DRAWS))]
    for source in sources:
        draw = _Draw(source, coarsest, run)
        try:
            value = draw.value(frame, name)
        except OnnxError as error:  # such as a division of integers that became 0
            failed = error
            continue
        if not draw.changes:
            return None
        other = _wide(value)
        if other.shape != expected.shape:
            raise Undecided("rounding alone changes its shape")
        apart = _apart(expected, other)
        moved = apart if moved is None else np.maximum(moved, apart)
    if moved is None and failed is not None:
        raise failed
    return moved


def _apart(left: Any, right: Any) -> Any:
    """How far the numbers of two arrays are apart: infinitely where only one of them is finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(right - left)
    apart = np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0.0, apart)
    return np.where(np.isnan(apart), np.inf, apart)


def base_tolerance(dtype: np.dtype, scale: float) -> tuple[float, float]:
    """The relative and absolute tolerance of numbers that are computed once, the largest of which is `scale`."""
    unit = unit_of(dtype)
    if not unit:
        return 0.0, 0.0
    small = min(1.0, scale)
    return (RTOL, ATOL * small) if unit < 1e-5 else (2 * unit, unit * small)


def is_close(expected: Any, actual: Any) -> bool:
    """Whether two arrays differ by no more than numbers that are computed once."""
    rtol, atol = base_tolerance(np.asarray(expected).dtype, largest_number(expected))
    return isinstance(expected, np.ndarray) and bool(compare(expected, actual, rtol=rtol, atol=atol))


def unit_of(dtype: np.dtype) -> float:
    """The distance of 1 and the next number of a floating-point type; 0 for other types."""
    if dtype.kind not in "biuOSUc":
        import ml_dtypes

        with suppress(TypeError, ValueError):  # integers of fewer than 8 bits
            return float(ml_dtypes.finfo(dtype).eps)
    return 0.0


class OneSign:
    """In place of a source of random numbers: all are `bit`, so that each number between two steps of a quantisation
    moves in one of two directions."""

    def __init__(self, bit: int) -> None:
        self.integers = lambda low, high, size: np.full(size, bit)


Source = np.random.Generator | OneSign
Tensor = tuple[OnnxFrame, str]


class _Draw:
    """One computation of a piece from inputs that are changed at random, at least by `coarsest` of themselves."""

    def __init__(self, random: Source, coarsest: float, run: Run) -> None:
        self._random, self._coarsest, self._run = random, coarsest, run
        self._made: dict[Tensor, Any] = {}
        self.changes = False

    def value(self, frame: OnnxFrame, name: str) -> Any:
        """The value of the tensor at the end of the piece."""
        self._end = end = (frame, name)
        if name in frame.again:
            self.changes = True
            return frame.again[name](self._random)
        # What a tensor is computed from is in a frame that was made earlier, or has an earlier place in its own.
        tensors = reached([end], lambda tensor: self._sources(tensor) or ())
        for tensor in sorted(tensors, key=lambda each: (each[0].number, each[0].plan.makers.get(each[1], -1))):
            if tensor not in self._made:
                self._make(tensor)
        return self._made[end]

    def _sources(self, tensor: Tensor) -> list[Tensor] | None:
        """The tensors that a tensor of the piece is computed from; None where the piece begins."""
        frame, name = tensor
        if (name in frame.cut and tensor != self._end) or name in frame.plan.constants:
            return None
        if name in frame.plan.makers:
            return [(frame, each) for each in frame.plan.reads[frame.plan.makers[name]]]
        if name in frame.values:
            return [frame.sources[name]] if name in frame.sources else None
        return [(frame.outer, name)] if frame.outer is not None else None

    def _make(self, tensor: Tensor) -> None:
        (frame, name), sources = tensor, self._sources(tensor)
        if sources is None:
            try:
                self._made[tensor] = frame.get(name)
            except KeyError:
                text = "the values that it is computed from are no longer in memory (--layers-memory)"
                raise Undecided(text) from None
        elif name in frame.plan.makers:
            self._made.update(((frame, each), value) for each, value in self._computed(frame, frame.plan.makers[name]))
        else:
            self._made[tensor] = self._made[sources[0]]

    def _computed(self, frame: OnnxFrame, place: int) -> Iterator[tuple[str, Any]]:
        node = frame.plan.nodes[place]
        if node.op_type in RANDOM_OPERATORS:
            raise Undecided(f"{node.op_type} draws random numbers")
        given = {each: self._made[frame, each] for each in frame.plan.reads[place]}
        rounds = node.op_type not in EXACT or bool(node.domain)
        if rounds:
            only = set(node.input[:1]) if node.op_type in FIRST_ALONE else set(given)
            least = 0.0 if node.op_type in ARITHMETIC and not node.domain else AMPLITUDE
            given = {each: self._changed(value, least) if each in only else value for each, value in given.items()}
        inner = OnnxFrame(frame.plan, {**frame.values, **given}, frame.outer)
        quantises = any(part in node.op_type for part in QUANTISING)
        if rounds and quantises and not isinstance(self._random, OneSign):
            return iter(self._with_changed_steps(inner, place).items())
        try:
            return iter(inner.run(place).items())
        except OnnxError:
            is_loop = frame.plan.is_driven(place) and node.op_type != "If"
            if not is_loop or not (loop := OnnxLoop(inner, place)).goes_on():
                raise
        self._run(loop)
        return zip(node.output, loop.outputs(), strict=False)

    def _with_changed_steps(self, frame: OnnxFrame, place: int) -> dict[str, Any]:
        """The outputs of an operator that quantises, whose constants, such as steps, are changed as well."""
        from onnx import helper, numpy_helper

        nodes = OnnxNodes(frame, [place])
        feeds = {name: frame.get(name) for name in nodes.inputs}
        model = nodes.model(frame, feeds)
        for tensor in [each for each in model.graph.initializer if each.data_type == 1 and len(each.dims) < 2]:
            array = numpy_helper.to_array(tensor)
            feeds[tensor.name] = self._changed(array, AMPLITUDE)
            model.graph.input.append(helper.make_tensor_value_info(tensor.name, 1, array.shape))
            model.graph.initializer.remove(tensor)
        try:
            return dict(OnnxRuntime(model).run(feeds))
        except Exception:  # the errors of ONNX Runtime share no base class: an input that has to be a constant
            return frame.run(place)

    def _changed(self, value: Any, amplitude: float) -> Any:
        if isinstance(value, list):
            return [self._changed(each, amplitude) for each in value]
        least = max(amplitude, self._coarsest)
        found = value if value is None else changed(np.asarray(value), self._random, least)
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


def _wide(value: Any) -> Any:
    array = np.asarray(value)
    return array if array.dtype == np.float64 else array.astype(np.float64)


# -- the whole model

CHANGE = 16
"""The change of each result, in units of the last place of its type."""

MOVED_RUNS = 8
"""How often. A tie at a step of a quantisation falls to the other side in half of them: 3 missed one in 8."""

LARGEST_RATIO = 50.0
"""A difference above this multiple of the movement is not that of rounding: where a model amplifies nothing, the ratio
of a difference above the tolerances is above 100."""

UNITS = {onnx.TensorProto.FLOAT: 2.0**-23, onnx.TensorProto.FLOAT16: 2.0**-10, onnx.TensorProto.DOUBLE: 2.0**-23}
"""The relative distance of numbers by the type of ONNX; OpenVINO computes f64 in f32."""


def amplification(model: str, feeds: Mapping[str, Any], inexact: Mapping[str, float]) -> dict[str, float]:
    """The largest movement of the numbers of each output; infinite where its shape changes, or a number becomes
    infinite. `inexact` has the changes of tensors that differ by more than rounding. Runs native code: call it in a
    worker."""
    expected = dict(OnnxRuntime(with_copies(model), arena=False).run(feeds))
    whole = onnx.load(model)
    moves = dict.fromkeys(expected, 0.0)
    for seed in range(MOVED_RUNS):
        random = np.random.default_rng(seed)
        moved = {
            name: changed(value, random, CHANGE * unit_of(value.dtype)) if isinstance(value, np.ndarray) else value
            for name, value in feeds.items()
        }
        for source in (with_copies(_with_moved_results(whole, seed, inexact)), with_copies(model)):
            try:
                found = dict(OnnxRuntime(source, arena=False).run(moved))
            except Exception:  # the errors of ONNX Runtime share no base class: other numbers, other sizes
                continue
            for name, value in expected.items():
                if isinstance(value, np.ndarray):
                    apart = compare(value, found[name])
                    moves[name] = max(moves[name], np.inf if apart.multiple >= BEYOND else apart.largest_abs)
            break
    return moves


def explains(moves: Mapping[str, float], name: str, largest: float) -> bool:
    """Whether the movement of an output explains its largest difference."""
    return largest <= LARGEST_RATIO * moves.get(name, 0.0)


def _with_moved_results(model: Any, seed: int, inexact: Mapping[str, float]) -> Any:
    """A copy of the model in which each floating-point result of a node is changed at random, bodies included."""
    copy, make = onnx.ModelProto(), onnx.helper.make_node
    copy.CopyFrom(model)
    typed = copy
    with suppress(Exception), warnings.catch_warnings(action="ignore"):  # those of the inference share no base class
        typed = onnx.shape_inference.infer_shapes(copy, data_prop=True)
    random = np.random.default_rng(seed)
    for graph, source in zip(graphs_in(copy.graph), graphs_in(typed.graph), strict=True):
        types = {each.name: each.type.tensor_type.elem_type for each in (*source.value_info, *source.output)}
        nodes: list[Any] = []
        for node in graph.node:
            nodes.append(node)
            for port, name in enumerate(node.output):
                if types.get(name) not in UNITS or node.op_type == "Constant":
                    continue
                size = CHANGE * UNITS[types[name]]
                # ONNX Runtime's first number is near `low` for small seeds.
                drawn = float(random.integers(1, 2**24))
                exact = node.output[port] = f"{name}/exact"  # the changed result has the name that others read
                numbers, size = f"{name}/random", inexact.get(name, size)
                nodes.append(make("RandomUniformLike", [exact], [numbers], low=-size, high=size, seed=drawn))
                if name not in inexact:
                    nodes.append(make("Mul", [exact, numbers], [numbers := f"{name}/change"]))
                nodes.append(make("Add", [exact, numbers], [name]))
        replace_entries(graph.node, nodes)
    return copy
