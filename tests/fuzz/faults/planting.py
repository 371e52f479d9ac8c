"""Faults in ONNX models: the IR of the changed model is a wrong IR of the model.

    fault = plant(model, feeds, np.random.default_rng(3))   # None if the model has no place for one
    fault.model, fault.kind, fault.nodes                    # the changed model; the paths that name its place
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from mo_loop.frontend.model import load
from mo_loop.frontend.onnx_graphs import OnnxGraph, label, main_graph

FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)


@dataclass(frozen=True)
class Fault:
    """`nodes` are the path of the changed node, those of the nodes with bodies that hold it, and for a state that of
    the node that made it."""

    model: onnx.ModelProto
    kind: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """An output of a node, in the graph `proto` of a copy of the model, with its type and its shape if it is known."""

    proto: Any
    number: int
    name: str
    path: str
    owners: tuple[str, ...]
    dtype: int
    shape: tuple[int, ...] | None
    more: list[str] = field(default_factory=list)
    """Paths of other nodes whose outputs the change moves first."""

    @property
    def node(self) -> Any:
        return self.proto.node[self.number]


Change = Callable[[Place, np.random.Generator], bool]
"""Changes the graph of a place; False if it cannot."""


def plant(model: onnx.ModelProto, rng: np.random.Generator) -> Fault | None:
    """A fault of a random kind at a random place."""
    kinds = list(CHANGES)
    for kind in rng.permutation(kinds):
        changed = copy.deepcopy(model)
        found = list(_places(changed))
        for number in rng.permutation(len(found))[:20]:
            place = found[number]
            if CHANGES[kind](place, rng):
                return Fault(changed, str(kind), (place.path, *place.owners, *place.more))
    return None


def _places(model: onnx.ModelProto) -> Iterator[Place]:
    typed = onnx.shape_inference.infer_shapes(model, data_prop=True)
    pairs = [(main_graph(load(model)), model.graph, typed.graph, ())]
    while pairs:
        graph, proto, known, owners = pairs.pop(0)
        types = {each.name: each.type.tensor_type for each in (*known.value_info, *known.output)}
        for number, node in enumerate(proto.node):
            path = graph.path_of(node)
            for name in filter(None, node.output):
                kind = types.get(name)
                dims = None if kind is None or not kind.HasField("shape") else kind.shape.dim
                shape = None if dims is None or not all(each.HasField("dim_value") for each in dims) else dims
                yield Place(
                    proto, number, name, path, owners, 0 if kind is None else kind.elem_type,
                    None if shape is None else tuple(each.dim_value for each in shape),
                )
            bodies = {each.name: each.g for each in node.attribute if each.type == onnx.AttributeProto.GRAPH}
            inner = {each.name: each.g for each in known.node[number].attribute if each.name in bodies}
            inside: dict[str, OnnxGraph] = {each.kind: each for each in graph.bodies(node)} if bodies else {}
            pairs += [(inside[key], bodies[key], inner[key], (path, *owners)) for key in bodies if key in inside]


# -- the kinds


def _is_number(place: Place) -> bool:
    return place.dtype in FLOATS and place.node.op_type not in ("Constant", "Loop", "Scan", "If", "DequantizeLinear")


def _behind(place: Place, operator: str, constant: Any) -> bool:
    """Put a node with a constant behind the output; what reads it reads the result."""
    if not _is_number(place):
        return False
    dtype = helper.tensor_dtype_to_np_dtype(place.dtype)
    exact, other = f"{place.name}/exact", f"{place.name}/fault"
    place.node.output[:] = [exact if each == place.name else each for each in place.node.output]
    place.proto.initializer.append(numpy_helper.from_array(np.asarray(constant, dtype), other))
    _insert(place, helper.make_node(operator, [exact, other], [place.name]))
    return True


def _insert(place: Place, node: Any) -> None:
    nodes = list(place.proto.node)
    nodes.insert(place.number + 1, node)
    copies = [copy.deepcopy(each) for each in nodes]
    del place.proto.node[:]
    place.proto.node.extend(copies)


def gain(place: Place, rng: np.random.Generator) -> bool:
    return _behind(place, "Mul", rng.choice([1.01, 0.98, 1.05]))


def offset(place: Place, rng: np.random.Generator) -> bool:
    """A thousandth of the largest number, or more."""
    if not _behind(place, "Add", rng.choice([1e-3, -2e-3, 5e-3])):
        return False
    add = place.proto.node[place.number + 1]
    exact, part = add.input
    names = [f"{place.name}/{each}" for each in ("sizes", "largest", "offset")]
    add.input[1] = names[2]
    for node in (
        helper.make_node("Mul", [names[1], part], names[2:]),
        helper.make_node("ReduceMax", names[:1], names[1:2], keepdims=0),
        helper.make_node("Abs", [exact], names[:1]),
    ):
        _insert(place, node)
    return True


def swapped_axes(place: Place, rng: np.random.Generator) -> bool:
    shape = place.shape
    if not _is_number(place) or shape is None:
        return False
    pairs = [(a, b) for a in range(len(shape)) for b in range(a) if shape[a] == shape[b] > 1]
    if not pairs:
        return False
    a, b = pairs[rng.integers(len(pairs))]
    perm = list(range(len(shape)))
    perm[a], perm[b] = perm[b], perm[a]
    place.node.output[:] = [f"{place.name}/exact" if each == place.name else each for each in place.node.output]
    _insert(place, helper.make_node("Transpose", [f"{place.name}/exact"], [place.name], perm=perm))
    return True


def wrong_index(place: Place, rng: np.random.Generator) -> bool:
    """Every element along an axis is its neighbour."""
    shape = place.shape
    axes = [axis for axis, size in enumerate(shape or ()) if size > 1]
    if not _is_number(place) or not axes:
        return False
    axis = int(rng.choice(axes))
    assert shape is not None
    exact, index = f"{place.name}/exact", f"{place.name}/index"
    place.node.output[:] = [exact if each == place.name else each for each in place.node.output]
    numbers = np.roll(np.arange(shape[axis]), 1).astype(np.int64)
    place.proto.initializer.append(numpy_helper.from_array(numbers, index))
    _insert(place, helper.make_node("Gather", [exact, index], [place.name], axis=axis))
    return True


STEPS = ("Abs", "Add", "Elu", "Erf", "HardSwish", "LeakyRelu", "Mul", "Neg", "Relu", "Sigmoid", "Sin", "Softmax", "Sub",
         "Tanh")


def missing_step(place: Place, rng: np.random.Generator) -> bool:
    node = place.node
    if node.op_type not in STEPS or not _is_number(place) or place.shape is None:
        return False
    del node.input[1:]
    del node.attribute[:]
    node.op_type = "Identity"
    return True


def stale_state(place: Place, rng: np.random.Generator) -> bool:
    """A state keeps the value with which an iteration began."""
    node = place.node
    if node.op_type not in ("Loop", "Scan"):
        return False
    body = next(each.g for each in node.attribute if each.type == onnx.AttributeProto.GRAPH)
    scanned = next((each.i for each in node.attribute if each.name == "num_scan_inputs"), 0)
    first, shift = (2, 1) if node.op_type == "Loop" else (0, 0)
    count = len(node.input) - first - scanned
    if count < 1:
        return False
    state = int(rng.integers(count))
    result, start = body.output[shift + state], body.input[first + state]
    if result.name == start.name or any(each.name == result.name for each in (*body.input, *body.initializer)):
        return False
    makers = [inner for inner in body.node if result.name in inner.output]
    place.more.extend(f"{place.path}/{body.name}/{label(inner)}" for inner in makers)
    for inner in body.node:
        inner.output[:] = [f"{each}/lost" if each == result.name else each for each in inner.output]
        inner.input[:] = [f"{each}/lost" if each == result.name else each for each in inner.input]
    for each in body.output:
        if each.name == result.name and each is not result:
            each.name = f"{result.name}/lost"
    body.node.append(helper.make_node("Identity", [start.name], [result.name]))
    return True


def other_attribute(place: Place, rng: np.random.Generator) -> bool:
    node = place.node
    if node.op_type in ("LeakyRelu", "Elu", "HardSigmoid", "BatchNormalization", "LayerNormalization"):
        name = "epsilon" if "Normalization" in node.op_type else "alpha"
        kept = [each for each in node.attribute if each.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(name, 0.3)])
        return True
    if node.op_type in ("Softmax", "LogSoftmax") and place.shape is not None and len(place.shape) > 1:
        axis = next((each.i for each in node.attribute if each.name == "axis"), -1) % len(place.shape)
        del node.attribute[:]
        node.attribute.append(helper.make_attribute("axis", (axis + 1) % len(place.shape)))
        return True
    return False


CHANGES: dict[str, Change] = {
    "gain": gain, "offset": offset, "swapped axes": swapped_axes, "wrong index": wrong_index,
    "missing step": missing_step, "stale state": stale_state, "other attribute": other_attribute,
}


def name_of(node: Any) -> str:
    """The name of a node in messages."""
    return label(node)
