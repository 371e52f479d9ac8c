"""Damage of an onnx.ModelProto: names, inputs, attributes, types, initializers, opsets, nodes and bodies."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, helper, numpy_helper

from tests.fuzz.damage.amounts import ELEMENT_TYPES, FLOATS, RAW_TEXTS, TEXTS, integer, size


class Damage:
    """The state of one damaging: the model, the random choices, and another model that pieces are taken from."""

    def __init__(self, model: onnx.ModelProto, draw: Random, other: onnx.ModelProto) -> None:
        self.model, self.draw, self.other = model, draw, other
        self.graphs = list(graphs_of(model))
        self.bodies = [graph for graph in self.graphs if graph is not model.graph]

    def graph(self) -> Any:
        """The graph that is damaged; bodies as often as the main graph."""
        return self.draw.choice(self.bodies) if self.bodies and self.draw.random() < 0.5 else self.model.graph

    def nodes(self) -> Any:
        """The list of nodes that is damaged; it has at least one."""
        lists = [each.node for each in (self.graph(), self.model.graph, *self.model.functions) if len(each.node)]
        return self.draw.choice(lists) if lists else None

    def node(self) -> Any:
        """The node that is damaged."""
        nodes = self.nodes()
        return None if nodes is None else self.draw.choice(nodes)

    def name(self, graph: Any) -> str:
        """A name of the graph, an unknown one, or none."""
        names = [*(each.name for each in (*graph.input, *graph.initializer, *graph.output)), ""]
        names += [name for node in graph.node for name in (*node.input, *node.output)]
        return "unknown" if self.draw.random() < 0.03 else self.draw.choice(names)


def graphs_of(model: onnx.ModelProto) -> Iterator[Any]:
    """The main graph and the graphs of all attributes below it, or below the functions."""
    left: list[Any] = [model.graph]
    pending = [node for function in model.functions for node in function.node]
    while left or pending:
        if left:
            graph = left.pop()
            yield graph
            pending += graph.node
        while pending:
            for attribute in pending.pop().attribute:
                left += [attribute.g] if attribute.HasField("g") else []
                left += attribute.graphs


def damage_fields(model: onnx.ModelProto, draw: Random, other: onnx.ModelProto) -> None:
    """One to four damages of fields, in place."""
    state = Damage(model, draw, other)
    for _ in range(draw.choice((1, 1, 1, 2, 2, 3, 4))):
        draw.choices(_DAMAGES, _SHARES)[0](state)


# -- inputs and outputs of nodes


def _inputs(state: Damage) -> None:
    node, draw = state.node(), state.draw
    if node is not None:
        _names(node.input, state.name(state.graph()), draw)


def _outputs(state: Damage) -> None:
    node, draw = state.node(), state.draw
    if node is not None:
        _names(node.output, draw.choice((state.name(state.graph()), "another")), draw)


def _names(names: Any, fresh: str, draw: Random) -> None:
    """Change, remove, add, repeat or exchange one of the names."""
    if not names or draw.random() < 0.15:
        names.append(fresh)
        return
    place, kind = draw.randrange(len(names)), draw.randrange(6)
    if kind == 0:
        names[place] = fresh
    elif kind == 1:
        names[place] = ""
    elif kind == 2:
        del names[place]
    elif kind == 3:
        del names[place:]
    elif kind == 4:
        names.append(names[place])
    else:
        second = draw.randrange(len(names))
        names[place], names[second] = names[second], names[place]


def _operator(state: Damage) -> None:
    node, draw = state.node(), state.draw
    if node is None:
        return
    kind = draw.randrange(4)
    others = [each for graph in graphs_of(state.other) for each in graph.node]
    if kind <= 1 and others:
        taken = draw.choice(others)
        node.op_type, node.domain = taken.op_type, taken.domain
        if not any(each.domain == taken.domain for each in state.model.opset_import):
            state.model.opset_import.append(helper.make_opsetid(taken.domain, draw.choice((1, 18))))
    elif kind == 2:
        node.domain = draw.choice(("", "ai.onnx", "com.microsoft", "ai.onnx.ml", "x", "org.openvinotoolkit"))
    else:
        node.op_type = draw.choice(("", "Loop", "If", "Scan", "Identity", "Reshape", "SequenceMap", "\n"))


# -- attributes


def _attribute(state: Damage) -> None:
    """Give an attribute another value, kind or name; or remove, repeat or add one."""
    node, draw = state.node(), state.draw
    if node is None:
        return
    if not node.attribute or draw.random() < 0.3:
        _add_attribute(node, draw, state)
        return
    place = draw.randrange(len(node.attribute))
    attribute = node.attribute[place]
    kind = draw.randrange(12)
    if kind == 0:
        del node.attribute[place]
    elif kind == 1:
        node.attribute.append(attribute)
    elif kind == 2:
        attribute.name = draw.choice(("", "axis", "unknown", "to", *TEXTS[:3]))
    elif kind == 3:
        attribute.type = draw.choice(range(15)) if draw.random() < 0.5 else 0
    elif kind == 4:
        attribute.ref_attr_name = draw.choice(("a", attribute.name))
    else:
        _value(attribute, draw)


def _add_attribute(node: Any, draw: Random, state: Damage) -> None:
    """An attribute that the operator may have."""
    taken = {each.name for each in node.attribute}
    known = [each for each in _attributes(node.domain, node.op_type) if each[0] not in taken]
    if not known:
        return
    name, kind = draw.choice(known)
    attribute = node.attribute.add(name=name, type=kind)
    if kind == AttributeProto.INTS:
        attribute.ints.extend(draw.choice((0, 1, 1, 2, 3)) for _ in range(draw.choice((0, 1, 2, 2, 4))))
    elif kind == AttributeProto.FLOATS:
        attribute.floats.extend(1.0 for _ in range(draw.choice((0, 1, 2, 4))))
    elif kind == AttributeProto.GRAPH:
        attribute.g.CopyFrom(_copied(draw.choice(state.graphs)))
    elif kind == AttributeProto.TENSOR:
        attribute.t.CopyFrom(numpy_helper.from_array(np.array([1, 2], draw.choice((np.int64, np.float32)))))
    if draw.random() < 0.7:
        _value(attribute, draw)


def _copied(graph: Any) -> Any:
    """A copy of a graph, which may become a body of itself; an empty one if it is large."""
    copy = onnx.GraphProto()
    if graph.ByteSize() < 20_000:
        copy.CopyFrom(graph)
    return copy


@cache
def _attributes(domain: str, op: str) -> Sequence[tuple[str, int]]:
    """Names and kinds of the attributes that any version of an operator has."""
    from mo_loop.frontend import registry
    from mo_loop.frontend.context import Body

    kinds = {int: 2, float: 1, str: 3, Body: 5, tuple[int, ...]: 7, tuple[float, ...]: 6, tuple[str, ...]: 8, Any: 4}
    found: dict[str, int] = {}
    for each in registry.listed(op, "" if domain == "ai.onnx" else domain):
        for name, kind in each.kinds.items():
            found[name] = kinds.get(kind[0], 2)
    return tuple(sorted(found.items()))


def _value(attribute: Any, draw: Random) -> None:
    """Another value of the same kind."""
    kind = attribute.type
    if kind == AttributeProto.INT:
        attribute.i = integer(draw, attribute.i)
    elif kind == AttributeProto.FLOAT:
        attribute.f = draw.choice(FLOATS)
    elif kind == AttributeProto.STRING:
        attribute.s = draw.choice((draw.choice(TEXTS).encode("utf-8", "replace"), draw.choice(RAW_TEXTS)))
    elif kind == AttributeProto.INTS:
        _list(attribute.ints, lambda near: integer(draw, near), draw)
    elif kind == AttributeProto.FLOATS:
        _list(attribute.floats, lambda near: draw.choice(FLOATS), draw)
    elif kind == AttributeProto.STRINGS:
        _list(attribute.strings, lambda near: draw.choice(TEXTS).encode("utf-8", "replace"), draw)
    elif kind == AttributeProto.TENSOR:
        _tensor(attribute.t, draw)
    elif kind == AttributeProto.SPARSE_TENSOR:
        _tensor(draw.choice((attribute.sparse_tensor.values, attribute.sparse_tensor.indices)), draw)
    elif kind == AttributeProto.TYPE_PROTO:
        _type(attribute.tp, draw)
    elif kind == AttributeProto.GRAPH and draw.random() < 0.5:
        attribute.ClearField("g")


def _list(items: Any, made: Callable[[Any], Any], draw: Random) -> None:
    """Change, remove, add, repeat or remove all items of a list."""
    kind = draw.randrange(6) if draw.random() < 0.95 else 6
    if kind == 0:
        del items[:]
    elif kind == 1:
        items.append(made(None))
    elif kind == 2 and items:
        del items[draw.randrange(len(items))]
    elif kind == 3 and items:
        items.extend(items[:8])
    elif kind == 6 and items:
        items.extend([draw.choice(items)] * 5000)
    elif items:
        place = draw.randrange(len(items))
        items[place] = made(items[place])


# -- types and tensors


def _declared(state: Damage) -> None:
    graph, draw = state.graph(), state.draw
    entries = [*graph.input, *graph.input, *graph.output, *graph.value_info]
    if entries:
        entry = draw.choice(entries)
        if draw.random() < 0.1:
            entry.name = state.name(graph)
        else:
            _type(entry.type, draw)


def _type(proto: Any, draw: Random) -> None:
    kind = draw.randrange(10)
    tensor = proto.tensor_type
    if kind == 0:
        tensor.elem_type = draw.choice(ELEMENT_TYPES)
    elif kind == 1:
        tensor.ClearField("shape")
    elif kind == 2:
        tensor.shape.dim.add(dim_value=size(draw))
    elif kind == 3:
        kept = onnx.TypeProto()
        kept.CopyFrom(proto)
        made = onnx.TypeProto()
        draw.choice((made.sequence_type, made.optional_type)).elem_type.CopyFrom(kept)
        proto.CopyFrom(made)
    elif kind == 4:
        proto.Clear()
    elif tensor.shape.dim:
        dims = tensor.shape.dim
        place = draw.randrange(len(dims))
        if kind == 5:
            del dims[place]
        elif kind == 6:
            dims[place].dim_param = draw.choice(("N", "M", "", "?1", *TEXTS[-6:]))
        else:
            dims[place].dim_value = size(draw, dims[place].dim_value)


def _initializer(state: Damage) -> None:
    graph, draw = state.graph(), state.draw
    kind = draw.randrange(8) if draw.random() < 0.95 else 8
    tensors = list(graph.initializer)
    if kind == 8:
        _sparse_initializer(state, graph)
    elif kind == 0 or not tensors:
        _input_to_initializer(graph, draw)
    elif kind == 1:
        tensor = draw.choice(tensors)
        graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, [*tensor.dims]))
        graph.initializer.remove(tensor)
    elif kind == 2:
        graph.initializer.remove(draw.choice(tensors))
    elif kind == 3:
        draw.choice(tensors).name = state.name(graph)
    else:
        _tensor(draw.choice(tensors), draw)


def _sparse_initializer(state: Damage, graph: Any) -> None:
    """A sparse tensor of any type, also below 8 bits and of strings, in place of a tensor or input of the graph."""
    draw = state.draw
    name = draw.choice(["unknown", *(each.name for each in (*graph.initializer, *graph.input))])
    kept = [each for each in graph.initializer if each.name != name]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    values = onnx.TensorProto(name=name, data_type=draw.choice(ELEMENT_TYPES), dims=[1])
    if values.data_type == onnx.TensorProto.STRING:
        values.string_data.append(b"a")
    else:
        values.raw_data = bytes(draw.choice((1, 1, 2, 4, 8)))
    dims = draw.choice(((3,), (0,), (2, 3), (1000,), (2**24,), (2**32,), (2**40, 2), (2**62,)))
    indices = numpy_helper.from_array(np.int64([draw.choice((0, 1, -1))]), "indices")
    graph.sparse_initializer.append(onnx.SparseTensorProto(values=values, indices=indices, dims=dims))


def _input_to_initializer(graph: Any, draw: Random) -> None:
    """An input becomes a constant, so that what depends on it is computed at the conversion."""
    entries = [each for each in graph.input if each.type.HasField("tensor_type")]
    if not entries:
        return
    entry = draw.choice(entries)
    tensor = entry.type.tensor_type
    shape = [dim.dim_value if dim.HasField("dim_value") and 0 <= dim.dim_value < 64 else 2 for dim in tensor.shape.dim]
    if int(np.prod(shape, dtype=object)) > 4096 or tensor.elem_type not in (1, 2, 3, 6, 7, 9, 10, 11):
        return
    array = np.asarray([draw.choice((0, 1, 2, 3, -1)) for _ in range(int(np.prod(shape)))]).reshape(shape)
    array = array.astype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    graph.initializer.append(numpy_helper.from_array(array, entry.name))
    if draw.random() < 0.5:
        graph.input.remove(entry)


def _tensor(proto: Any, draw: Random) -> None:
    kind = draw.randrange(8)
    if kind == 0:
        _list(proto.dims, lambda near: size(draw, near), draw)
    elif kind == 1:
        proto.data_type = draw.choice(ELEMENT_TYPES)
    elif kind == 2 and proto.raw_data:
        proto.raw_data = proto.raw_data[: draw.randrange(len(proto.raw_data))]
    elif kind == 3:
        proto.data_location = draw.choice((0, 1))
        entry = proto.external_data.add()
        entry.key, entry.value = draw.choice(("location", "offset", "length")), draw.choice(("x", "-1", "../x", "1e9"))
    else:
        _array(proto, draw)


def _array(proto: Any, draw: Random) -> None:
    """Other values, another rank or another type, with data that fit."""
    try:
        array = numpy_helper.to_array(proto)
    except Exception:
        return
    if array.size > 4096:
        return
    kind = draw.randrange(7)
    if kind == 0:
        array = array.reshape(1, *array.shape)
    elif kind == 1:
        array = array.reshape(-1)[: draw.choice((0, 1, 2))]
    elif kind == 2:
        array = array.reshape(-1)[0] if array.size else np.zeros((), array.dtype)
    elif kind == 3:
        array = np.concatenate([array, array]) if array.ndim else array.reshape(1)
    elif kind == 4 and array.dtype.kind in "iuf":
        array = array.astype(draw.choice((np.float32, np.int64, np.int32, np.uint8, np.bool_, np.float16)))
    elif array.dtype.kind in "iuf" and array.size:
        array = array.copy()
        limits = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
        value = draw.choice(FLOATS) if limits is None else min(max(integer(draw), limits.min), limits.max)
        array.reshape(-1)[draw.randrange(array.size)] = value
    proto.CopyFrom(numpy_helper.from_array(np.asarray(array), proto.name))


# -- the model as a whole


def _opset(state: Damage) -> None:
    imports, draw = state.model.opset_import, state.draw
    kind = draw.randrange(6)
    if kind == 0 or not imports:
        imports.append(helper.make_opsetid(draw.choice(("", "ai.onnx", "com.microsoft", "x")), draw.randrange(28)))
    elif kind == 1:
        del imports[draw.randrange(len(imports))]
    elif kind == 2:
        draw.choice(imports).version = integer(draw)
    else:
        draw.choice(imports).version = draw.randrange(1, 28)
    if draw.random() < 0.1:
        state.model.ir_version = draw.choice((0, 1, 2, 3, 4, 10, 99, 2**62))


def _nodes(state: Damage) -> None:
    nodes, draw = state.nodes(), state.draw
    if nodes is None:
        return
    place, kind = draw.randrange(len(nodes)), draw.randrange(6)
    if kind == 0:
        del nodes[place]
    elif kind == 1:
        nodes.append(nodes[place])
    elif kind == 2:
        second = draw.randrange(len(nodes))
        first, other = onnx.NodeProto(), onnx.NodeProto()
        first.CopyFrom(nodes[place])
        other.CopyFrom(nodes[second])
        nodes[place].CopyFrom(other)
        nodes[second].CopyFrom(first)
    elif kind == 3:
        copy = nodes.add()
        copy.CopyFrom(nodes[place])
        for number, name in enumerate(copy.output):
            copy.output[number] = f"{name}_copy"
    elif kind == 4:
        nodes[place].name = draw.choice((*TEXTS, nodes[0].name))
    elif nodes[place].output and nodes[place].input:
        nodes[place].input[0] = nodes[place].output[0]


def _body(state: Damage) -> None:
    """Add, remove or exchange inputs and outputs of a graph; or put another body in its place."""
    graph, draw = state.graph(), state.draw
    kind = draw.randrange(6)
    ports = draw.choice((graph.input, graph.output))
    if kind == 0 and ports:
        del ports[draw.randrange(len(ports))]
    elif kind == 1:
        port = ports.add()
        port.name = state.name(graph)
        if draw.random() < 0.5:
            port.type.tensor_type.elem_type = 1
    elif kind == 2 and ports:
        ports.append(draw.choice(ports))
    elif kind == 3 and ports:
        draw.choice(ports).name = state.name(graph)
    elif kind == 4 and len(state.graphs) > 1 and graph is not state.model.graph:
        graph.CopyFrom(_copied(draw.choice(state.graphs)))
    elif kind == 5 and draw.random() < 0.3:
        graph.Clear()


def _moved(state: Damage) -> None:
    """Nodes and initializers of another model join the graph, and read what it has."""
    draw, graph = state.draw, state.model.graph
    taken = list(state.other.graph.node)
    if not taken or state.other.ByteSize() > 5_000:
        return
    node = graph.node.add()
    node.CopyFrom(draw.choice(taken))
    for number in range(len(node.input)):
        if draw.random() < 0.5:
            node.input[number] = state.name(graph)
    initial = {each.name: each for each in state.other.graph.initializer}
    graph.initializer.extend(initial[name] for name in node.input if name in initial)
    for name in node.output:
        graph.output.append(helper.make_empty_tensor_value_info(name))
    for each in state.other.opset_import:
        if each.domain not in {known.domain for known in state.model.opset_import}:
            state.model.opset_import.append(each)


_WEIGHTED: tuple[tuple[Callable[[Damage], None], int], ...] = (
    (_inputs, 14), (_outputs, 5), (_operator, 5), (_attribute, 26), (_declared, 16), (_initializer, 18), (_opset, 4),
    (_nodes, 5), (_body, 8), (_moved, 4),
)
_DAMAGES = [each for each, _ in _WEIGHTED]
_SHARES = [share for _, share in _WEIGHTED]
