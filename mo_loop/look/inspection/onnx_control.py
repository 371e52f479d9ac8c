"""Inspects Loop, Scan, If and other operators with bodies of an ONNX model: sources of trip counts, states, slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from mo_loop.errors import MoLoopError
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.names_read import NamesRead
from mo_loop.frontend.onnx_graphs import OnnxGraph, domain_of, function_graph, label, main_graph, operator_of
from mo_loop.frontend.tensor_protos import tensor_from
from mo_loop.look.inspection.description import Branch, Control, Port, Sliced, State
from mo_loop.look.inspection.onnx_types import declared, tensor_port

_TRANSPARENT = ("Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape")
"""Operators that return their input, possibly in another shape or type."""

_SMALL = 4
"""The largest number of elements of a constant that is shown with its values."""


class Controls:
    """Inspects the operators with bodies of one model."""

    def __init__(self, model: OnnxModel) -> None:
        self._model = model
        self._captured = NamesRead().captured_by
        self._known: dict[str, _Names] = {}

    def all(self) -> list[Control]:
        """The control flow of the main graph and of all functions, with nested control flow inside."""
        starts = [main_graph(self._model)]
        starts += [function_graph(self._model, each, (each.name,)) for each in self._model.functions.values()]
        return [each for start in starts for each in self._of(start)]

    def _of(self, scope: OnnxGraph) -> list[Control]:
        return [each for node in scope.nodes if node.attribute for each in self._control(scope, node)]

    def _control(self, scope: OnnxGraph, node: Any) -> list[Control]:
        bodies = list(scope.bodies(node))
        if not bodies:
            return []
        control = Control(scope.path_of(node), operator_of(node), scope.path)
        control.branches = [Branch(each.kind, each.path, len(each.nodes), self._of(each)) for each in bodies]
        captured = {name for each in bodies for name in self._captured(each.proto)}
        control.captures = sorted(captured)
        kind = "" if domain_of(node) else node.op_type
        if kind == "Loop":
            self._loop(control, scope, node, bodies[0])
        elif kind == "Scan":
            self._scan(control, scope, node, bodies[0])
        elif kind == "If":
            control.condition = self._source(scope, _at(node.input, 0))
        return [control]

    def _loop(self, control: Control, scope: OnnxGraph, node: Any, body: OnnxGraph) -> None:
        control.trip_count = self._source(scope, _at(node.input, 0))
        control.condition = self._source(scope, _at(node.input, 1))
        control.goes_on = self._goes_on(body)
        initial = list(node.input)[2:]
        for name, each in zip(body.input_names[2:], initial, strict=False):
            control.states.append(State(name, self._port(scope, each, body, name)))
        for name in body.output_names[1 + len(initial) :]:
            control.scan_outputs.append(Sliced(name, 0, False, self._port(body, name)))

    def _goes_on(self, body: OnnxGraph) -> str:
        """The source of the condition that the body returns. The one that the body receives is always true."""
        name = _at(body.output_names, 0)
        names = self._names(body)
        seen: set[str] = set()
        while name in names.makers and names.makers[name].op_type == "Identity" and name not in seen:
            seen.add(name)
            name = _at(names.makers[name].input, 0)
        if name and name == _at(body.input_names, 1):
            return "always"
        source = self._source(body, name)
        return {"constant 1": "always", "constant 0": "never"}.get(source, source)

    def _scan(self, control: Control, scope: OnnxGraph, node: Any, body: OnnxGraph) -> None:
        given = {each.name: each for each in node.attribute}
        old = scope.opsets.get("", 0) == 8
        inputs = list(node.input)[1 if old else 0 :]
        count = min(given["num_scan_inputs"].i if "num_scan_inputs" in given else 0, len(inputs))
        states = max(len(inputs) - count, 0)
        for name, each in zip(body.input_names[:states], inputs[:states], strict=False):
            control.states.append(State(name, self._port(scope, each, body, name)))
        axes = _ints(given, "scan_input_axes", count, 1 if old else 0)
        ways = _ints(given, "directions" if old else "scan_input_directions", count, 0)
        for name, axis, way in zip(inputs[states:], axes, ways, strict=False):
            control.scan_inputs.append(Sliced(name, axis, bool(way), self._port(scope, name)))
        outputs = body.output_names[states:]
        axes = _ints(given, "scan_output_axes", len(outputs), 1 if old else 0)
        ways = _ints(given, "scan_output_directions", len(outputs), 0)
        for name, axis, way in zip(outputs, axes, ways, strict=True):
            control.scan_outputs.append(Sliced(name, axis, bool(way), self._port(body, name)))
        control.trip_count = next((each.length for each in control.scan_inputs), "none")

    # -- names

    def _names(self, scope: OnnxGraph) -> _Names:
        if scope.path not in self._known:
            self._known[scope.path] = _Names(scope)
        return self._known[scope.path]

    def _port(self, scope: OnnxGraph, name: str, body: OnnxGraph | None = None, inner: str = "") -> Port:
        """A value as the outer graph declares it, else as the body declares its input `inner`."""
        at: OnnxGraph | None = scope
        while at is not None:
            if name in self._names(at).ports:
                return self._names(at).ports[name]
            at = at.outer
        if body is not None and inner in self._names(body).ports:
            port = self._names(body).ports[inner]
            return Port(name, port.type, port.shape)
        return Port(name)

    def _source(self, scope: OnnxGraph, name: str) -> str:
        """The source of a trip count or condition, as text."""
        if not name:
            return "none"
        at: OnnxGraph | None = scope
        seen: set[int] = set()
        while at is not None:
            names = self._names(at)
            if name in names.tensors:
                return self._constant(names.tensors[name])
            if name in names.inputs:
                return _role(at, names.inputs[name], name)
            if name in names.makers:
                node = names.makers[name]
                hands_on = node.op_type in _TRANSPARENT and not domain_of(node) and _at(node.input, 0)
                if not hands_on or id(node) in seen:  # a cycle: the model is broken
                    return self._made(node)
                seen.add(id(node))
                name = node.input[0]
                continue
            at = at.outer
        return f"undefined {name}"

    def _made(self, node: Any) -> str:
        if node.op_type != "Constant" or domain_of(node):
            return f"computed ({operator_of(node)})"
        for attribute in node.attribute:
            if attribute.name == "value":
                return self._constant(attribute.t)
            if attribute.name == "value_int":
                return f"constant {attribute.i}"
            if attribute.name == "value_ints" and len(attribute.ints) <= _SMALL:
                return f"constant {', '.join(map(str, attribute.ints))}"
        return "constant"

    def _constant(self, tensor: Any) -> str:
        """The values of a small constant, also from an external file; a larger one cannot be a trip count."""
        if int(np.prod(tensor.dims, dtype=np.float64)) > _SMALL:
            return "constant"
        try:
            values = tensor_from(tensor, self._model.files).array().ravel()
        except MoLoopError:
            return "constant"
        return f"constant {', '.join(str(int(each) if values.dtype.kind in 'biu' else each) for each in values)}"


class _Names:
    """The meaning of the names of one scope."""

    def __init__(self, scope: OnnxGraph) -> None:
        self.makers = {name: node for node in scope.nodes for name in node.output if name}
        self.tensors = {each.name: each for each in scope.initializers}
        self.inputs = {name: place for place, name in enumerate(scope.input_names) if name not in self.tensors}
        self.ports: dict[str, Port] = {}
        if scope.kind != "function":
            for each in (*scope.proto.value_info, *scope.proto.output, *scope.proto.input):
                if each.type.WhichOneof("value") is not None:
                    self.ports[each.name] = declared(each.name, each.type)
        for tensor in scope.initializers:
            self.ports[tensor.name] = tensor_port(tensor)


def _role(scope: OnnxGraph, place: int, name: str) -> str:
    """Which input of its node an input of a body is, by its position."""
    if scope.kind == "model":
        return f"input {name}"
    if scope.kind == "function":
        return f"argument {name}"
    if scope.owner.op_type == "Loop" and place < 2:
        return f"{'iteration number' if place == 0 else 'condition'} of {label(scope.owner)}"
    return f"{name} of {label(scope.owner)}"


def _at(names: Any, place: int) -> str:
    return str(names[place]) if place < len(names) else ""


def _ints(given: dict[str, Any], name: str, count: int, default: int) -> list[int]:
    found = list(given[name].ints) if name in given else []
    return found if len(found) == count else [default] * count
