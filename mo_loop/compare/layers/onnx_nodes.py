"""Nodes of an ONNX graph as a model of their own, which runs alone.

    node = OnnxNodes(frame, [3])
    node.run(frame)                                 # the values by the name of the tensor
    data, inputs = piece_model(frame, 3, "y")       # all nodes of the piece that makes y, and the values of its inputs

ONNX Runtime runs a node without optimisation, the reference evaluator runs operators without a kernel in ONNX Runtime,
and those with sequences and optionals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from mo_loop.compare.oracle.oracle import INTEGER_OPERATORS, OnnxRuntime, Reference, not_implemented
from mo_loop.frontend.onnx_graphs import OnnxGraph, domain_of, graph_protos
from mo_loop.frontend.registry import FAMILIES
from mo_loop.support.reached import reached

OF_LISTS = frozenset(FAMILIES["sequences"].split())
"""Operators that make or read sequences and optionals."""


class OnnxError(Exception):
    """A node of the ONNX model cannot be run alone."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(f"{path}: {' '.join(text.split())}")
        self.path = path


class OnnxNodes:
    """The nodes of a graph at these places; only a single one can be run. `frame` is an `OnnxFrame`."""

    def __init__(self, frame: Any, places: Sequence[int]) -> None:
        self.plan, self.places = frame.plan, places
        plan, self.nodes = frame.plan, [frame.plan.nodes[place] for place in places]
        self.outputs = [name for node in self.nodes for name in node.output if name]
        read = dict.fromkeys(name for place in places for name in plan.reads[place] if name not in self.outputs)
        # With weights that are constants, ONNX Runtime adds products of 8-bit integers exactly.
        fixed = plan.fixed if INTEGER_OPERATORS.intersection(node.op_type for node in self.nodes) else ()
        inserts = self.nodes[0].op_type == "SequenceInsert"
        self.constants = [
            name for name in read if not inserts and (name in fixed or frame.constant(name) is not None)
        ]
        self.inputs = [name for name in read if name not in set(self.constants)]
        self._runner: Any = None

    def run(self, frame: Any) -> dict[str, Any]:
        """The values of all tensors that the node makes."""
        feeds = {name: frame.get(name) for name in self.inputs}
        try:
            self._runner = self._runner or self._made(frame, feeds)
            return dict(self._runner.run(feeds))
        except Exception as error:  # the errors of ONNX Runtime share no base class
            path = self.plan.graph.path_of(self.nodes[0])
            if isinstance(self._runner, Reference) or not not_implemented(error):
                raise OnnxError(path, str(error)) from error
        try:
            self._runner = Reference(self.model(frame, feeds))
            return dict(self._runner.run(feeds))
        except Exception as error:  # the evaluator raises what its operators raise
            raise OnnxError(path, str(error)) from error

    def _made(self, frame: Any, feeds: Mapping[str, Any]) -> Any:
        operator = self.nodes[0].op_type
        if operator == "SequenceInsert":
            return _Insertion(self.nodes[0])
        lists = any(value is None or isinstance(value, list) for value in feeds.values())
        if operator != "SplitToSequence" and (lists or (operator in OF_LISTS and not domain_of(self.nodes[0]))):
            return Reference(self.model(frame, feeds))
        # The reference evaluator splits differently from ONNX Runtime, without an arena each result has its own memory.
        return OnnxRuntime(self.model(frame, feeds), arena=self.plan.is_repeated and operator != "SplitToSequence")

    def model(self, frame: Any, feeds: Mapping[str, Any]) -> Any:
        """The nodes as a model whose inputs are `feeds`."""
        from onnx import helper

        plan = self.plan
        tensors, nodes = [], list(self.nodes)
        for name in self.constants:
            found = frame.constant(name)
            if found is not None and hasattr(found[1], "op_type"):
                nodes.insert(0, found[1])
            else:
                tensors.append(_tensor_proto(name, frame.get(name) if found is None else found[0].array(name)))
        has_bodies = any(map(plan.is_driven, self.places))  # ONNX Runtime needs the shapes in a Scan
        inputs = [_value_info(name, value, has_bodies) for name, value in feeds.items()]
        outputs = [helper.make_empty_tensor_value_info(name) for name in self.outputs]
        graph = helper.make_graph(nodes, "piece", inputs, outputs, tensors)
        imports = [helper.make_opsetid(*each) for each in sorted({"": 1, **plan.graph.opsets}.items())]
        version = max(plan.model.proto.ir_version, 8)
        model = helper.make_model(graph, opset_imports=imports, ir_version=version)
        domains = {domain_of(node) for each in graph_protos(model) for node in each.node}
        model.functions.extend(each for each in plan.model.functions.values() if each.domain in domains)
        return model


class _Insertion:
    """SequenceInsert, which the reference evaluator does not compute for empty sequences. Spec: SequenceInsert-11."""

    def __init__(self, node: Any) -> None:
        self._node = node

    def run(self, feeds: Mapping[str, Any]) -> list[tuple[str, Any]]:
        items, tensor, *rest = (feeds[name] for name in self._node.input if name)
        place = len(items) if not rest else int(np.asarray(rest[0]).reshape(-1)[0])
        place += len(items) if place < 0 else 0
        return [(self._node.output[0], [*items[:place], tensor, *items[place:]])]


def piece_model(frame: Any, place: int, name: str) -> tuple[bytes, Mapping[str, Any]] | None:
    """The nodes from the tensors that both sides have to a tensor, an output of the node `place` or an input of its
    body, as a model with its inputs; None if a value is no longer in memory, or is a list."""
    if place < 0:
        return None
    plan = frame.plan
    places = reached([place], lambda reader: plan.makers_before(reader, frame.cut))
    with suppress(KeyError):
        piece = OnnxNodes(frame, sorted(places))
        feeds = {each: frame.get(each) for each in piece.inputs}
        if any(value is None or isinstance(value, list) for value in feeds.values()):
            return None
        if name in plan.nodes[place].output:
            piece.outputs = [name]
        return piece.model(frame, feeds).SerializeToString(), feeds
    return None


def evaluated(node: Any, graph: OnnxGraph) -> list[Any]:
    """The outputs of a node without inputs."""
    from onnx import helper

    name = node.output[0]
    made = helper.make_graph([node], "constant", [], [helper.make_empty_tensor_value_info(name)])
    imports = [helper.make_opsetid("", graph.opsets.get("", 1))]
    return [value for _, value in Reference(helper.make_model(made, opset_imports=imports, ir_version=8)).run({})]


def _tensor_proto(name: str, array: Any) -> Any:
    from onnx import numpy_helper

    array = np.asarray(array)
    if array.dtype == object:
        texts = [each if isinstance(each, bytes) else str(each).encode() for each in array.ravel()]
        array = np.array(texts, object).reshape(array.shape)
    return numpy_helper.from_array(array, name)


def _value_info(name: str, value: Any, has_shape: bool) -> Any:
    from onnx import TensorProto, helper

    if value is None or isinstance(value, list):
        return helper.make_empty_tensor_value_info(name)
    dtype = np.asarray(value).dtype
    kind = TensorProto.STRING if dtype.kind in "SUO" else helper.np_dtype_to_tensor_dtype(dtype)
    return helper.make_tensor_value_info(name, kind, np.shape(value) if has_shape else None)
