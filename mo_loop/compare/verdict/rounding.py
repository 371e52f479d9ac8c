"""Whether rounding explains a difference: how far results move when a model is computed in other ways that are right.

    moved = Rounding.of(expected, alternatives("model.onnx", feeds))
    moved.explains("y", wanted, found)               # whether it does

The other ways: ONNX Runtime with each level of optimisation, which adds in another order; with inputs and weights that
are changed by one unit in the last place; with weights in f16, if the IR stores them so; and in f64, if ONNX Runtime
has all operators in it. A network that is badly conditioned moves far in all of them; a fault moves it farther.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from mo_loop.api import Model
from mo_loop.compare.oracle.oracle import OnnxRuntime, with_copies
from mo_loop.compare.results.array_comparison import ROUNDING, Comparison, Named
from mo_loop.compare.results.output_rows import by_wanted_name
from mo_loop.compare.results.report import DIFFERS, PASSED, Side
from mo_loop.frontend.onnx_graphs import graph_protos
from mo_loop.ops.casting import Convert

FACTOR = 4.0
"""How often the largest movement of the other computations may go into a difference: a few of them do not show the
farthest that rounding can move a result."""

UNIT = 2.0**-23
"""The distance of numbers in f32, relative to them."""

LEVELS = ("basic", "extended", "all")
DRAWS = 3
WEIGHTS = 16
"""Constants of fewer elements can decide which branch runs, and how often; they are not changed."""

Alternatives = list[tuple[str, Named]]


def alternatives(model: str, feeds: Mapping[str, Any], f16: bool = False) -> Alternatives:
    """(how, outputs) of each other computation that ONNX Runtime can do. Runs native code: call it in a worker."""
    found: Alternatives = []
    for how, source, given in _ways(model, feeds, f16):
        try:
            runtime = OnnxRuntime(source, how if how in LEVELS else "none", arena=False)
            found.append((how, runtime.run(given)))
        except Exception:  # the errors of ONNX Runtime share no base class; there are other ways
            continue
    return found


def _ways(model: str, feeds: Mapping[str, Any], f16: bool) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    for level in LEVELS:
        yield level, with_copies(model), feeds
    whole = onnx.load(model)
    if f16:
        yield "weights in f16", _edited(whole, lambda array: array.astype(np.float16).astype(array.dtype)), feeds
    for number in range(DRAWS):
        random = np.random.default_rng(number)
        moved = {name: _moved(value, random) for name, value in feeds.items()}
        yield f"moved {number}", _edited(whole, lambda array: _moved(array, random)), moved  # noqa: B023
    yield "f64", in_f64(whole), {name: _as_f64(value) for name, value in feeds.items()}


def _moved(value: Any, random: Any) -> Any:
    """Numbers that are changed by up to one unit in the last place of f32; others as they are."""
    if not isinstance(value, np.ndarray) or value.dtype not in (np.float32, np.float64) or value.size < 2:
        return value
    return (value * (1 + UNIT * random.uniform(-1, 1, value.shape))).astype(value.dtype)


def _as_f64(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_f64(each) for each in value]
    return value.astype(np.float64) if isinstance(value, np.ndarray) and value.dtype == np.float32 else value


def _edited(model: Any, edit: Any) -> Any:
    """A copy of the model whose weights in f32 are changed by a function of their array."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in _tensors(copy):
        if tensor.data_type == TensorProto.FLOAT and np.prod(tensor.dims) >= WEIGHTS:
            tensor.CopyFrom(numpy_helper.from_array(edit(numpy_helper.to_array(tensor)), tensor.name))
    return with_copies(copy)


def in_f64(model: Any) -> Any:
    """A copy of the model that computes in f64 what it computes in f32."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in _tensors(copy):
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for graph in graph_protos(copy):
        for entry in (*getattr(graph, "input", ()), *getattr(graph, "output", ()), *graph.value_info):
            if not isinstance(entry, str):
                _retype(entry.type)
        for node in graph.node:
            for each in node.attribute:
                if each.name in ("to", "dtype") and each.i == TensorProto.FLOAT:
                    each.i = TensorProto.DOUBLE
                if node.op_type == "Constant" and each.name in ("value_float", "value_floats"):
                    array = np.asarray(each.f if each.name == "value_float" else list(each.floats), np.float64)
                    each.CopyFrom(onnx.helper.make_attribute("value", numpy_helper.from_array(array)))
    return with_copies(copy)


def _retype(type_: Any) -> None:
    kind = type_.WhichOneof("value")
    if kind == "tensor_type":
        if type_.tensor_type.elem_type == TensorProto.FLOAT:
            type_.tensor_type.elem_type = TensorProto.DOUBLE
    elif kind in ("sequence_type", "optional_type"):
        _retype(getattr(type_, kind).elem_type)


def _tensors(model: Any) -> Iterator[Any]:
    for graph in graph_protos(model):
        yield from getattr(graph, "initializer", ())
        for node in graph.node:
            yield from (each.t for each in node.attribute if each.type == onnx.AttributeProto.TENSOR)


def has_half_weights(model: Model) -> bool:
    """Whether an IR stores weights in f16 and computes with them in f32."""
    return any("decompression" in node.rt_info for scope in model.graph.scopes() for node in scope.of(Convert))


@dataclass(frozen=True)
class Rounding:
    """How far each output moves: the largest and the root mean square of the movements, and the share of elements of
    an integer output that change."""

    largest: Mapping[str, float]
    mean: Mapping[str, float]
    share: Mapping[str, float]

    @classmethod
    def of(cls, expected: Named, others: Alternatives) -> Rounding:
        """The movements of `others` from the expected values."""
        largest: dict[str, float] = {}
        mean: dict[str, float] = {}
        share: dict[str, float] = {}
        for name, value in expected:
            for _, outputs in others:
                other = dict(outputs).get(name)
                if not isinstance(value, np.ndarray) or not isinstance(other, np.ndarray) or other.shape != value.shape:
                    continue
                far, middle, part = _movement(value, _finite(value, other))
                largest[name], mean[name] = max(far, largest.get(name, 0.0)), max(middle, mean.get(name, 0.0))
                share[name] = max(part, share.get(name, 0.0))
        return cls(largest, mean, share)

    def text(self, name: str, result: Comparison) -> str:
        """What the numbers behind `explains` are."""
        if name in self.share and self.share[name] and not self.largest[name]:
            return f"{result.count} of {result.size} values differ, and up to {self.share[name]:.2%} by rounding alone"
        return (
            f"{result.count} of {result.size} values differ, the largest difference is {result.largest_abs:.3g}; "
            f"rounding alone moves ONNX Runtime's own values by {self.largest[name]:.3g}"
        )

    def explains(self, name: str, expected: Any, actual: Any) -> bool:
        """Whether an output is not farther from the expected values than `FACTOR` movements."""
        if name not in self.largest or np.shape(expected) != np.shape(actual):
            return False
        far, middle, part = _movement(np.asarray(expected), np.asarray(actual))
        if not _is_float(expected):
            return part <= 2 * self.share[name]
        return far <= FACTOR * self.largest[name] and middle <= FACTOR * self.mean[name]


def rounded(side: Side, differing: Sequence[tuple[int, Named]], roundings: Mapping[int, Rounding],
            expected: Sequence[Named]) -> Side:  # fmt: skip
    """The side, with rows of the kind "rounding" where rounding explains all values that differ.

    `differing` are the outputs of the inferences that differ, each with the number of its set.
    """
    rows = []
    for row in side.rows:
        wanted = dict(expected[row.set]).get(row.output)
        outputs = [dict(by_wanted_name(expected[row.set], found)).get(row.output) for number, found in differing
                   if number == row.set]  # fmt: skip
        moved = roundings.get(row.set)
        if row.result.kind == "values" and moved and all(moved.explains(row.output, wanted, each) for each in outputs):
            row = replace(row, result=replace(row.result, kind=ROUNDING, message=moved.text(row.output, row.result)))
        rows.append(row)
    status = PASSED if side.status == DIFFERS and all(row.result for row in rows) else side.status
    return replace(side, rows=tuple(rows), status=status)


def _is_float(value: Any) -> bool:
    return np.asarray(value).dtype.kind == "f"


def _finite(expected: np.ndarray, other: np.ndarray) -> np.ndarray:
    """`other`, with the expected values where one of both is not finite: an overflow explains no other number."""
    if not _is_float(expected):
        return other
    return np.where(np.isfinite(expected) & np.isfinite(other), other, expected)


def _movement(expected: np.ndarray, other: np.ndarray) -> tuple[float, float, float]:
    """The largest difference, its root mean square, and the share of elements that differ.

    Infinite where one of two elements is not finite alone.
    """
    if not expected.size:
        return 0.0, 0.0, 0.0
    if not _is_float(expected):
        return 0.0, 0.0, float(np.mean(np.asarray(expected != other)))
    left, right = expected.astype(np.float64), other.astype(np.float64)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    with np.errstate(invalid="ignore"):
        difference = np.where(same, 0.0, np.abs(left - right))
    difference = np.where(np.isnan(difference), np.inf, difference)
    return float(difference.max()), float(np.sqrt(np.mean(difference**2))), float(np.mean(~same))
