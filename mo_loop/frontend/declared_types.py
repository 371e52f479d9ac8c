"""The types of the tensors of an ONNX model: those that it declares, and those that ONNX shape inference finds.

types_of(model, ["a"])      # {"a": TypeProto of f32[N,3]}

The ranks of tensors whose own rank is not known: those that other nodes of the graph force, or that are declared.

    ranks = Ranks(graph, {"x": None, "w": 4})      # the names of inputs and their ranks
    ranks.of("x")                                  # Forced(4, by_declaration=False); None if it is not known

Translators declare which inputs have the rank of the result (`one_rank`): a convolution forces the rank of its weights,
and Concat and Softmax pass a rank on. A Transpose forces that of its permutation, a Gemm two dimensions. A declaration
of an inner value or an output is weaker: it may be wrong. The weakest one is that of another graph: the body for the
node that runs it, and this node for the body.
"""

import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from mo_loop.conversion_limits import budget
from mo_loop.errors import ConversionWarning, UnsupportedError
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.registry import is_elementwise, ports_of_one_rank
from mo_loop.graph import UNKNOWN, OptionalType, SequenceType, Shape, TensorType, Value, from_onnx
from mo_loop.graph.dimension import Dimension, fresh, high, low, named, now
from mo_loop.origin import Origin


def type_from(proto: Any, *, symbolic: bool) -> Any:
    """A TypeProto as a type. Without `symbolic` the names of dimensions are dropped: in a body, a name can mean
    another size in every iteration."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        tensor = proto.tensor_type
        shape = _shape_from(tensor.shape, symbolic) if tensor.HasField("shape") else None
        return TensorType(from_onnx(tensor.elem_type), shape) if tensor.elem_type else UNKNOWN
    if kind == "sequence_type":
        return SequenceType(type_from(proto.sequence_type.elem_type, symbolic=symbolic))
    if kind == "optional_type":
        return OptionalType(type_from(proto.optional_type.elem_type, symbolic=symbolic))
    if kind is None:
        return UNKNOWN
    raise UnsupportedError(f"values of kind {kind} cannot be expressed", code="ML311")


def _shape_from(proto: Any, symbolic: bool) -> Shape:
    dims: list[Dimension] = []
    for dim in proto.dim:
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            dims.append(dim.dim_value)
        elif symbolic and dim.dim_param and not dim.dim_param.startswith("?"):
            budget().name(dim.dim_param)
            dims.append(named(dim.dim_param))
        else:
            dims.append(fresh())
    return tuple(dims)


def contradictions(
    proto: Any, values: Mapping[str, Value], path: tuple[str, ...], several: Container[Value]
) -> list[ConversionWarning]:
    """The declared types of inner values and outputs that contradict the inferred types. Inference is right, except for
    the values of `several` ranks.

    Edits, and exports with another batch size, leave wrong declarations. The computed numbers do not depend on them.
    """
    found = []
    for entry in (*proto.value_info, *proto.output):
        value = values.get(entry.name)
        if value is None or value in several or not entry.type.HasField("tensor_type"):
            continue
        if not isinstance(value.type, TensorType):
            continue
        if _contradicts(entry.type.tensor_type, value.type):
            declared = type_from(entry.type, symbolic=True)
            where = next((each for each in value.origins if each.scope == path and each.output == entry.name), None)
            where = where or Origin(path, output=entry.name)
            text = f"{where.path} is declared as {declared}, but it is {value.type}"
            found.append(ConversionWarning(text, where=where, code="ML510"))
    return found


def _contradicts(declared: Any, inferred: TensorType) -> bool:
    """Whether no tensor can have both types. Symbols are not compared: a name alone does not give the size."""
    if inferred.dtype is None:
        return False
    if declared.elem_type and declared.elem_type != inferred.dtype.onnx:
        return True
    if not declared.HasField("shape") or inferred.shape is None:
        return False
    dims = declared.shape.dim
    if len(dims) != len(inferred.shape):
        return True
    for dim, found in zip(dims, inferred.shape, strict=True):
        size, found = dim.dim_value, known if (known := now(found)) is not None else found
        if not dim.HasField("dim_value") or size < 0 or size == found:
            continue
        most = high(found)
        if size < low(found) or (most is not None and size > most):
            return True
    return False


def types_of(model: OnnxModel, names: Iterable[str]) -> dict[str, Any]:
    """TypeProtos of those tensors of the main graph that inference can type; initializers have a type already."""
    import onnx

    wanted = set(names)
    graph = model.proto.graph
    found = {
        each.name: onnx.helper.make_tensor_type_proto(each.data_type, each.dims)
        for each in graph.initializer
        if each.name in wanted
    }
    if not wanted - found.keys():
        return found
    inferred = with_inferred_types(model).proto.graph.value_info
    return found | {entry.name: entry.type for entry in inferred if entry.name in wanted}


def with_inferred_types(model: OnnxModel) -> OnnxModel:
    """The model with the types that inference finds among its declarations, also in bodies.

    It is as it was if inference fails: for a broken model, or one above the 2 GB limit of protobuf.
    """
    import onnx

    try:
        with warnings.catch_warnings(action="ignore"):
            return replace(model, proto=onnx.shape_inference.infer_shapes(model.proto))
    except Exception:
        return model


def is_valid(model: OnnxModel) -> bool:
    """Whether onnx finds no error in the model: its shape inference may end the process for others."""
    import onnx

    try:
        onnx.checker.check_model(model.proto)
    except Exception:
        return False
    return True


_FIXED = {"DepthToSpace": 4, "SpaceToDepth": 4, "RoiAlign": 4, "MaxRoiPool": 4, "LSTM": 3, "GRU": 3, "RNN": 3}
"""The rank of the first input."""

_LENGTHS = {"Pad": ("pads", 1, 2, 3), "Tile": ("", 1, 1, 2), "Upsample": ("scales", 1, 1, 2), "Resize": ("", 2, 1, 4)}
"""Operator -> the attribute and the input with an element for each dimension, or with this number of elements; and the
number of inputs of the form that says all dimensions."""


class Forced(NamedTuple):
    """A rank, and whether it comes from a declaration only."""

    rank: int
    by_declaration: bool


class Ranks:
    """The ranks of the tensors of one ONNX graph. A contradiction between nodes gives none."""

    def __init__(
        self, graph: Any, inputs: Mapping[str, int | None], outside: Callable[[], Mapping[str, int]] = dict
    ) -> None:
        """`graph` is a GraphProto or a FunctionProto, `inputs` are the names at which the conversion starts, with their
        ranks. `outside` returns the ranks that the enclosing graph declares for names of this one."""
        self._graph = graph
        self._inputs = dict(inputs)
        self._outside = outside
        self._is_read = False
        self._next: dict[str, str] = {}
        self._facts: dict[str, set[int]] = {}
        self._declared: dict[str, set[int]] = {}
        self._declared_here: dict[str, set[int]] = {}  # by the name alone
        self._declared_elsewhere: dict[str, set[int]] = {}
        self._arrays: dict[str, list[int]] = {}

    def of(self, name: str) -> Forced | None:
        """The rank of a tensor; None if it is not known, or there is a contradiction."""
        if not self._is_read:  # most graphs are never asked
            self._is_read = True
            self._read_graph()
        group = self._group(name)
        facts = self._facts.get(group)
        found = facts or self._declared.get(group) or self._declared_elsewhere.get(group)
        if found and len(found) > 1 and not facts:
            found = self._declared_here.get(name)
        return None if found is None or len(found) > 1 else Forced(next(iter(found)), by_declaration=not facts)

    def are_equal(self, one: str, other: str) -> bool:
        """Whether nodes pass the rank of one tensor to the other."""
        return self._group(one) == self._group(other)

    def inside(self, node: Any) -> dict[str, int]:
        """The ranks that this graph gives to the inputs and outputs of the bodies of a node."""
        ranks = ((entry.name, added, self.of(name)) for name, entry, added in _ports(node))
        return {name: found.rank - added for name, added, found in ranks if found is not None}

    def _read_graph(self) -> None:
        graph = self._graph
        self._arrays = {each.name: list(each.dims) for each in getattr(graph, "initializer", ())}
        known = {name: len(dims) for name, dims in self._arrays.items()} | self._inputs
        for name, rank in known.items():
            if rank is not None:
                self._say(name, rank)
        for node in graph.node:
            if node.domain in ("", "ai.onnx"):
                self._read(node)
        for entry in (*getattr(graph, "value_info", ()), *graph.output):
            rank = _declared_rank(entry)
            if rank is not None:
                self._declared_here[entry.name] = {rank}
                self._declare(self._declared, entry.name, rank)
        for node in graph.node:
            for name, entry, added in _ports(node):
                rank = _declared_rank(entry)
                self._declare(self._declared_elsewhere, name, None if rank is None else rank + added)
        for name, rank in self._outside().items():
            self._declare(self._declared_elsewhere, name, rank)
        for node in reversed(graph.node):
            for name, result, least in self._likely(node):
                found = self.of(result)
                if found is not None and found.rank >= least:
                    self._declare(self._declared_elsewhere, name, found.rank)

    def _likely(self, node: Any) -> Iterator[tuple[str, str, int]]:
        """Inputs and outputs of a node that mostly have one rank, if it is at least a number."""
        if node.op_type == "Loop":  # a state starts with the rank that it has at the end
            yield from ((name, result, 0) for name, result in zip(node.input[2:], node.output, strict=False))
        tensors = [name for name in node.input if name and name not in self._arrays]
        if len(tensors) == 1 and node.output and not node.domain:
            most = max((len(self._arrays[name]) for name in node.input if name and name != tensors[0]), default=0)
            if is_elementwise(node.op_type):  # a constant of a lower rank is broadcast
                yield tensors[0], node.output[0], most + 1
            if node.op_type == "MatMul" and most == 2:
                yield tensors[0], node.output[0], 2

    def _declare(self, found: dict[str, set[int]], name: str, rank: int | None) -> None:
        if name and rank is not None:
            found.setdefault(self._group(name), set()).add(rank)

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
        ports = ports_of_one_rank(op)
        if ports or (op.startswith("Reduce") and _attribute(node, "keepdims", 1)):
            for name in (*(inputs[port] for port in ports if port < len(inputs)), node.output[0]):
                self._join(inputs[0], name)
        elif op in ("Concat", "Split"):
            for name in (*(inputs if op == "Concat" else ()), *node.output):
                self._join(inputs[0], name)
        elif is_elementwise(op):
            tensors = [name for name in inputs if self._arrays.get(name) != []]
            if len(tensors) == 1:
                self._join(tensors[0], node.output[0])
        for name, rank in _said(node):
            self._say(name, rank)
        if op in _LENGTHS:
            self._read_length(node)

    def _read_constant(self, node: Any) -> None:
        for each in node.attribute if node.op_type == "Constant" and node.output else ():
            is_number = each.name in ("value_float", "value_int")
            if is_number or (each.name == "value" and each.HasField("t")):
                self._arrays[node.output[0]] = dims = [] if is_number else list(each.t.dims)
                self._say(node.output[0], len(dims))

    def _read_length(self, node: Any) -> None:
        name, place, each, most = _LENGTHS[node.op_type]
        count = len(_attribute(node, name, ()))
        if _attribute(node, "axes", ()) or len(node.input) > most:
            return  # some dimensions only
        if not count and len(node.input) > place:
            dims = self._arrays.get(node.input[place], [])
            count = dims[0] if len(dims) == 1 else 0
        if count:
            self._say(node.input[0], count // each)


def _declared_rank(entry: Any) -> int | None:
    """The rank that a ValueInfoProto declares; None for a name alone, as a function has it."""
    if isinstance(entry, str) or not entry.type.HasField("tensor_type"):
        return None
    tensor = entry.type.tensor_type
    return len(tensor.shape.dim) if tensor.HasField("shape") else None


def _ports(node: Any) -> Iterator[tuple[str, Any, int]]:
    """The names outside and the entries inside of the tensors that enter and leave the bodies of a node, and how many
    more dimensions the outer tensor has."""
    if node.op_type not in ("If", "Loop", "Scan") or node.domain not in ("", "ai.onnx"):
        return
    for body in (each.g for each in node.attribute if each.HasField("g")):
        inputs, outputs = list(node.input), body.output
        states = len(body.input) - 2
        if node.op_type == "If":
            inputs, states = [], len(outputs)
        elif node.op_type == "Loop":
            inputs, outputs = inputs[2:], outputs[1:]
        else:
            states = len(body.input) - _attribute(node, "num_scan_inputs", 0)
            if len(inputs) != len(body.input):
                return  # Scan-8, over a batch
        entries = body.input[2:] if node.op_type == "Loop" else body.input
        for names, ports in ((inputs, entries), (node.output, outputs)):
            for place, (name, entry) in enumerate(zip(names, ports, strict=False)):
                yield name, entry, int(place >= states)


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
    if op.endswith("Pool") or "Conv" in op:
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
