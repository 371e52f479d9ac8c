"""Reads Loop-5, TensorIterator-1 and If-8 from records: bodies and port maps.

A port map connects labels of outer ports with ids of layers in the body. An outer port can feed several Parameters;
each becomes a separate input. A body is read under the types that its Parameters receive.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mo_loop.errors import MoLoopError
from mo_loop.graph import Dimension, Graph, Node, TensorType, Value, fresh
from mo_loop.ir.reader.layer_records import Layer, Link, Net, PortMap, SliceRange
from mo_loop.ir.reader.layer_types import declared_type
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.control import If, Loop, TensorIterator
from mo_loop.ops.port_map import Branched, Concatenated, Final, Invariant, Merged, Selected, Sliced

CONTROL = {"Loop": "opset5", "TensorIterator": "opset1", "If": "opset8"}
"""Type -> version."""

_CURRENT_ITERATION = "current_iteration"
_EXECUTION_CONDITION = "execution_condition"


class ReadGraph(NamedTuple):
    """A graph that was read, and its nodes by the ids of their layers."""

    graph: Graph
    nodes: dict[str, Node]


ReadBody = Callable[[Net, Mapping[str, TensorType]], ReadGraph]
"""Reads a body, given the types of Parameters by the ids of their layers."""


class BodyReader:
    """Makes one node with bodies in `graph`; `read_body` reads each of them."""

    def __init__(self, graph: Graph, layer: Layer, inputs: list[Value], read_body: ReadBody) -> None:
        self._graph = graph
        self._read_body = read_body
        self._layer = layer
        self._inputs = inputs
        self._values = {port.label: value for port, value in zip(layer.inputs, inputs, strict=False)}
        if CONTROL[layer.type] != layer.version or layer.data:
            raise self._wrong(f"of {layer.version} with the attributes {sorted(layer.data)} it cannot be read")
        self.node = self._branches() if layer.type == "If" else self._iteration()
        for value, port in zip(self.node.outputs, layer.outputs, strict=True):
            if value.dtype.precision != port.precision:
                raise self._wrong(f"its output {port.label} is declared as {port.precision}, but is {value.type}")

    def _wrong(self, message: str) -> MoLoopError:
        return self._layer.wrong(message, "ML254")

    # -- Loop and TensorIterator

    def _iteration(self) -> Any:
        layer = self._layer
        port_map = self._port_map("port_map")
        states = self._states()
        first = 2 if layer.type == "Loop" else 0
        if len(self._inputs) < first:
            raise self._wrong("its trip count or execution condition is not fed")
        links = self._by_port([link for link in port_map.inputs if link.port is not None])
        values = [self._values[link.port or ""] for link in links]
        types = {link.layer: self._inner_type(link, value, states) for link, value in zip(links, values, strict=True)}
        inner = self._body("body", types)
        entries = [self._entry(link, inner, states) for link in links]
        iteration = self._iteration_number(port_map, inner)
        self._drop_unfed(inner.graph, [iteration, *(entry.parameter for entry in entries)])
        outputs = [self._output(link, inner) for link in self._outputs(port_map)]
        if layer.type == "TensorIterator":
            return self._made(TensorIterator, *values, body=inner.graph, input_map=entries, output_map=outputs)
        return self._made(
            Loop, *self._inputs[:first], *values, body=inner.graph, input_map=entries, output_map=outputs,
            iteration=iteration, condition=self._condition(port_map, inner), starts=self._starts(outputs),
        )

    def _starts(self, outputs: list[Any]) -> bool:
        """Whether only the sizes of the file show that the loop runs: its trip count is unknown.

        RunOnce lets a loop that would not run do so once. If no iteration can follow, each output of all
        iterations has one.
        """
        joined = [(port.dims, each.axis) for port, each in zip(self._layer.outputs, outputs, strict=False)
                  if isinstance(each, Concatenated)]
        return self._inputs[0].type.integers is None and any(dims and dims[axis] > 0 for dims, axis in joined)

    def _states(self) -> dict[str, str]:
        """Id of a Parameter -> id of the Result that is its next value."""
        found: dict[str, str] = {}
        for result, parameter in self._layer.back_edges:
            if parameter in found:
                raise self._wrong(f"two back edges lead to layer {parameter} of its body")
            found[parameter] = result
        return found

    def _inner_type(self, link: Link, value: Value, states: dict[str, str]) -> TensorType:
        """The type of a body Parameter in the first iteration."""
        declared = self._declared(link)
        if link.cut is None and link.layer not in states:
            return value.type
        if declared.shape is None or value.shape is None or len(declared.shape) != len(value.shape):
            return declared if link.cut is None else TensorType(value.dtype, declared.shape)
        if link.cut is not None:
            axis = link.cut.axis % len(value.shape) if value.shape else 0
            shape = (*value.shape[:axis], link.cut.part_size, *value.shape[axis + 1 :])
            return TensorType(value.dtype, shape)
        # A state whose size changes is declared with an unknown size, although its initial size may be known.
        start = zip(value.shape, declared.shape, strict=True)
        return TensorType(declared.dtype, tuple(_first(outer, inner) for outer, inner in start))

    def _declared(self, link: Link) -> TensorType:
        for layer in self._layer.bodies["body"].layers if "body" in self._layer.bodies else ():
            if layer.id == link.layer and layer.type == "Parameter":
                return declared_type(layer)
        raise self._wrong(f"its port map feeds layer {link.layer} of the body, which is not a Parameter")

    def _entry(self, link: Link, inner: ReadGraph, states: dict[str, str]) -> Any:
        parameter = self._end(inner, link.layer, Parameter)
        if link.cut is not None:
            if link.layer in states:
                raise self._wrong(f"layer {link.layer} of its body is both sliced and a state")
            return Sliced(parameter, *_arguments(link.cut))
        if link.layer in states:
            return Merged(parameter, self._end(inner, states[link.layer], Result))
        return Invariant(parameter)

    def _output(self, link: Link, inner: ReadGraph) -> Any:
        result = self._end(inner, link.layer, Result)
        return Final(result) if link.cut is None else Concatenated(result, *_arguments(link.cut))

    def _iteration_number(self, port_map: PortMap, inner: ReadGraph) -> Any:
        found = [link for link in port_map.inputs if link.purpose == _CURRENT_ITERATION]
        if len(found) > 1 or any(link.port is not None for link in found):
            raise self._wrong(f"its port map has {len(found)} entries for {_CURRENT_ITERATION}, or one has a port")
        return self._end(inner, found[0].layer, Parameter) if found else None

    def _condition(self, port_map: PortMap, inner: ReadGraph) -> Any:
        found = [link for link in port_map.outputs if link.purpose == _EXECUTION_CONDITION]
        if len(found) != 1:
            raise self._wrong(f"its port map has {len(found)} entries for {_EXECUTION_CONDITION}, not one")
        return self._end(inner, found[0].layer, Result)

    # -- If

    def _branches(self) -> Any:
        if not self._inputs:
            raise self._wrong("its condition is not fed")
        maps = [self._port_map("then_port_map"), self._port_map("else_port_map")]
        bodies, ties, results = [], [], []
        never = {(0,): "then_body", (1,): "else_body"}.get(self._inputs[0].type.integers)
        for tag, port_map in zip(("then_body", "else_body"), maps, strict=True):
            links = self._by_port([link for link in port_map.inputs if link.port is not None])
            types = {} if tag == never else {link.layer: self._values[link.port or ""].type for link in links}
            inner = self._body(tag, types)  # the inputs of a branch that is never taken have types of their own
            bodies.append(inner.graph)
            ties.append([(link.port, self._end(inner, link.layer, Parameter)) for link in links])
            results.append([self._end(inner, link.layer, Result) for link in self._outputs(port_map)])
            self._drop_unfed(inner.graph, [parameter for _, parameter in ties[-1]])
        values, entries = self._shared(*ties)
        return self._made(
            If, self._inputs[0], *values, then_body=bodies[0], else_body=bodies[1], input_map=entries,
            output_map=[Selected(*pair) for pair in zip(*results, strict=True)],
        )

    def _shared(self, then: list[Any], else_: list[Any]) -> tuple[list[Value], list[Branched]]:
        """One entry for each outer port; several if a branch reads it through several Parameters."""
        values, entries = [], []
        labels = [port.label for port in self._layer.inputs[1 : len(self._inputs)]]
        condition = self._layer.inputs[0].label
        for label in [*labels, condition]:
            a = [parameter for port, parameter in then if port == label]
            b = [parameter for port, parameter in else_ if port == label]
            count = max(len(a), len(b), label != condition)
            values += [self._values[label]] * count
            for number in range(count):
                entries.append(Branched(a[number] if number < len(a) else None, b[number] if number < len(b) else None))
        return values, entries

    # -- common parts

    def _port_map(self, tag: str) -> PortMap:
        if tag not in self._layer.port_maps:
            raise self._wrong(f"it has no <{tag}>")
        return self._layer.port_maps[tag]

    def _body(self, tag: str, types: dict[str, TensorType]) -> ReadGraph:
        if tag not in self._layer.bodies:
            raise self._wrong(f"it has no <{tag}>")
        return self._read_body(self._layer.bodies[tag], types)

    def _by_port(self, links: list[Link]) -> list[Link]:
        """Links that feed a body, in the order of the outer ports."""
        order = {label: place for place, label in enumerate(self._values)}
        seen: set[str] = set()
        for link in links:
            if link.port not in order:
                raise self._wrong(f"its port map names the input {link.port}, which is not fed")
            if link.layer in seen:
                raise self._wrong(f"its port map feeds layer {link.layer} of the body twice")
            seen.add(link.layer)
        return sorted(links, key=lambda link: order[link.port or ""])

    def _outputs(self, port_map: PortMap) -> list[Link]:
        """One link for each outer output, in their order.

        Outputs are found by label. If the map numbers them differently (that of If may start at 0), the order decides.
        """
        links: dict[str, Link] = {}
        for link in port_map.outputs:
            if link.port is None:
                continue
            if link.port in links:
                raise self._wrong(f"its port map gives the output {link.port} twice")
            links[link.port] = link
        labels = [port.label for port in self._layer.outputs]
        if len(links) != len(labels):
            raise self._wrong(f"its port map gives {len(links)} outputs, it has {len(labels)}")
        if links.keys() == set(labels):
            return [links[label] for label in labels]
        return [links[label] for label in sorted(links, key=lambda label: (len(label), label))]

    def _end(self, inner: ReadGraph, id_: str, cls: type[Parameter] | type[Result]) -> Any:
        node = inner.nodes.get(id_)
        if not isinstance(node, cls):
            what = "does not exist" if node is None else f"is not a {cls.__name__}"
            raise self._wrong(f"its port map names layer {id_} of the body, which {what}")
        return node

    def _drop_unfed(self, body: Graph, fed: list[Any]) -> None:
        """A Parameter without an entry in the port map is valid as long as nothing reads it."""
        for parameter in [each for each in body.parameters if each not in fed]:
            if parameter.output.is_used:
                raise self._wrong(f"nothing feeds the Parameter {parameter.name!r} of its body")
            body.remove(parameter)

    def _made(self, cls: Any, *inputs: Value, **attributes: Any) -> Any:
        try:
            return cls(*inputs, graph=self._graph, name=self._layer.name, **attributes)
        except MoLoopError as error:
            raise error.at(error.origin or self._layer.where) from error.__cause__
        except Exception as error:  # inference can fail in any way on an invalid file
            raise self._wrong(f"its bodies cannot be typed: {error!r}") from error


def _first(outer: Dimension, inner: Dimension) -> Dimension:
    if isinstance(inner, int):
        return inner
    return fresh() if isinstance(outer, int) else outer


def _arguments(cut: SliceRange) -> tuple[int, int, int, int, int]:
    return cut.axis, cut.start, cut.end, cut.stride, cut.part_size
