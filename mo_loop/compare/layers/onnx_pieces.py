"""Nodes of an ONNX graph that run at once: a small model whose outputs are all tensors that they make.

    piece = Piece(plan, frame, range(3, 7))
    piece.run(frame)                                # the values by the name of the tensor
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from mo_loop.compare.oracle.oracle import OnnxRuntime, Reference, not_implemented
from mo_loop.frontend.onnx_graphs import OnnxGraph, body_protos, domain_of
from mo_loop.frontend.registry import FAMILIES

Plan: TypeAlias = Any
Frame: TypeAlias = Any
"""`OnnxPlan` and `OnnxFrame` of onnx_side.py, which runs pieces."""

OF_LISTS = frozenset(FAMILIES["sequences"].split())
"""Operators that make or read sequences and optionals."""

ALONE = ("SequenceInsert", "SplitToSequence")
"""Operators that the reference evaluator computes differently from ONNX Runtime."""


class Piece:
    """Nodes without bodies that run at once."""

    def __init__(self, plan: Plan, frame: Frame, places: Sequence[int]) -> None:
        self.plan = plan
        self.places = places
        nodes = [plan.nodes[place] for place in places]
        self.outputs = [name for node in nodes for name in node.output if name]
        made = set(self.outputs)
        read = dict.fromkeys(name for place in places for name in plan.reads[place] if name not in made)
        inserts = plan.nodes[places[0]].op_type == "SequenceInsert"
        self.constants = [name for name in read if not inserts and frame.constant(name) is not None]
        self.inputs = [name for name in read if name not in set(self.constants)]
        self.parts: list[Piece] | None = None
        self._runner: Any = None

    def run(self, frame: Frame) -> dict[str, Any]:
        """The values of all tensors that the nodes make."""
        if self.parts is not None:
            return self._run_parts(frame)
        feeds = {name: frame.get(name) for name in self.inputs}
        if self._is_split:
            self.parts = [Piece(self.plan, frame, range(place, place + 1)) for place in self.places]
            return self._run_parts(frame)
        try:
            if self._runner is None:
                self._runner = self._made(frame, feeds)
            return dict(self._runner.run(feeds))
        except Exception as error:  # the errors of ONNX Runtime share no base class
            if len(self.places) == 1:
                return self._run_by_reference(frame, feeds, error)
        # One of the nodes has no kernel, or fails: each runs alone, and the one that fails is known.
        self.parts = [Piece(self.plan, frame, range(place, place + 1)) for place in self.places]
        return self._run_parts(frame)

    @property
    def _is_split(self) -> bool:
        """Whether each node runs alone, because one of them does not run in the reference evaluator."""
        return len(self.places) > 1 and any(self.plan.nodes[place].op_type in ALONE for place in self.places)

    def _run_parts(self, frame: Frame) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for part in self.parts or ():
            found |= part.run(type(frame)(frame.plan, {**frame.values, **found}, frame.outer))
        return found

    def _run_by_reference(self, frame: Frame, feeds: dict[str, Any], error: Exception) -> dict[str, Any]:
        if isinstance(self._runner, Reference) or not not_implemented(error):
            node = self.plan.nodes[self.places[0]]
            raise OnnxError(self.plan.graph.path_of(node), " ".join(str(error).split())) from error
        try:
            self._runner = Reference(self.model(frame, feeds))
            return dict(self._runner.run(feeds))
        except Exception as other:  # the evaluator raises what its operators raise
            raise OnnxError(self.plan.graph.path_of(self.plan.nodes[self.places[0]]), str(other)) from other

    def _made(self, frame: Frame, feeds: dict[str, Any]) -> Any:
        nodes = [self.plan.nodes[place] for place in self.places]
        # In a piece of several nodes, those that run alone are split off.
        if nodes[0].op_type == "SequenceInsert":
            return _Insertion(nodes[0])
        if nodes[0].op_type == "SplitToSequence":
            return OnnxRuntime(self.model(frame, feeds), arena=False)
        lists = any(value is None or isinstance(value, list) for value in feeds.values())
        if lists or any(node.op_type in OF_LISTS and not domain_of(node) for node in nodes):
            return Reference(self.model(frame, feeds))
        return OnnxRuntime(self.model(frame, feeds), arena=self.plan.is_repeated)

    def model(self, frame: Frame, feeds: dict[str, Any]) -> Any:
        """The nodes as a model whose inputs are `feeds`."""
        from onnx import helper

        plan = self.plan
        nodes: list[Any] = []
        tensors: list[Any] = []
        for name in self.constants:
            owner, held = frame.constant(name) or (plan, None)
            if hasattr(held, "op_type"):
                nodes.append(held)
            else:
                tensors.append(_tensor_proto(name, owner.array(name)))
        nodes += [plan.nodes[place] for place in self.places]
        has_bodies = any(plan.is_driven(place) for place in self.places)  # ONNX Runtime needs the shapes in a Scan
        inputs = [_value_info(name, value, has_bodies) for name, value in feeds.items()]
        outputs = [helper.make_empty_tensor_value_info(name) for name in self.outputs]
        graph = helper.make_graph(nodes, "piece", inputs, outputs, tensors)
        domains = {domain_of(node) for node in all_nodes(nodes)} | {""}
        imports = [helper.make_opsetid(domain, plan.graph.opsets.get(domain, 1)) for domain in sorted(domains)]
        functions = [each for each in plan.model.functions.values() if each.domain in domains]
        imports += [helper.make_opsetid(each, 1) for each in sorted({f.domain for f in functions} - domains)]
        version = max(plan.model.proto.ir_version, 8)
        return helper.make_model(graph, opset_imports=imports, ir_version=version, functions=functions)


class _Insertion:
    """SequenceInsert, which the reference evaluator does not compute for empty sequences. Spec: SequenceInsert-11."""

    def __init__(self, node: Any) -> None:
        self._node = node

    def run(self, feeds: Mapping[str, Any]) -> list[tuple[str, Any]]:
        items, tensor, *rest = (feeds[name] for name in self._node.input if name)
        place = len(items) if not rest else int(np.asarray(rest[0]).reshape(-1)[0])
        place += len(items) if place < 0 else 0
        return [(self._node.output[0], [*items[:place], tensor, *items[place:]])]


class OnnxError(Exception):
    """A node of the ONNX model cannot be run alone."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(f"{path}: {text}")
        self.path = path


def all_nodes(nodes: Any) -> Iterator[Any]:
    for node in nodes:
        yield node
        for body in body_protos(node):
            yield from all_nodes(body.node)


def evaluated(node: Any, graph: OnnxGraph) -> list[Any]:
    from onnx import helper

    name = node.output[0]
    made = helper.make_graph([node], "constant", [], [helper.make_empty_tensor_value_info(name)])
    imports = [helper.make_opsetid("", graph.opsets.get("", 1))]
    return [value for _, value in Reference(helper.make_model(made, opset_imports=imports, ir_version=8)).run({})]


def _tensor_proto(name: str, array: Any) -> Any:
    from onnx import numpy_helper

    array = np.asarray(array)
    if array.dtype == object:
        array = np.array(
            [each if isinstance(each, bytes) else str(each).encode() for each in array.ravel()], object
        ).reshape(array.shape)
    return numpy_helper.from_array(array, name)


def _value_info(name: str, value: Any, has_shape: bool) -> Any:
    from onnx import TensorProto, helper

    if value is None or isinstance(value, list):
        return helper.make_empty_tensor_value_info(name)
    dtype = np.asarray(value).dtype
    kind = TensorProto.STRING if dtype.kind in "SUO" else helper.np_dtype_to_tensor_dtype(dtype)
    return helper.make_tensor_value_info(name, kind, np.shape(value) if has_shape else None)
