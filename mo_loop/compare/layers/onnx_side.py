"""The ONNX side of a comparison: the graphs of a model, which are run piece by piece from Python.

    plan = OnnxPlan(main_graph(model), model)
    frame = OnnxFrame(plan, {"x": x})
    end = plan.end_of_piece(frame, 0, 1 << 30)      # nodes 0 to end - 1 have no bodies and run at once
    frame.compute(0, end)                           # all their outputs are in frame.values

A piece is a small model whose outputs are all tensors of its nodes; ONNX Runtime runs it without optimisation, the
reference evaluator runs operators without a kernel in ONNX Runtime, and those with sequences and optionals. Nodes with
bodies and calls of functions are pieces of their own, which the caller drives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from mo_loop.compare.layers.onnx_pieces import OF_LISTS, Piece, all_nodes, evaluated
from mo_loop.frontend.external_files import dense_from_sparse, tensor_from
from mo_loop.frontend.functions import bound_attributes, without_absent
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.node_order import NamesRead, in_order, listed_order, needed
from mo_loop.frontend.onnx_graphs import OnnxGraph, called, domain_of, function_graph
from mo_loop.graph.origin import Origin

DRIVEN = ("Loop", "Scan", "If", "SequenceMap")
FIRST = 64
"""The most nodes of the first piece of a graph whose sizes are not known."""

LARGEST = 1 << 30
"""The most bytes of weights in the model of one piece: a message has at most 2 GB."""


class OnnxPlan:
    """One graph of the model: its nodes in the order in which they run, and their compiled parts."""

    def __init__(self, graph: OnnxGraph, model: OnnxModel, given: frozenset[str] = frozenset()) -> None:
        """`given` are tensors that have values from outside: nodes that make them are not run."""
        self.graph = graph
        self.model = model
        self.is_repeated = graph.kind != "model"
        names = NamesRead()
        nodes = list(graph.nodes)
        reads = [names.of_node(node) for node in nodes]
        made = [tuple(node.output) for node in nodes]
        if not in_order(made, reads):
            order = listed_order(nodes, reads, graph.scope)
            nodes, reads = [nodes[place] for place in order], [reads[place] for place in order]
            made = [made[place] for place in order]
        kept = needed(made, graph.output_names, given, reads)
        self.nodes = [nodes[place] for place in kept]
        self.reads = [reads[place] for place in kept]
        self.last_use = {name: place for place, read in enumerate(self.reads) for name in read}
        self._bodies: dict[int, dict[str, OnnxPlan]] = {}
        self._ends: dict[int, int] = {}
        self.sizes: dict[int, int] = {}
        """The bytes of the results of nodes when they ran last."""
        self._pieces: dict[tuple[int, int], Piece] = {}
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

    def is_driven(self, place: int) -> bool:
        """Whether the node has bodies that are run step by step; a Scan of opset 8, over a batch, runs as a whole."""
        node = self.nodes[place]
        is_batched = node.op_type == "Scan" and self.graph.opsets.get("", 1) < 9
        return node.op_type in DRIVEN and not domain_of(node) and not is_batched

    def is_loop(self, place: int) -> bool:
        """Whether the node is a Loop, or a Scan without a batch, which those of opset 8 have."""
        is_batched = self.nodes[place].op_type == "Scan" and self.graph.opsets.get("", 1) < 9
        return self.is_driven(place) and self.nodes[place].op_type in ("Loop", "Scan") and not is_batched

    def function(self, place: int) -> Any:
        """The function of the model that a node calls; None for an operator."""
        return called(self.model, self.nodes[place])

    def body(self, place: int, attribute: str) -> OnnxPlan:
        """The plan of a body, by the attribute that holds it."""
        if place not in self._bodies:
            bodies = self.graph.bodies(self.nodes[place])
            self._bodies[place] = {each.kind: OnnxPlan(each, self.model) for each in bodies}
        return self._bodies[place][attribute]

    def called_plan(self, place: int) -> OnnxPlan:
        """The plan of the function that a node calls, with the attributes of the call."""
        if place not in self._bodies:
            node, function = self.nodes[place], self.function(place)
            attributes = bound_attributes(function, node, None)
            absent = [name for number, name in enumerate(function.input) if not _has(node.input, number)]
            copy = type(function)()
            copy.CopyFrom(function)
            bound = [_bound(each, attributes) for each in without_absent(function, absent)]
            del copy.node[:]
            copy.node.extend(bound)
            graph = function_graph(self.model, copy, self.origin(place).inner_scope)
            self._bodies[place] = {"": OnnxPlan(graph, self.model)}
        return self._bodies[place][""]

    def end_of_piece(self, frame: OnnxFrame, start: int, budget: int) -> int:
        """The place after the piece that begins at `start`: its nodes have no bodies and call no functions.

        Its results take about `budget` bytes: as many as in the last run of the graph; in the first one each counts
        like the largest value before it, and a piece has at most as many nodes as all before it together.
        """
        if start in self._ends:
            return self._ends[start]
        lists = self._is_of_lists(start, frame, set())
        made: set[str] = set(self.nodes[start].output) if lists else set()
        largest = max(map(size_of, frame.values.values()), default=0)
        left, weights, end = budget - self.sizes.get(start, largest), LARGEST - self._weights(start), start + 1
        while end < len(self.nodes) and not self.is_driven(end) and self.function(end) is None:
            left, weights = left - self.sizes.get(end, largest), weights - self._weights(end)
            is_long = end not in self.sizes and end - start >= max(FIRST, start)
            if is_long or min(left, weights) < 0 or self._is_of_lists(end, frame, made) != lists:
                break
            if lists:
                made.update(self.nodes[end].output)
            end += 1
        if self.is_repeated and end - 1 in self.sizes:
            self._ends[start] = end
        return end

    def _weights(self, place: int) -> int:
        """About the bytes of the initializers that a node reads."""
        held = [self.constants[name] for name in self.nodes[place].input if name in self.constants]
        return sum(8 * math.prod(each.dims) for each in held if hasattr(each, "data_type"))

    def _is_of_lists(self, place: int, frame: OnnxFrame, made: set[str]) -> bool:
        node = self.nodes[place]
        if node.op_type in OF_LISTS and not domain_of(node):
            return True
        return any(name in made or frame.is_list(name) for name in node.input if name)

    def piece(self, frame: OnnxFrame, start: int, end: int) -> Piece:
        found = self._pieces.get((start, end))
        if found is None:
            found = Piece(self, frame, range(start, end))
            if self.is_repeated:
                self._pieces[start, end] = found
        return found

    def array(self, name: str) -> Any:
        """The values of an initializer or Constant node."""
        held = self.constants[name]
        if hasattr(held, "op_type"):
            return evaluated(held, self.graph)[0]
        if hasattr(held, "indices"):
            return dense_from_sparse(held, self.model.files).array()
        return tensor_from(held, self.model.files).array()


class OnnxFrame:
    """One run of a graph: the values of its tensors by name."""

    def __init__(self, plan: OnnxPlan, values: Mapping[str, Any], outer: OnnxFrame | None = None) -> None:
        self.plan = plan
        self.values = dict(values)
        self.outer = outer
        self.agreed: set[str] = set()
        """The tensors that were compared and agree."""
        self.cut: set[str] = set()
        """The tensors whose values both sides have: the next pieces begin there."""
        self.sources: dict[str, tuple[OnnxFrame, str]] = {}
        """The tensors of other frames that inputs of a body are."""
        self.again: dict[str, Callable[[Any], Any]] = {}
        """The computations of tensors from changed inputs, with a source of random numbers, where nodes do not do."""

    def get(self, name: str) -> Any:
        """The value of a tensor of this graph or of one around it. KeyError if it has none."""
        if name in self.values:
            return self.values[name]
        if name in self.plan.constants:
            return self.plan.array(name)
        if self.outer is None:
            raise KeyError(name)
        return self.outer.get(name)

    def constant(self, name: str) -> tuple[OnnxPlan, Any] | None:
        """The plan and the message of an initializer or Constant node; None for other tensors."""
        if name in self.plan.constants:
            return self.plan, self.plan.constants[name]
        if name in self.values or self.outer is None:
            return None
        return self.outer.constant(name)

    def is_list(self, name: str) -> bool:
        """Whether the value is a sequence or an optional."""
        frame: OnnxFrame | None = self
        while frame is not None and name not in frame.values:
            frame = frame.outer
        return frame is not None and (frame.values[name] is None or isinstance(frame.values[name], list))

    def has_agreed(self, name: str) -> bool:
        """Whether the tensor was compared, in this graph or in the one around it that it comes from."""
        frame: OnnxFrame | None = self
        while frame is not None and name not in frame.values and name not in frame.plan.constants:
            frame = frame.outer
        return frame is not None and name in frame.agreed

    def compute(self, start: int, end: int) -> None:
        """Run the nodes of a piece."""
        found = self.plan.piece(self, start, end).run(self)
        self.values.update(found)
        for place in range(start, end):
            self.plan.sizes[place] = sum(size_of(found.get(name)) for name in self.plan.nodes[place].output)

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


def size_of(value: Any) -> int:
    """The bytes of an array, or of the arrays of a list."""
    if isinstance(value, list):
        return sum(map(size_of, value))
    return int(getattr(value, "nbytes", 0))


def _has(names: Any, number: int) -> bool:
    return number < len(names) and bool(names[number])


def _bound(node: Any, attributes: Mapping[str, Any]) -> Any:
    """The node with the values of the attributes that it, or a node in its bodies, takes from the call."""
    if not any(each.ref_attr_name for inner in all_nodes([node]) for each in inner.attribute):
        return node
    copy = type(node)()
    copy.CopyFrom(node)
    for inner in list(all_nodes([copy])):
        kept = []
        for each in inner.attribute:
            source = attributes.get(each.ref_attr_name) if each.ref_attr_name else each
            if source is None:
                continue  # the caller omits it: the default is used
            value = type(each)()
            value.CopyFrom(source)
            value.name = each.name
            kept.append(value)
        del inner.attribute[:]
        inner.attribute.extend(kept)
    return copy
