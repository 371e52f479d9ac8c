"""Expected values of an ONNX model: from ONNX Runtime, or from the reference evaluator of the onnx package.

    OnnxRuntime(model).run({"x": x})                # [("out", array)], in the order of the model's outputs
    Reference(model).run({"x": x})                  # the same by the evaluator of the onnx package

A value is an array, a list of arrays for a sequence, or None for an empty optional. The maps of ZipMap are the array
from which it made them.

Sums of products of 8-bit integers saturate in ONNX Runtime on a CPU with AVX2 and without VNNI; the reference evaluator
computes them in integers of 32 bits. ONNX Runtime is exact with weights that are constants: its optimiser makes
unsigned weights of signed ones (session.x64quantprecision), which it does from the level `extended` on.
"""

import copy
import ctypes
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.external_data_helper import uses_external_data

from mo_loop.compare.execution.isolated import essential
from mo_loop.compare.oracle.graph_edits import bodies_in, proto_of
from mo_loop.compare.results.array_comparison import Named, NamedArray
from mo_loop.errors import NotComparableError
from mo_loop.frontend.onnx_graphs import graph_protos
from mo_loop.frontend.registry import qualified
from mo_loop.graph.types import ElementType, from_numpy, from_onnx
from mo_loop.support.packed_arrays import pack, unpack

EXACT_OPERATORS = frozenset({"ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul"})
"""Operators that add products of 8-bit integers, and that the reference evaluator of the onnx package computes."""

RANDOM_OPERATORS = frozenset({
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
})

ONNX_RUNTIME, REFERENCE = "ONNX Runtime", "the reference evaluator of onnx"

INTEGER_OPERATORS = EXACT_OPERATORS | {
    "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "QAttention", "QGemm",
}
"""All operators that add products of 8-bit integers; the reference evaluator has only `EXACT_OPERATORS`."""

NOT_IMPLEMENTED = (
    "Could not find an implementation",
    "NOT_IMPLEMENTED",
    "is not a registered function/op",
    "No Op registered for",
    "of input parameter",
    "InsertedPrecisionFreeCast",  # a Cast before an operator without f16; its form is wrong in old opsets
    "data type is not supported with",
    "Batchwise recurrent operations (layout == 1) are not supported",
    "under development and support for this is limited",
    "Unsupported model IR version",
)
"""Texts in which ONNX Runtime reports that it lacks an operator, an element type of it, or its opset."""

IN_PLACE = {"SparseAttention": {1: 3, 2: 4}}
"""Operators that run only if outputs have the memory of inputs: for each of these output ports, the input port."""

_FOREIGN = ("bfloat16", "float8", "float4", "int4", "int2")
"""Parts of the names that ONNX Runtime has for types that numpy lacks."""

_NOT_IN_PLACE = "past_key->DataRaw() == present_key->DataRaw()"


def with_copies(model: Any) -> Any:
    """The model with an Identity after each input, and each constant, that a body returns as it is, or twice
    (`scan-returns-input`, `loop-returns-number`).

    The model itself if there is none, or if it has data in other files, which only a path can locate.
    """
    proto = proto_of(model)
    bodies = _bodies(proto)
    if not any(map(_returned, bodies)):
        return model
    if any(uses_external_data(each) for graph in (proto.graph, *bodies) for each in graph.initializer):
        return model
    proto = copy.deepcopy(proto)
    for body in _bodies(proto):
        for number, port in _returned(body):
            name = f"{port.name}_{number}_copied"
            body.node.add(op_type="Identity", input=[port.name], output=[name])
            port.name = name
    return proto


def _bodies(proto: Any) -> list[Any]:
    return [body for graph in (proto.graph, *proto.functions) for _, _, body in bodies_in(graph)]


def _returned(body: Any) -> list[tuple[int, Any]]:
    """The outputs of a body that are inputs or constants of it, or outputs before, with their numbers."""
    taken = {port.name for port in (*body.input, *body.initializer)}
    found = []
    for number, port in enumerate(body.output):
        if port.name in taken:
            found.append((number, port))
        taken.add(port.name)
    return found


def not_implemented(error: Exception) -> str:
    """The sentence of an error of ONNX Runtime about a missing implementation; empty for other errors."""
    text = " ".join(str(error).split())
    return essential(text) if any(mark in text for mark in NOT_IMPLEMENTED) else ""


def reference_for(model: Any, reason: str) -> "Reference":
    """The evaluator for a model that ONNX Runtime does not run for this reason; NotComparableError if it cannot."""
    try:
        return Reference(model)
    except NotImplementedError:
        proto = proto_of(model)
        used = {(node.domain, node.op_type) for graph in graph_protos(proto) for node in graph.node}
        others = used - {(each.domain, each.name) for each in proto.functions}
        unknown = sorted(qualified(domain, op) for domain, op in others if not onnx.defs.has(op, domain))
        raise NotComparableError(
            f"neither ONNX Runtime nor onnx computes the model; onnx does not implement {', '.join(unknown)}",
            why=reason,
        ) from None


def operators_of(model: Any) -> Iterator[str]:
    """The operator of every node, bodies and functions included."""
    yield from (node.op_type for graph in graph_protos(proto_of(model)) for node in graph.node)


class OnnxRuntime:
    """ONNX Runtime on the CPU.

    `model` is a path, the bytes of a model, or a ModelProto. `optimise` is one of none, basic, extended, all: the
    unoptimised graph is the better reference, the optimised one is faster. A model with `INTEGER_OPERATORS` is
    optimised at least to the level that makes them exact. `threads` is the number of threads, 0 for one on each
    processor.
    """

    def __init__(
        self, model: Any, optimise: str = "none", threads: int = 1, arena: bool = True, custom_ops: Sequence[str] = ()
    ) -> None:
        """Without `arena`, each result has memory of its own: with it, one keeps the memory of all of an inference.
        `custom_ops` are libraries with custom operators."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.enable_cpu_mem_arena = arena
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.add_session_config_entry("session.x64quantprecision", "1")
        for each in custom_ops:
            options.register_custom_ops_library(os.path.abspath(each))  # else it is searched in the library path
        if optimise in ("none", "basic") and INTEGER_OPERATORS.intersection(operators_of(model)):
            optimise = "extended"
            options.add_session_config_entry("session.disable_quant_qdq", "1")  # pairs around f32 stay in f32
        level = "ORT_DISABLE_ALL" if optimise == "none" else f"ORT_ENABLE_{optimise.upper()}"
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        source = str(model) if isinstance(model, (str, Path)) else model
        source = source.SerializeToString() if isinstance(source, onnx.ModelProto) else source
        self._session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        self._model = model
        self._inputs = {port.name: port.type for port in self._session.get_inputs()}
        self._outputs = {port.name: port.type for port in self._session.get_outputs()}
        has_maps = any(kind.startswith("seq(map(") for kind in self._outputs.values())
        self._labels = labels_of_maps(model) if has_maps else {}

    def run(self, feeds: Mapping[str, Any]) -> Named:
        """One inference. Feeds that are not inputs of the model are ignored."""
        known = {name: feeds[name] for name in self._inputs if name in feeds}
        names, types = list(self._outputs), (*self._inputs.values(), *self._outputs.values())
        if any(mark in kind for kind in types for mark in _FOREIGN):
            return list(zip(names, self._run_bound(names, known), strict=True))
        arrays = {name: np.asarray(value) for name, value in known.items() if hasattr(value, "dtype")}
        texts = {name: array.astype(object) for name, array in arrays.items() if array.dtype.kind in "US"}
        plain = {**known, **arrays, **texts}
        try:
            found = self._session.run(names, plain)
        except Exception as error:  # its errors share no base class
            if _NOT_IN_PLACE not in str(error):
                raise
            found = self._run_bound(names, plain)
        return without_maps(zip(names, found, strict=True), self._labels)

    def _run_bound(self, names: list[str], feeds: Mapping[str, Any]) -> list[Any]:
        """The values of outputs, by bound memory: an element type that numpy lacks is raw memory together with its ONNX
        type, and the caches of `IN_PLACE`, which are inputs and outputs of the model, are copies of the inputs that
        become the outputs."""
        from onnxruntime import OrtValue

        arrays = {name: np.array(value) for name, value in feeds.items()}
        raw = {name: _raw(array) for name, array in arrays.items()}  # a value is a view of its array
        make, binding = OrtValue.ortvalue_from_numpy_with_onnx_type, self._session.io_binding()
        values = {name: make(raw[name], from_numpy(array.dtype).onnx) for name, array in arrays.items()}
        for name, value in values.items():
            binding.bind_ortvalue_input(name, value)
        sources = {
            node.output[to]: node.input[source]
            for node in proto_of(self._model).graph.node for to, source in IN_PLACE.get(node.op_type, {}).items()
            if to < len(node.output)
        }
        for name in names:
            if sources.get(name) in values:
                binding.bind_ortvalue_output(name, values[sources[name]])
            else:
                binding.bind_output(name)
        self._session.run_with_iobinding(binding)
        found = []
        for value in binding.get_outputs():
            kind, size = from_onnx(value.element_type()), int(np.prod(value.shape()))
            if _is_foreign(kind):
                data = ctypes.string_at(value.data_ptr(), kind.size_of(size))
                found.append(unpack(data, size, kind.bits, kind.numpy).reshape(value.shape()))
            else:
                found.append(value.numpy().copy())
        return found


class Reference:
    """The reference evaluator of the onnx package: slow, and complete for the standard operators."""

    def __init__(self, model: Any) -> None:
        from onnx.reference import ReferenceEvaluator

        from mo_loop.compare.oracle.own_operators import Insertion, QLinearConv, QLinearMatMul

        source = str(model) if isinstance(model, (str, Path)) else model
        self._evaluator = ReferenceEvaluator(source, new_ops=[QLinearConv, QLinearMatMul, Insertion])
        self._labels = labels_of_maps(model)

    def run(self, feeds: Mapping[str, Any]) -> Named:
        """One evaluation. Feeds that are not inputs of the model are ignored."""
        known = {name: feeds[name] for name in self._evaluator.input_names if name in feeds}
        names = list(self._evaluator.output_names)
        return without_maps(zip(names, self._evaluator.run(names, known), strict=True), self._labels)


def labels_of_maps(model: Any) -> dict[str, list[Any]]:
    """The output of each ZipMap of the main graph, and the labels of its maps in their order."""
    found = {}
    for node in proto_of(model).graph.node:
        if node.op_type == "ZipMap":
            labels = [each for given in node.attribute for each in onnx.helper.get_attribute_value(given)]
            found[node.output[0]] = [each.decode() if isinstance(each, bytes) else each for each in labels]
    return found


def without_maps(outputs: Iterable[NamedArray], labels: Mapping[str, Sequence[Any]]) -> Named:
    """The outputs, with a tensor [N, labels] in place of a list of maps from labels to numbers."""
    found = []
    for name, value in outputs:
        if name in labels:
            rows = [[each[label] for label in labels[name]] for each in value]
            value = np.array(rows, np.float32).reshape(-1, len(labels[name]))
        found.append((name, value))
    return found


def _is_foreign(kind: ElementType) -> bool:
    """Whether numpy lacks the type."""
    return kind.numpy_name.startswith("ml_dtypes.")


def _raw(array: np.ndarray) -> np.ndarray:
    """The elements as numbers that numpy has, in as many bytes; those that share a byte are in the first bytes."""
    kind = from_numpy(array.dtype)
    whole = np.asarray(array, order="C")  # np.ascontiguousarray turns a scalar into an array of rank 1
    if not _is_foreign(kind):
        return whole
    if kind.bits >= 8:
        return whole.view(np.uint16 if kind.bits == 16 else np.uint8)
    data = np.frombuffer(pack(whole, kind.bits), np.uint8)
    return np.concatenate([data, np.zeros(array.size - len(data), np.uint8)]).reshape(array.shape)
