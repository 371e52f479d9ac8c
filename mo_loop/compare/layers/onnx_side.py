"""The ONNX side of a comparison: the graphs of a model, which are run node by node from Python.

    plan = OnnxPlan(main_graph(model), model)
    frame = OnnxFrame(plan, {"x": x})
    end = frame.compute(0, 1 << 30)                 # runs nodes 0 to end - 1; their outputs are in frame.values

Each node is a small model of its own. ONNX Runtime runs it without optimisation, the reference evaluator runs operators
without a kernel in ONNX Runtime, and those with sequences and optionals. Nodes with bodies and calls of functions are
driven by the caller, which runs frames of their bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

from mo_loop.compare.layers.ir_side import IrFrame
from mo_loop.compare.oracle.oracle import INTEGER_OPERATORS, OnnxRuntime, Reference, not_implemented, with_copies
from mo_loop.frontend.calls import bound_attributes, resolved, without_absent
from mo_loop.frontend.external_files import dense_from_sparse, tensor_from
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.node_order import NamesRead, listed_order, needed
from mo_loop.frontend.onnx_graphs import OnnxGraph, called, domain_of, function_graph, graph_protos
from mo_loop.frontend.registry import FAMILIES
from mo_loop.graph import Value
from mo_loop.origin import Origin
from mo_loop.support.traversal import reached

_NUMBERS = count()

DRIVEN = ("Loop", "Scan", "If", "SequenceMap")

FIRST = 64
"""The most nodes that run first."""

OF_LISTS = frozenset(FAMILIES["sequences"].split())
"""Operators that make or read sequences and optionals."""

Iterations = tuple[tuple[str, int], ...]
"""The path and the iteration of each enclosing loop."""


class OnnxPlan:
    """One graph of the model: its nodes in the order in which they run, and their compiled models."""

    def __init__(self, graph: OnnxGraph, model: OnnxModel, given: frozenset[str] = frozenset()) -> None:
        """`given` are tensors that have values from outside: nodes that make them are not run."""
        self.graph = graph
        self.model = model
        self.is_repeated = graph.kind != "model"
        names = NamesRead()
        nodes = list(graph.nodes)
        reads = [names.of_node(node) for node in nodes]
        used = set(needed([node.output for node in nodes], graph.output_names, given, reads))
        kept = [place for place in listed_order(nodes, reads, graph.scope) if place in used]
        self.nodes = [nodes[place] for place in kept]
        self.reads = [reads[place] for place in kept]
        self.last_use = {name: place for place, read in enumerate(self.reads) for name in read}
        self.ends: dict[int, int] = {}
        """The place after the nodes that were run from each place on, in the first run of the graph."""
        self.compiled: dict[int, OnnxNodes] = {}
        self._bodies: dict[int, dict[str, OnnxPlan]] = {}
        self._given = given

    @property
    def scope(self) -> tuple[str, ...]:
        return self.graph.scope

    def origin(self, place: int) -> Origin:
        return self.graph.origin_of(self.nodes[place])

    @cached_property
    def makers(self) -> dict[str, int]:
        """The place of the node that makes each tensor."""
        found = {name: place for place, node in enumerate(self.nodes) for name in node.output if name}
        return {name: place for name, place in found.items() if name not in self._given}

    def makers_before(self, place: int, known: Collection[str]) -> list[int]:
        """The places of the nodes that make what a node reads, apart from constants and `known` tensors."""
        names = [each for each in self.reads[place] if each not in known and each not in self.constants]
        return [self.makers[each] for each in names if each in self.makers]

    @cached_property
    def constants(self) -> dict[str, Any]:
        """Initializers and Constant nodes by the name of their tensor: the message that holds each."""
        found: dict[str, Any] = {}
        if self.graph.kind != "function":
            found = {each.name: each for each in self.graph.initializers}
            found |= {each.values.name: each for each in self.graph.proto.sparse_initializer}
        for node in self.nodes:
            if node.op_type == "Constant" and not domain_of(node):
                found[node.output[0]] = node
        return {name: each for name, each in found.items() if name not in self._given}

    @cached_property
    def fixed(self) -> set[str]:
        """The tensors that depend on constants alone."""
        found = set(self.constants)
        for node, read in zip(self.nodes, self.reads, strict=True):
            if read and found.issuperset(read):
                found.update(name for name in node.output if name not in self._given)
        return found

    def is_driven(self, place: int) -> bool:
        """Whether the node has bodies that are run step by step; a Scan of opset 8, over a batch, runs as a whole."""
        node = self.nodes[place]
        is_batched = node.op_type == "Scan" and self.graph.opsets.get("", 1) < 9
        return node.op_type in DRIVEN and not domain_of(node) and not is_batched

    def function(self, place: int) -> Any:
        """The function of the model that a node calls; None for an operator."""
        return called(self.model, self.nodes[place])

    def bodies(self, place: int) -> dict[str, OnnxPlan]:
        """The plans of the bodies of a node by the attributes that hold them; that of a function which it calls, with
        the attributes of the call, by "function"."""
        if place not in self._bodies:
            node, function = self.nodes[place], self.function(place)
            graphs = self.graph.bodies(node)
            if function is not None:
                attributes = bound_attributes(function, node, None)
                given = {name for name, outer in zip(function.input, node.input, strict=False) if outer}
                nodes = [resolved(each, attributes) for each in without_absent(function, set(function.input) - given)]
                copy = type(function)()
                copy.CopyFrom(function)
                del copy.node[:]
                copy.node.extend(nodes)
                graphs = iter([function_graph(self.model, copy, self.origin(place).inner_scope)])
            self._bodies[place] = {each.kind: OnnxPlan(each, self.model) for each in graphs}
        return self._bodies[place]

    def array(self, name: str) -> Any:
        """The values of an initializer or Constant node."""
        held = self.constants[name]
        if hasattr(held, "op_type"):
            return OnnxFrame(self, {}).run(self.makers[name])[name]
        if hasattr(held, "indices"):
            return dense_from_sparse(held, self.model.files).array()
        return tensor_from(held, self.model.files).array()


class OnnxFrame:
    """One run of a graph: the values of its tensors by name, and the frame of the IR that has counterparts of them."""

    def __init__(
        self, plan: OnnxPlan, values: Mapping[str, Any], outer: OnnxFrame | None = None, *,
        at: Iterations | None = None, ir: IrFrame | None = None,
    ) -> None:
        """`at` are the iterations around it, by default those around `outer`; `ir` is None if the IR has no graph for
        it."""
        self.number = next(_NUMBERS)
        self.plan = plan
        self.values = dict(values)
        self.outer = outer
        self.at: Iterations = at if at is not None else outer.at if outer is not None else ()
        self.ir = ir
        self.recorded: Any = None if outer is None else outer.recorded
        """The iteration for which a page records comparisons."""
        self.agreed: set[str] = set()
        """The tensors that were compared and agree."""
        self.cut: set[str] = set()
        """The tensors whose values both sides have: the next pieces begin there."""
        self.sources: dict[str, tuple[OnnxFrame, str]] = {}
        """The tensors of other frames that inputs of a body are."""
        self.again: dict[str, Callable[[Any], Any]] = {}
        """The computations of tensors from changed inputs, with a source of random numbers, where nodes do not do."""

    def holder(self, name: str) -> OnnxFrame | None:
        """The frame of this graph or of one around it that has a tensor."""
        frame: OnnxFrame | None = self
        while frame is not None and name not in frame.values and name not in frame.plan.constants:
            frame = frame.outer
        return frame

    def get(self, name: str) -> Any:
        """The value of a tensor of this graph or of one around it. KeyError if it has none."""
        frame = self.holder(name)
        if frame is None:
            raise KeyError(name)
        return frame.values[name] if name in frame.values else frame.plan.array(name)

    def constant(self, name: str) -> tuple[OnnxPlan, Any] | None:
        """The plan and the message of an initializer or Constant node; None for other tensors."""
        frame = self.holder(name)
        held = None if frame is None else frame.plan.constants.get(name)
        return None if frame is None or held is None else (frame.plan, held)

    def has_agreed(self, name: str) -> bool:
        """Whether the tensor was compared, in this graph or in the one around it that it comes from."""
        frame = self.holder(name)
        return frame is not None and name in frame.agreed

    def counterparts(self, name: str) -> list[tuple[IrFrame, Value]]:
        """The values of the IR that contain a tensor of this graph, with their frames."""
        return [] if self.ir is None else self.ir.find((self.plan.scope, name))

    def run(self, place: int) -> dict[str, Any]:
        """The outputs of a node, which runs alone."""
        node = self.plan.compiled.get(place) or OnnxNodes(self, [place])
        if self.plan.is_repeated and not self.plan.is_driven(place):  # with bodies, it has the shapes of its inputs
            self.plan.compiled[place] = node
        return node.run(self)

    def compute(self, start: int, budget: int) -> int:
        """Run nodes from `start` on, up to one that is driven, until their results take more than `budget` bytes.

        They are at most as many as all before them, so that a difference at the beginning is found soon. Returns the
        place after the last one, which is the same one in each run of a body.
        """
        plan, place = self.plan, start
        end = plan.ends.get(start, min(len(plan.nodes), start + max(FIRST, start)))
        while True:
            found = self.run(place)
            self.values.update(found)
            budget -= sum(map(size_of, found.values()))
            place += 1
            is_over = budget < 0 and start not in plan.ends
            if is_over or place == end or plan.is_driven(place) or plan.function(place) is not None:
                break
        if plan.is_repeated:
            plan.ends[start] = place
        return place

    def define(self, place: int, outputs: Collection[Any]) -> None:
        """Give the outputs of a node that was driven their values."""
        names = self.plan.nodes[place].output
        self.values.update({name: value for name, value in zip(names, outputs, strict=False) if name})

    def release(self, place: int) -> None:
        """Forget the values that no node from `place` on reads."""
        kept = {*self.plan.graph.output_names}
        last = self.plan.last_use
        for name in [each for each in self.values if last.get(each, -1) < place and each not in kept]:
            del self.values[name]

    @property
    def size(self) -> int:
        """The bytes of its values."""
        return sum(size_of(value) for value in self.values.values())


class OnnxError(Exception):
    """A node of the ONNX model cannot be run alone."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(f"{path}: {' '.join(text.split())}")
        self.path = path


class OnnxNodes:
    """The nodes of a graph at these places; only a single one can be run."""

    def __init__(self, frame: OnnxFrame, places: Sequence[int]) -> None:
        self.plan = plan = frame.plan
        self.places = places
        self.nodes = [plan.nodes[place] for place in places]
        self.outputs = [name for node in self.nodes for name in node.output if name]
        read = dict.fromkeys(name for place in places for name in plan.reads[place] if name not in self.outputs)
        # With weights that are constants, ONNX Runtime adds products of 8-bit integers exactly.
        fixed = plan.fixed if INTEGER_OPERATORS.intersection(node.op_type for node in self.nodes) else ()
        self.constants = [name for name in read if name in fixed or frame.constant(name) is not None]
        self.inputs = [name for name in read if name not in set(self.constants)]
        self._runner: Any = None
        self._by_reference = False

    def run(self, frame: OnnxFrame) -> dict[str, Any]:
        """The values of all tensors that the node makes."""
        feeds = {name: frame.get(name) for name in self.inputs}
        try:
            self._runner = self._runner or self._made(frame, feeds)
            return dict(self._runner.run(feeds))
        except Exception as error:  # those of ONNX Runtime share no base class; the evaluator raises what operators do
            if self._by_reference or not not_implemented(error):
                raise OnnxError(self.plan.graph.path_of(self.nodes[0]), str(error)) from error
        self._runner, self._by_reference = None, True
        return self.run(frame)

    def _made(self, frame: OnnxFrame, feeds: Mapping[str, Any]) -> Any:
        operator = self.nodes[0].op_type
        lists = any(value is None or isinstance(value, list) for value in feeds.values())
        of_lists = operator != "SplitToSequence" and (lists or (operator in OF_LISTS and not domain_of(self.nodes[0])))
        if of_lists or self._by_reference:
            return Reference(self.model(frame, feeds))
        # The reference evaluator splits differently from ONNX Runtime, without an arena each result has its own memory.
        arena = self.plan.is_repeated and operator != "SplitToSequence"
        return OnnxRuntime(with_copies(self.model(frame, feeds)), arena=arena)

    def model(self, frame: OnnxFrame, feeds: Mapping[str, Any]) -> Any:
        """The nodes as a model whose inputs are `feeds`."""
        from onnx import helper, numpy_helper

        plan = self.plan
        tensors, nodes = [], list(self.nodes)
        for name in self.constants:
            found = frame.constant(name)
            if found is not None and hasattr(found[1], "op_type"):
                nodes.insert(0, found[1])
            else:
                array = frame.get(name) if found is None else found[0].array(name)
                tensors.append(numpy_helper.from_array(np.asarray(array), name))
        has_bodies = any(map(plan.is_driven, self.places))  # ONNX Runtime needs the shapes in a Scan
        inputs = [_value_info(name, value, has_bodies) for name, value in feeds.items()]
        outputs = [helper.make_empty_tensor_value_info(name) for name in self.outputs]
        graph = helper.make_graph(nodes, "piece", inputs, outputs, tensors)
        imports = [helper.make_opsetid(*each) for each in sorted({"": 1, **plan.graph.opsets}.items())]
        model = helper.make_model(graph, opset_imports=imports, ir_version=max(plan.model.proto.ir_version, 8))
        domains = {domain_of(node) for each in graph_protos(model) for node in each.node}
        model.functions.extend(each for each in plan.model.functions.values() if each.domain in domains)
        return model


def piece_model(frame: OnnxFrame, place: int, name: str) -> tuple[bytes, Mapping[str, Any]] | None:
    """The nodes from the tensors that both sides have to a tensor, an output of the node `place` or an input of its
    body, as a model with its inputs; None if a value is no longer in memory, or is a list."""
    found = _piece(frame, place, name)
    return None if found is None else (found[0].model(frame, found[1]).SerializeToString(), found[1])


def _piece(frame: OnnxFrame, place: int, name: str) -> tuple[OnnxNodes, dict[str, Any]] | None:
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
        return piece, feeds
    return None


def in_f64(frame: OnnxFrame, name: str) -> Any:
    """A tensor of f32 that ONNX Runtime computes in f64 from those that both sides have; None if it cannot."""
    from onnx import TensorProto, numpy_helper

    found = None if name in frame.again else _piece(frame, frame.plan.makers.get(name, -1), name)
    if found is None or np.asarray(frame.values.get(name)).dtype != np.float32:
        return None
    feeds = {each: _widened(value) for each, value in found[1].items()}
    model = found[0].model(frame, feeds)
    constants = [each.t for node in model.graph.node if node.op_type == "Constant" for each in node.attribute]
    for tensor in (*model.graph.initializer, *constants):
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(_widened(numpy_helper.to_array(tensor)), tensor.name))
    with suppress(Exception):  # those of ONNX Runtime share no base class: an operator without a kernel for f64
        return dict(OnnxRuntime(model).run(feeds))[name]
    return None


def _widened(value: Any) -> Any:
    return value.astype(np.float64) if np.asarray(value).dtype == np.float32 else value


def _value_info(name: str, value: Any, has_shape: bool) -> Any:
    from onnx import TensorProto, helper

    if value is None or isinstance(value, list):
        return helper.make_empty_tensor_value_info(name)
    dtype = np.asarray(value).dtype
    kind = TensorProto.STRING if dtype.kind in "SUO" else helper.np_dtype_to_tensor_dtype(dtype)
    return helper.make_tensor_value_info(name, kind, np.shape(value) if has_shape else None)


def size_of(value: Any) -> int:
    """The bytes of an array, or of the arrays of a list."""
    return sum(map(size_of, value)) if isinstance(value, list) else int(getattr(value, "nbytes", 0))
