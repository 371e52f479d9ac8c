"""The ranks of tensors whose own rank is not known: those that other nodes of the graph force, or that are declared.

    ranks = Ranks(graph, {"x": None, "w": 4})      # the names of inputs and their ranks
    ranks.of("x")                                  # Forced(4, by_declaration=False); None if it is not known

A convolution forces the rank of its weights, a Transpose that of its permutation, a Gemm two dimensions; operators such
as Relu, Concat and Softmax pass it on. A declaration of an inner value or an output is weaker: it may be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

_SAME = frozenset((
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "AveragePool", "BatchNormalization", "BitwiseNot",
    "Cast", "Ceil", "Celu", "Clip", "Conv", "ConvInteger", "ConvTranspose", "Cos", "Cosh", "CumSum", "DepthToSpace",
    "DequantizeLinear", "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu", "GlobalAveragePool", "GlobalLpPool",
    "GlobalMaxPool", "GroupNormalization", "HardSigmoid", "HardSwish", "Hardmax", "Identity", "InstanceNormalization",
    "IsInf", "IsNaN", "LRN", "LayerNormalization", "LeakyRelu", "Log", "LogSoftmax", "LpNormalization", "LpPool",
    "MaxPool", "MeanVarianceNormalization", "Mish", "Neg", "Not", "PRelu", "Pad", "QLinearConv", "QuantizeLinear",
    "Reciprocal", "Relu", "Resize", "ReverseSequence", "Round", "ScatterElements", "ScatterND", "Selu", "Shrink",
    "Sigmoid", "Sign", "Sin", "Sinh", "Slice", "Softmax", "Softplus", "Softsign", "SpaceToDepth", "Sqrt", "Swish",
    "Tan", "Tanh", "ThresholdedRelu", "Tile", "Transpose", "Trilu", "Upsample",
))  # fmt: skip
"""Operators whose first output has the rank of the first input."""

_ALL = {"Concat": slice(None), "GatherElements": slice(2), "ScatterElements": slice(3), "Split": slice(1)}
"""Operators of which several inputs, and all outputs, have one rank."""

_WEIGHTS = {"Conv": 1, "ConvInteger": 1, "ConvTranspose": 1, "QLinearConv": 3}
_FIXED = {
    "DepthToSpace": 4, "SpaceToDepth": 4, "RoiAlign": 4, "MaxRoiPool": 4, "LSTM": 3, "GRU": 3, "RNN": 3,
}  # fmt: skip
"""The rank of the first input."""

_LENGTHS = {"Pad": ("pads", 1, 2), "Tile": ("", 1, 1), "Upsample": ("scales", 1, 1), "Resize": ("", 2, 1)}
"""Operator -> the attribute and the input with an element for each dimension, or with this number of elements."""


_MOST_INPUTS = {"Pad": 3, "Tile": 2, "Upsample": 2, "Resize": 4}
"""Operator -> the number of inputs of the form that says all dimensions."""


class Forced(NamedTuple):
    """A rank, and whether it comes from a declaration only."""

    rank: int
    by_declaration: bool


class Ranks:
    """The ranks of the tensors of one ONNX graph. A contradiction between nodes gives none."""

    def __init__(self, graph: Any, inputs: Mapping[str, int | None]) -> None:
        """`inputs` are the names at which the conversion starts, with their ranks."""
        self._graph = graph
        self._inputs = dict(inputs)
        self._is_read = False
        self._next: dict[str, str] = {}
        self._facts: dict[str, set[int]] = {}
        self._declared: dict[str, set[int]] = {}
        self._arrays: dict[str, list[int]] = {}

    def of(self, name: str) -> Forced | None:
        """The rank of a tensor; None if it is not known, or there is a contradiction."""
        if not self._is_read:  # most graphs are never asked
            self._is_read = True
            self._read_graph()
        group = self._group(name)
        facts, declared = self._facts.get(group), self._declared.get(group)
        found = facts or declared
        if found is None or len(found) > 1:
            return None
        return Forced(next(iter(found)), by_declaration=not facts)

    def _read_graph(self) -> None:
        graph = self._graph
        self._arrays = {each.name: list(each.dims) for each in graph.initializer}
        known = {name: len(dims) for name, dims in self._arrays.items()} | self._inputs
        for name, rank in known.items():
            if rank is not None:
                self._say(name, rank)
        for node in graph.node:
            if node.domain in ("", "ai.onnx"):
                self._read(node)
        for entry in (*graph.value_info, *graph.output):
            if entry.type.HasField("tensor_type") and entry.type.tensor_type.HasField("shape"):
                found = self._declared.setdefault(self._group(entry.name), set())
                found.add(len(entry.type.tensor_type.shape.dim))

    # -- groups of names with one rank

    def _group(self, name: str) -> str:
        while name in self._next:
            name = self._next[name]
        return name

    def _join(self, one: str, other: str) -> None:
        a, b = self._group(one), self._group(other)
        if a != b and one and other:
            self._next[b] = a
            self._facts.setdefault(a, set()).update(self._facts.pop(b, ()))

    def _say(self, name: str, rank: int) -> None:
        if name:
            self._facts.setdefault(self._group(name), set()).add(rank)

    # -- nodes

    def _read(self, node: Any) -> None:
        if not node.input or not node.output:
            self._read_constant(node)
            return
        op, inputs = node.op_type, node.input
        if any(name in self._inputs for name in node.output):
            return  # the conversion starts there: the node is not part of it
        if op in _SAME or (op.startswith("Reduce") and _attribute(node, "keepdims", 1)):
            self._join(inputs[0], node.output[0])
        if op in _ALL:
            for name in (*inputs[_ALL[op]], *node.output):
                self._join(inputs[0], name)
        if op in _WEIGHTS and len(inputs) > _WEIGHTS[op]:
            self._join(inputs[0], inputs[_WEIGHTS[op]])
        for name, rank in _said(node):
            self._say(name, rank)
        if op in _LENGTHS:
            self._read_length(node)

    def _read_constant(self, node: Any) -> None:
        value = next((each.t for each in node.attribute if each.name == "value" and each.HasField("t")), None)
        if node.op_type == "Constant" and value is not None and node.output:
            self._arrays[node.output[0]] = list(value.dims)
            self._say(node.output[0], len(value.dims))

    def _read_length(self, node: Any) -> None:
        name, place, each = _LENGTHS[node.op_type]
        count = len(_attribute(node, name, ()))
        if _attribute(node, "axes", ()) or len(node.input) > _MOST_INPUTS[node.op_type]:
            return  # some dimensions only
        if not count and len(node.input) > place:
            dims = self._arrays.get(node.input[place], [])
            count = dims[0] if len(dims) == 1 else 0
        if count:
            self._say(node.input[0], count // each)


def _said(node: Any) -> Iterator[tuple[str, int]]:
    """Names and the ranks that the operator itself forces."""
    op = node.op_type
    if op in _FIXED:
        yield node.input[0], _FIXED[op]
    if op == "Gemm":
        yield from ((name, 2) for name in (*node.input[:2], node.output[0]))
    if op == "Flatten":
        yield node.output[0], 2
    if op == "Transpose" and _numbers(node, "perm"):
        yield node.input[0], len(_numbers(node, "perm"))
    if op.endswith("Pool") or op in _WEIGHTS:
        kernel = _numbers(node, "kernel_shape")
        if kernel:
            yield node.input[0], len(kernel) + 2


def _numbers(node: Any, name: str) -> Sequence[int]:
    """The numbers of an attribute; none if it is of another kind, which its translator refuses."""
    value = _attribute(node, name, ())
    return value if isinstance(value, list | tuple) else ()


def _attribute(node: Any, name: str, default: Any) -> Any:
    """The value of an attribute; the default also for a reference to an attribute of a function."""
    import onnx

    for each in node.attribute:
        if each.name == name and not each.ref_attr_name:
            return onnx.helper.get_attribute_value(each)
    return default
