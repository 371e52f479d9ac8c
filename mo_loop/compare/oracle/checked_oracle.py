"""Oracle: values of ONNX Runtime that can be believed: it agrees with itself, and with the shapes that ONNX infers.

    oracle = Oracle("model.onnx")
    oracle.run(feeds)                                    # UnstableError if a second run gives other values

    with filled(0xAA):                                   # glibc fills memory that is allocated and freed
        again = runtime.run(feeds)
    differing = unstable(found, again)                   # the outputs that depend on the earlier contents
    culprit(model, feeds)                                # "LSTM 'cell': the final cell state ..."

These functions run ONNX Runtime: call them in a worker process.
"""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx

from mo_loop.compare.oracle.graph_edits import may_agree, proto_of, sizes_of, with_all_outputs
from mo_loop.compare.oracle.oracle import (
    ONNX_RUNTIME,
    REFERENCE,
    OnnxRuntime,
    Reference,
    not_implemented,
    reference_for,
    with_copies,
)
from mo_loop.compare.oracle.oracle_errors import RANDOM_OPERATORS, SHAPE, UNSTABLE, error_of
from mo_loop.compare.results.array_comparison import Named, compare

FILLS = (0x55, 0xAA)
"""The bytes with which the memory of the first and of the second run is filled: large and small numbers of each type.
"""

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
        found = _twice(self._evaluator, feeds)
        names = unstable(*found)
        if names:
            who = culprit(with_copies(self._model), feeds) or f"the output {names[0]!r} depends on uninitialised memory"
            raise UnstableError(f"ONNX Runtime does not agree with itself: {who}")
        return found[0]


def values_of_sets(model: Any, sets: Sequence[Mapping[str, Any]]) -> list[Named]:
    """The values of each set."""
    oracle = Oracle(model)
    return [oracle.run(feeds) for feeds in sets]


def _twice(runtime: OnnxRuntime, feeds: Mapping[str, Any]) -> list[Named]:
    """The values of two runs with other contents of the memory."""
    found = []
    for byte in FILLS:
        with filled(byte):
            found.append(runtime.run(feeds))
    return found


@contextmanager
def filled(byte: int) -> Iterator[None]:
    """Memory that is allocated within has this byte everywhere, where the C library can do it (glibc)."""
    try:
        fill = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # another C library
        yield
        return
    fill(_M_PERTURB, byte)
    try:
        yield
    finally:
        fill(_M_PERTURB, 0)


def unstable(first: Named, second: Named) -> list[str]:
    """The outputs that differ between two runs by more than rounding."""
    return [name for (name, left), (_, right) in zip(first, second, strict=True) if not _alike(left, right)]


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
        found = _twice(OnnxRuntime(proto, arena=False), feeds)
        wrong = set(unstable(*found)) if shows == UNSTABLE else misshapen(proto, feeds, found[0])
    except Exception:  # the errors of ONNX Runtime and of onnx share no base class; the name is a help, no result
        return ""
    node = next((each for each in proto.graph.node if wrong.intersection(each.output)), None)
    if node is None:
        return ""
    row = error_of(node.op_type, shows)
    if node.op_type in RANDOM_OPERATORS:
        why = "it draws random numbers"
    elif row is not None:
        why = row.sentence
    else:
        why = "its values depend on uninitialised memory" if shows == UNSTABLE else "its shape is not that of ONNX"
    return f"{node.op_type} {node.name or node.output[0]!r}: {why}"


def misshapen_by(
    model: Any, feeds: Mapping[str, Any], found: Named, other: Mapping[str, Sequence[int]]
) -> str:
    """The cause of outputs whose shape is not that of ONNX, while the shapes in `other` are; empty if there are none.
    """
    inferred = inferred_shapes(model, feeds)
    wrong = sorted(misshapen(model, feeds, found))
    names = [name for name in wrong if may_agree(other.get(name, ()), inferred[name])]
    if not names:
        return ""
    return culprit(model, feeds, SHAPE) or f"ONNX infers another shape of {names[0]!r} than ONNX Runtime gives"


def misshapen(model: Any, feeds: Mapping[str, Any], found: Named) -> set[str]:
    """The outputs whose shape contradicts the shape inference of ONNX from the shapes of the inputs.

    Raises the exceptions of the inference of onnx.
    """
    inferred = inferred_shapes(model, feeds)
    return {
        name for name, value in found
        if isinstance(value, np.ndarray) and name in inferred and not may_agree(value.shape, inferred[name])
    }  # fmt: skip


def inferred_shapes(model: Any, feeds: Mapping[str, Any]) -> dict[str, tuple[int | None, ...]]:
    """The shapes of the values of the main graph, inferred by onnx for inputs of these shapes; None: not known."""
    proto = copy.deepcopy(proto_of(model))
    graph = proto.graph
    for entry in graph.input:
        value = feeds.get(entry.name)
        if isinstance(value, np.ndarray) and entry.type.HasField("tensor_type"):
            entry.type.tensor_type.ClearField("shape")
            for size in value.shape:
                entry.type.tensor_type.shape.dim.add(dim_value=size)
    for entry in graph.output:
        if entry.type.HasField("tensor_type"):  # what the model declares is for other sizes
            entry.type.tensor_type.ClearField("shape")
    del graph.value_info[:]
    for tensor in graph.initializer:
        if np.prod(tensor.dims) > _WEIGHTS:
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
    inferred = onnx.shape_inference.infer_shapes(proto, data_prop=True).graph
    shapes = {each.name: sizes_of(each.type) for each in (*inferred.value_info, *inferred.output)}
    return {name: shape for name, shape in shapes.items() if shape is not None}
