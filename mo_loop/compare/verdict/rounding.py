"""Whether rounding explains a difference: how far results move when a model is computed in other ways that are right.

    moved = Rounding.of(expected, alternatives("model.onnx", feeds))
    moved.explains("y", wanted, found)               # whether it does

The other ways: ONNX Runtime with each level of optimisation, which adds in another order; with inputs and weights that
are changed by one unit in the last place, and what is quantised at run time by one of its largest number; with weights
in f16, if the IR stores them so; and in f64, if ONNX Runtime has all operators in it. A network that is badly
conditioned moves far in all of them; a fault moves it farther.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from mo_loop.api import Model
from mo_loop.compare.oracle.graph_edits import replace_entries
from mo_loop.compare.oracle.oracle import OnnxRuntime, with_copies
from mo_loop.compare.results.array_comparison import ROUNDING, Named, tolerance
from mo_loop.compare.results.output_rows import by_wanted_name
from mo_loop.compare.results.report import DIFFERS, PASSED, Side
from mo_loop.frontend.onnx_graphs import graph_protos
from mo_loop.ops.casting import Convert

FACTOR = 4.0
"""The largest ratio of a difference to the deviation of the other computations: a few of them do not show the largest
possible effect of rounding."""

SPREAD = 2
"""The factor by which more elements may be as far away."""

UNIT = 2.0**-23
"""The distance of numbers in f32, relative to them."""

LEVELS = ("basic", "extended", "all")
DRAWS = 5
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
        edited = _edited(whole, lambda array: _moved(array, random))  # noqa: B023
        yield f"moved {number}", _moved_before_quantisation(edited, number), moved
    yield "f64", in_f64(whole), {name: _as_f64(value) for name, value in feeds.items()}


def _moved(value: Any, random: Any) -> Any:
    """Numbers that are changed by up to one unit in the last place of f32; others as they are."""
    if not isinstance(value, np.ndarray) or value.dtype not in (np.float32, np.float64) or value.size < 2:
        return value
    return (value * (1 + UNIT * random.uniform(-1, 1, value.shape))).astype(value.dtype)


def _moved_before_quantisation(model: Any, number: int) -> Any:
    """The model, in which what is quantised is changed by up to one unit in the last place of its largest number: near
    the middle of two steps, the errors of sums and of activation functions decide which step a number becomes."""
    make = onnx.helper.make_node
    for graph in graph_protos(model):
        nodes = []
        for place, node in enumerate(graph.node):
            if node.op_type in ("QuantizeLinear", "DynamicQuantizeLinear") and not node.domain:
                x, made = node.input[0], [f"{node.output[0]}/{each}" for each in ("abs", "largest", "unit", "by", "x")]
                limits: dict[str, Any] = {"low": -UNIT, "high": UNIT, "seed": float(DRAWS * place + number)}
                nodes += [
                    make("Abs", [x], made[:1]), make("ReduceMax", made[:1], made[1:2], keepdims=0),
                    make("RandomUniformLike", [x], made[2:3], **limits), make("Mul", made[1:3], made[3:4]),
                    make("Add", [x, made[3]], made[4:]),
                ]  # fmt: skip
                node.input[0] = made[4]
            nodes.append(node)
        if len(nodes) > len(graph.node):
            replace_entries(graph.node, nodes)
    return model


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
    """A copy of the model that computes in f64 instead of f32."""
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
    """The deviation of each element of an output, by the name of the output: the largest of all computations, as a
    multiple of its tolerance. `reshaped` are the outputs that have another shape in one of them, with this shape."""

    moved: Mapping[str, np.ndarray]
    reshaped: Mapping[str, list[int]]

    @classmethod
    def of(cls, expected: Named, others: Alternatives) -> Rounding:
        """The movements of `others` from the expected values."""
        moved: dict[str, np.ndarray] = {}
        reshaped: dict[str, list[int]] = {}
        for name, value in expected:
            for _, outputs in others:
                other = dict(outputs).get(name)
                if not isinstance(value, np.ndarray) or not isinstance(other, np.ndarray):
                    continue
                if other.shape != value.shape:
                    reshaped[name] = list(other.shape)
                    continue
                found = _distances(value, other)
                if np.isfinite(found).all():  # one that overflows, or does not where the other does, is not rounding
                    moved[name] = np.maximum(found, moved.get(name, 0.0))
        return cls(moved, reshaped)

    def text(self, name: str, expected: Any, actual: Any) -> str:
        """The meaning of the numbers after `explains`."""
        found, moved = _distances(expected, actual), self.moved[name]
        beyond = f"{np.count_nonzero(found > 1)} of {found.size} values differ"
        if not any(tolerance(expected.dtype)):
            return f"{beyond}, and rounding alone changes {np.count_nonzero(moved)} of ONNX Runtime's own"
        return (
            f"{beyond}, by up to {found.max():.3g} tolerances; rounding alone moves ONNX Runtime's own values by up to "
            f"{moved.max():.3g}"
        )

    def explains(self, name: str, expected: Any, actual: Any) -> bool:
        """Whether at most `SPREAD` times as many elements are far away as rounding moves so far.

        Both are sorted by their size and compared one by one: which elements a rounding changes is chance, for example
        where it decides between two steps of a quantisation.
        """
        if name not in self.moved or np.shape(expected) != np.shape(actual):
            return False
        found, moved = (np.sort(each, axis=None)[::-1] for each in (_distances(expected, actual), self.moved[name]))
        return bool((found <= np.maximum(1.0, FACTOR * moved[np.arange(moved.size) // SPREAD])).all())


def rounded(side: Side, differing: Sequence[tuple[int, Named]], roundings: Mapping[int, Rounding],
            expected: Sequence[Named]) -> tuple[Side, list[str]]:  # fmt: skip
    """The side, with rows of the kind "rounding" where rounding explains all values that differ, and notes about the
    rows that are left out: where rounding changes the shape, neither it nor the values show whether the IR is right.

    `differing` are the outputs of the inferences that differ, each with the number of its set.
    """
    rows, notes = [], []
    for row in side.rows:
        if not row.result and row.set in roundings and row.output in roundings[row.set].reshaped:
            shape = roundings[row.set].reshaped[row.output]
            notes.append(f"{row.output} is not compared: rounding alone changes ONNX Runtime's own shape, to {shape}")
            continue
        wanted = dict(expected[row.set]).get(row.output)
        outputs = [dict(by_wanted_name(expected[row.set], found)).get(row.output) for number, found in differing
                   if number == row.set]  # fmt: skip
        moved = roundings.get(row.set)
        if row.result.kind == "values" and moved and all(moved.explains(row.output, wanted, each) for each in outputs):
            text = moved.text(row.output, wanted, max(outputs, key=lambda each: _distances(wanted, each).max()))
            row = replace(row, result=replace(row.result, kind=ROUNDING, message=text))
        rows.append(row)
    status = PASSED if side.status == DIFFERS and all(row.result for row in rows) else side.status
    return replace(side, rows=tuple(rows), status=status), list(dict.fromkeys(notes))


def _distances(expected: Any, other: Any) -> np.ndarray:
    """The distance of each element as a multiple of its usual tolerance, 2 where integers differ; infinite where one of
    two elements is not finite alone."""
    same = np.asarray(expected == other)
    relative, absolute = tolerance(expected.dtype)
    if not absolute:
        return np.where(same, 0.0, 2.0)
    left, right = expected.astype(np.float64), other.astype(np.float64)
    same |= np.isnan(left) & np.isnan(right)
    with np.errstate(invalid="ignore"):
        found = np.where(same, 0.0, np.abs(left - right) / (absolute + relative * np.abs(left)))
    return np.where(np.isnan(found), np.inf, found)
