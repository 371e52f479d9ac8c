"""Oracle: values of ONNX Runtime that can be believed: it agrees with itself, and with the shapes that ONNX infers.

    oracle = Oracle("model.onnx")
    oracle.run(feeds)                                    # UnstableError if a second run gives other values

    found, differing = run_twice(runtime, feeds)         # the outputs that depend on the earlier contents of memory
    culprit(model, feeds)                                # "LSTM 'cell': the final cell state ..."

These functions run ONNX Runtime: call them in a worker process. ORACLE_ERRORS are the known errors of ONNX Runtime, and
how a comparison handles each:

    row("scan-returns-input")
    list(errors_in(nodes))                # the rows that concern a model

`tools/probe_oracle.py` has a model for each that shows it, and compares an installed release with the table.
"""

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from mo_loop.compare.oracle.graph_edits import may_agree, of_unknown_sizes, proto_of, sizes_of, with_all_outputs
from mo_loop.compare.oracle.oracle import (
    EXACT_OPERATORS,
    ONNX_RUNTIME,
    RANDOM_OPERATORS,
    REFERENCE,
    OnnxRuntime,
    Reference,
    not_implemented,
    reference_for,
    with_copies,
)
from mo_loop.compare.results.array_comparison import Named, compare
from mo_loop.target import version

LEFT_OUT = "the set of inputs is left out"
EXACT = "the values are computed with exact integer arithmetic"
COPIED = "ONNX Runtime gets the model with an Identity before the output of the body"
NOTED = "the report says so"

MEASURED = ("1.20.1", "1.23.2", "1.27.0", "1.31.1", "1.32.0")
"""The releases on which the probes have run."""

UNSTABLE, SHAPE = "unstable", "shape"
"""How a set shows an error: its values depend on the contents of the memory; its shapes are not those of ONNX."""

_REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReduceSumSquare", "ArgMax", "ArgMin",
)


@dataclass(frozen=True)
class OracleError:
    """One error of ONNX Runtime: its operators, its condition, and how it is handled.

    `shows` is `UNSTABLE` or `SHAPE` where a set shows it; otherwise `concerns` decides from the attributes of a node
    whether it can have it. `since` and `until` are the first and the last of `MEASURED` that have it, "" if there is
    no bound.
    """

    id: str
    operators: tuple[str, ...]
    sentence: str
    treatment: str
    shows: str = ""
    concerns: Callable[[Any], bool] = lambda node: True
    since: str = ""
    until: str = ""

    def is_in(self, release: str) -> bool:
        """Whether a release of ONNX Runtime, such as "1.32.0", has it."""
        number = tuple(int(part) for part in release.split(".")[:3] if part.isdigit())  # a nightly build has more parts
        return version(self.since or "0") <= number <= version(self.until or "9999")


def _attribute(node: Any, name: str, default: int) -> int:
    return next((each.i for each in node.attribute if each.name == name), default)


def _votes_for_both(node: Any) -> bool:
    """Whether a node has two classes, other than 0 and 1, and leaves for both."""
    numbers = {each.name: each.ints for each in node.attribute if each.ints}
    labels = list(numbers.get("classlabels_int64s", ()))
    return len(labels) == 2 and labels != [0, 1] and {0, 1} <= set(numbers.get("class_ids", ()))


ORACLE_ERRORS = (
    OracleError(
        "cell-state-of-no-steps", ("LSTM",),
        "the final cell state of a sequence without steps is memory that was never written", LEFT_OUT, UNSTABLE,
    ),
    OracleError(
        "product-over-nothing", ("MatMul",),
        "a product that sums over a dimension of 0 misses dimensions that are broadcast", LEFT_OUT, SHAPE,
        until="1.31.1",
    ),
    OracleError(
        "reduction-of-nothing", _REDUCTIONS,
        "an axis of 0 elements that is counted from the end is not reduced, and others are kept or removed wrongly",
        LEFT_OUT, SHAPE, until="1.31.1",
    ),
    OracleError(
        "scan-returns-input", ("Scan",),
        "a body that returns one of its inputs gives memory that was freed or never written", COPIED,
    ),
    OracleError(
        "loop-returns-number", ("Loop",),
        "a body that returns its iteration number gives the last number for every iteration", COPIED,
    ),
    OracleError(
        "saturating-products", tuple(sorted(EXACT_OPERATORS)),
        "sums of two products of u8 and s8 saturate on processors without VNNI, except with weights that are constants",
        EXACT,
    ),
    OracleError(
        "causal-attention-of-one-query", ("Attention",),
        "with is_causal, and a mask or a past, the one query sees the keys after it before opset 25", NOTED,
        concerns=lambda node: _attribute(node, "is_causal", 0) == 1 and any(node.input[3:5]), since="1.23.2",
        until="1.27.0",
    ),
    OracleError(
        "labels-of-two-classes", ("TreeEnsembleClassifier",),
        "an ensemble of two classes whose leaves vote for both returns 0 and 1 in place of the labels", NOTED,
        concerns=_votes_for_both,
    ),
    OracleError(
        "grid-of-one-pixel", ("AffineGrid",),
        "with align_corners an axis of one pixel lies at its beginning, not in its middle", NOTED,
        concerns=lambda node: _attribute(node, "align_corners", 0) == 1,
    ),
)


def row(id: str) -> OracleError:
    """The row of this id."""
    return next(each for each in ORACLE_ERRORS if each.id == id)


def errors_in(nodes: Iterable[Any]) -> Iterator[tuple[OracleError, Any]]:
    """The rows that a node shows by its attributes, each with the node."""
    for node in nodes:
        for each in ORACLE_ERRORS:
            if not each.shows and node.op_type in each.operators and each.concerns(node):
                yield each, node


# -- values of ONNX Runtime

FILLS = (0x55, 0xC5)
"""The bytes with which the memory of the first and of the second run is filled: numbers of each type far from each
other and from 0, because the C library leaves some memory as it is, and that is often 0."""

_M_PERTURB = -6
_WEIGHTS = 1024
"""Constants of more elements do not decide about shapes."""


class UnstableError(Exception):
    """ONNX Runtime gives other values where other memory contents were before."""


class Oracle:
    """ONNX Runtime with all processors, or the reference evaluator where ONNX Runtime has no implementation.

    `facts` are the source of the values, and why it is not ONNX Runtime. Each set runs twice, with other contents of
    the memory that is allocated for it.
    """

    def __init__(self, model: Any, custom_ops: Sequence[str] = ()) -> None:
        """Raises the error of ONNX Runtime for a model that it refuses; NotComparableError for unknown operators."""
        self._evaluator: OnnxRuntime | Reference
        self._model = model
        self.facts = (ONNX_RUNTIME, "")
        try:
            self._evaluator = OnnxRuntime(with_copies(model), threads=0, arena=False, custom_ops=custom_ops)
        except Exception as error:  # its errors share no base class
            text = not_implemented(error)
            if not text:
                raise
            self._evaluator, self.facts = reference_for(model, text), (REFERENCE, text)

    def run(self, feeds: Mapping[str, Any]) -> Named:
        """The values of one set. UnstableError if they depend on the earlier contents of the memory."""
        if not isinstance(self._evaluator, OnnxRuntime):
            return self._evaluator.run(feeds)
        found, names = run_twice(self._evaluator, feeds)
        if names:
            who = culprit(with_copies(self._model), feeds) or f"the output {names[0]!r} depends on uninitialised memory"
            raise UnstableError(f"ONNX Runtime does not agree with itself: {who}")
        return found


def values_of_sets(model: Any, sets: Sequence[Mapping[str, Any]]) -> list[Named]:
    """The values of each set."""
    oracle = Oracle(model)
    return [oracle.run(feeds) for feeds in sets]


def run_twice(runtime: Any, feeds: Mapping[str, Any]) -> tuple[Named, list[str]]:
    """The values of a run, and the outputs that differ by more than rounding in a second one: memory that it allocates
    had other contents, where the C library can fill it (glibc)."""
    found: list[Named] = []
    try:
        for byte in FILLS:
            _fill_memory(byte)
            found.append(runtime.run(feeds))
    finally:
        _fill_memory(0)
    return found[0], [name for (name, left), (_, right) in zip(*found, strict=True) if not _alike(left, right)]


def _fill_memory(byte: int) -> None:
    """Let memory that is allocated from now on have this byte everywhere; 0 ends it."""
    with suppress(OSError, AttributeError, TypeError):  # another C library
        ctypes.CDLL(None).mallopt(_M_PERTURB, byte and byte ^ 0xFF)  # it writes the complement


def _alike(left: Any, right: Any) -> bool:
    if isinstance(left, list) or isinstance(right, list):
        return len(left) == len(right) and all(map(_alike, left, right))
    if left is None or right is None:
        return left is right
    return bool(compare(left, right))


def culprit(model: Any, feeds: Mapping[str, Any], shows: str = UNSTABLE) -> str:
    """The first node of the main graph whose outputs are not reliable: its operator, name, and the known error.

    `model` is a path, bytes, or a ModelProto. Empty if no node can be named, for example because the weights are in
    other files.
    """
    proto = with_all_outputs(proto_of(model))
    try:
        found, unstable = run_twice(OnnxRuntime(proto, arena=False), feeds)
        wrong = set(unstable if shows == UNSTABLE else misshapen(proto, feeds, found))
    except Exception:  # the errors of ONNX Runtime and of onnx share no base class; the name is a help, no result
        return ""
    node = next((each for each in proto.graph.node if wrong.intersection(each.output)), None)
    if node is None:
        return ""
    why = "its values depend on uninitialised memory" if shows == UNSTABLE else "its shape is not that of ONNX"
    known = (each.sentence for each in ORACLE_ERRORS if each.shows == shows and node.op_type in each.operators)
    why = "it draws random numbers" if node.op_type in RANDOM_OPERATORS else next(known, why)
    return f"{node.op_type} {node.name or node.output[0]!r}: {why}"


def misshapen_by(model: Any, feeds: Mapping[str, Any], found: Named, other: Mapping[str, Sequence[int]]) -> str:
    """The cause of outputs whose shape is not that of ONNX, while the shapes in `other` are; empty if there are none.
    """
    inferred = misshapen(model, feeds, found)
    names = [name for name in sorted(inferred) if may_agree(other.get(name, ()), inferred[name])]
    if not names:
        return ""
    return culprit(model, feeds, SHAPE) or f"ONNX infers another shape of {names[0]!r} than ONNX Runtime gives"


def misshapen(model: Any, feeds: Mapping[str, Any], found: Named) -> dict[str, Sequence[int | None]]:
    """The outputs whose shape contradicts that which ONNX infers from the shapes of the inputs, with the inferred one.

    Raises the exceptions of the inference of onnx.
    """
    proto = of_unknown_sizes(proto_of(model))  # what the model declares is for other sizes
    for entry in proto.graph.input:
        value = feeds.get(entry.name)
        if isinstance(value, np.ndarray) and entry.type.HasField("tensor_type"):
            entry.type.CopyFrom(onnx.helper.make_tensor_type_proto(entry.type.tensor_type.elem_type, value.shape))
    for tensor in proto.graph.initializer:
        if np.prod(tensor.dims) > _WEIGHTS:
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
    inferred = onnx.shape_inference.infer_shapes(proto, data_prop=True).graph
    shapes = {each.name: sizes_of(each.type) for each in (*inferred.value_info, *inferred.output)}
    return {
        name: shape for name, value in found
        if isinstance(value, np.ndarray) and not may_agree(value.shape, shape := shapes.get(name)) and shape is not None
    }
