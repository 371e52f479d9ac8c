"""GraphReader: makes a Graph of the records of a model or body.

    graph = GraphReader(net, weights, version=11).graph

Layers become nodes in the order of the file, except that producers come first. A layer without a class here, or whose
class infers other types than the file declares, becomes an `Opaque`, which is written as it was read.
"""

from collections.abc import Mapping
from typing import Any

from mo_loop.conversion_limits import budget
from mo_loop.errors import LimitError, UnsupportedError
from mo_loop.graph import BY_IR_NAME, Graph, Node, TensorType, Value
from mo_loop.ir.reader import layer_types
from mo_loop.ir.reader.bodies import CONTROL, BodyReader, ReadGraph
from mo_loop.ir.reader.layer_records import Edge, Layer, LayerPort, Net, WeightFile, ir_error, shortened
from mo_loop.ops.base import Constant, Op, Parameter, Result
from mo_loop.ops.front import Opaque, OpaqueSink
from mo_loop.support.traversal import producers_first

SINKS = frozenset((layer_types.ASSIGN,))


class GraphReader:
    """Reads one graph, and through `BodyReader` those below it. `types` replace those that Parameters declare."""

    def __init__(
        self, net: Net, weights: WeightFile, version: int, types: Mapping[str, TensorType] | None = None,
        depth: int = 0, ids: dict[Node, str] | None = None,
        variables: dict[str, layer_types.VariableLayers] | None = None,
    ) -> None:
        deepest = budget().limits.nesting
        if depth > deepest:
            raise LimitError(
                f"bodies are nested deeper than the limit 'nesting', which is {deepest}", code="ML312",
                where=shortened(net.path), hint="if you trust the file, give read_model another limit",
            )
        self.weights = weights
        self.version = version
        self.depth = depth
        self.graph = Graph(net.name)
        self.graph.rt_info.update(net.rt_info)
        self.nodes: dict[str, Node] = {}
        """Layer id -> node."""
        self.ids = {} if ids is None else ids
        """Node -> layer id, also of all bodies."""
        self._types = types or {}
        self._variables = layer_types.require_consistent(net) if variables is None else variables
        self._values: dict[tuple[str, str], Value] = {}
        self._symbols = 0
        self._feeds = _feeds(net)
        for layer in _ordered(net, self._feeds):
            self._read(layer)
        places = {layer.id: place for place, layer in enumerate(net.layers)}
        for ends in (self.graph.parameters, self.graph.results):
            in_file = {self.nodes[each]: place for each, place in places.items()}
            ends.sort(key=lambda node: in_file[node])

    def _read(self, layer: Layer) -> None:
        node = self._node(layer, self._inputs(layer))
        self.nodes[layer.id] = node
        self.ids[node] = layer.id
        node.name = layer.name
        if layer.rt_info:
            node.rt_info.update(layer.rt_info)
        sides = ("input", layer.inputs), ("output", layer.outputs)
        if ports := {(side, at): port.rt_info for side, each in sides for at, port in enumerate(each) if port.rt_info}:
            node.__dict__["port_info"] = ports
        for value, port in zip(node.outputs, layer.outputs, strict=True):
            value.names = port.names
            self._values[layer.id, port.label] = value
        if self.version == 10 and not self.depth:
            _name_as_version_10(node)

    def _inputs(self, layer: Layer) -> list[Value]:
        """The values of the input ports, in the order of the file; optional inputs at the end can be absent."""
        feeds = self._feeds[layer.id]
        found = [self._values[feeds[port.label]] if port.label in feeds else None for port in layer.inputs]
        while found and found[-1] is None:
            found.pop()
        present = [value for value in found if value is not None]
        if len(present) < len(found):
            label = layer.inputs[found.index(None)].label
            raise layer.wrong(f"nothing feeds its input {label}, but a later one is fed", "ML252")
        return present

    def _node(self, layer: Layer, inputs: list[Value]) -> Any:
        if layer.type in CONTROL:
            return BodyReader(self.graph, layer, inputs, self._read_body).node
        if layer.bodies:
            raise UnsupportedError(
                shortened(f"{layer.type} of {layer.version} has a body"), code="ML331", where=shortened(layer.where),
                hint="Loop, TensorIterator and If are the operations whose bodies can be read",
            )
        if layer.type == "Parameter" and layer.version == "opset1":
            return self._parameter(layer)
        if layer.type == "Result" and layer.version == "opset1":
            if len(inputs) != 1 or layer.outputs:
                raise layer.wrong(f"it has {len(inputs)} connected inputs and {len(layer.outputs)} outputs")
            return Result(inputs[0], names=layer.output_names)
        if layer.type == "Const" and layer.data.get("element_type") in BY_IR_NAME:
            return self._constant(layer)
        if layer.type == layer_types.ASSIGN and inputs and "variable_id" in layer.data:
            layer_types.require_stored(self._variables[layer.data["variable_id"]], layer, inputs[0])
        return self._known(layer, inputs) or self._opaque(layer, inputs)

    def _read_body(self, net: Net, types: Mapping[str, TensorType]) -> ReadGraph:
        reader = GraphReader(net, self.weights, self.version, types, self.depth + 1, self.ids, self._variables)
        return ReadGraph(reader.graph, reader.nodes)

    # -- kinds of layers

    def _parameter(self, layer: Layer) -> Parameter:
        if len(layer.outputs) != 1:
            raise layer.wrong(f"it has {len(layer.outputs)} outputs, not one")
        type_ = self._types.get(layer.id) or layer_types.declared_type(layer, self._symbol_prefix())
        return Parameter(graph=self.graph, type=type_)

    def _symbol_prefix(self) -> str:
        """Only the model's own inputs have named dimensions: those of a body may differ in each iteration."""
        if self.depth:
            return ""
        self._symbols += 1
        return f"d{self._symbols}_"

    def _constant(self, layer: Layer) -> Constant:
        if len(layer.outputs) != 1:
            raise layer.wrong(f"it has {len(layer.outputs)} outputs, not one")
        return Constant(self.weights.tensor(layer), graph=self.graph)

    def _known(self, layer: Layer, inputs: list[Value]) -> Op | None:
        """The node as its class makes it; None if there is no class, or if it contradicts the file."""
        cls = layer_types.classes().get((layer.type, layer.version))
        if cls is None:
            return None
        try:
            attributes = layer_types.attributes_of(cls, self._data(layer))
        except ValueError:  # the class lacks an attribute of the file, or the file one of the class
            return None
        try:
            node = cls(*inputs, graph=self.graph, name=layer.name, **attributes)
        except LimitError:
            raise
        except Exception:  # inference can fail in any way on an invalid file: the layer is kept as it is
            return None
        if _agrees(node, layer.outputs):
            return node
        self.graph.remove(node)
        return None

    def _data(self, layer: Layer) -> dict[str, str]:
        """The attributes of a layer. Those of an Assign are completed: the file has the type at the ReadValue alone."""
        if layer.type != layer_types.ASSIGN or layer.data.keys() != {"variable_id"}:
            return layer.data
        _, read = self._variables[layer.data["variable_id"]].reads[0]
        return {key: text for key, text in read.data.items() if key in layer_types.TYPED}

    def _opaque(self, layer: Layer, inputs: list[Value]) -> Opaque:
        cls = OpaqueSink if layer.type in SINKS else Opaque
        node = cls(
            *inputs, graph=self.graph, name=layer.name, kind=layer.type, version=layer.version, data=dict(layer.data),
            precisions=[port.precision for port in layer.outputs], shapes=[port.dims for port in layer.outputs],
        )
        if layer.type == "Const":
            node.__dict__["blob"] = self.weights.tensor(layer)
        return node


def _agrees(node: Op, ports: list[LayerPort]) -> bool:
    """Whether the inferred types are at least as precise as those of the file, and do not contradict them.

    A port without dimensions is a scalar or of unknown rank. If the file has more precise shapes than inference gives,
    writing the inferred shapes would lose information.
    """
    if len(node.outputs) != len(ports):
        return False
    for value, port in zip(node.outputs, ports, strict=True):
        if value.dtype.precision != port.precision:
            return False
        if not port.dims:
            continue
        if value.shape is None or len(value.shape) != len(port.dims):
            return False
        if any(there >= 0 and dim != there for dim, there in zip(value.shape, port.dims, strict=True)):
            return False
    return True


def _name_as_version_10(node: Node) -> None:
    """In version 10 the names of layers are those of the model's inputs and outputs."""
    if isinstance(node, Parameter):
        node.output.add_name(node.name)
    elif isinstance(node, Result) and not node.output_names:
        source = node.value.node
        name = source.name if len(source.outputs) == 1 else f"{source.name}.{node.value.index}"
        node.__dict__["output_names"] = (name,)


# -- edges and order


def _feeds(net: Net) -> dict[str, dict[str, tuple[str, str]]]:
    """Layer id -> label of an input -> (layer id, label of the output that feeds it)."""
    layers: dict[str, Layer] = {}
    for layer in net.layers:
        if layer.id in layers:
            raise layer.wrong("another layer has the same id", "ML251")
        layers[layer.id] = layer
    inputs = {layer.id: _labels(layer, layer.inputs) for layer in net.layers}
    outputs = {layer.id: _labels(layer, layer.outputs) for layer in net.layers}
    found: dict[str, dict[str, tuple[str, str]]] = {layer.id: {} for layer in net.layers}
    for edge in net.edges:
        _check(edge, layers, inputs, outputs, net.path)
        ports = found[edge.to_layer]
        if edge.to_port in ports:
            raise layers[edge.to_layer].wrong(f"two edges feed its input {edge.to_port}", "ML252")
        ports[edge.to_port] = (edge.from_layer, edge.from_port)
    return found


def _labels(layer: Layer, ports: list[LayerPort]) -> set[str]:
    labels = {port.label for port in ports}
    if len(labels) < len(ports):
        raise layer.wrong("two of its ports have the same id", "ML251")
    return labels


def _check(
    edge: Edge, layers: dict[str, Layer], inputs: dict[str, set[str]], outputs: dict[str, set[str]], path: str
) -> None:
    for layer, port, labels, what in (
        (edge.from_layer, edge.from_port, outputs, "output"), (edge.to_layer, edge.to_port, inputs, "input"),
    ):
        if layer not in layers:
            raise ir_error(f"{edge}: layer {layer} does not exist", path, "ML252")
        if port not in labels[layer]:
            raise layers[layer].wrong(f"{edge}: it has no {what} {port}", "ML252")


def _ordered(net: Net, feeds: dict[str, dict[str, tuple[str, str]]]) -> list[Layer]:
    """Producers before consumers; among those that could be next, the first in the file."""
    places = {layer.id: place for place, layer in enumerate(net.layers)}
    order = producers_first([[places[source] for source, _ in feeds[layer.id].values()] for layer in net.layers])
    if len(order) < len(net.layers):
        stuck = set(range(len(net.layers))) - set(order)
        raise ir_error(f"the layers depend on each other in a cycle: {_circle(net, feeds, stuck)}", net.path, "ML253")
    return [net.layers[place] for place in order]


def _circle(net: Net, feeds: dict[str, dict[str, tuple[str, str]]], stuck_places: set[int]) -> str:
    """The names along one cycle. Each layer that is still waiting has a producer that is waiting too."""
    stuck = {net.layers[place].id: net.layers[place] for place in sorted(stuck_places)}
    at = next(iter(stuck))
    path: dict[str, None] = {}
    while at not in path:
        path[at] = None
        at = next(source for source, _ in feeds[at].values() if source in stuck)
    circle = [*path][[*path].index(at) :]
    names = [stuck[each].name or each for each in circle]
    return " <- ".join([*names[:8], "..."] if len(names) > 8 else [*names, names[0]])
