"""The ONNX side of a comparison: the graphs of a model, which are run node by node from Python.

    plan = OnnxPlan(main_graph(model), model)
    frame = OnnxFrame(plan, {"x": x})
    end = frame.compute(0, 1 << 30)                 # runs nodes 0 to end - 1; their outputs are in frame.values

Each node is a small model of its own (onnx_nodes.py). Nodes with bodies and calls of functions are driven by the
caller, which runs frames of their bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from itertools import count
from typing import Any

from mo_loop.compare.layers.ir_side import IrFrame
from mo_loop.compare.layers.onnx_nodes import OnnxNodes, evaluated
from mo_loop.frontend.functions import bound_attributes, resolved, without_absent
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.names_read import NamesRead
from mo_loop.frontend.node_order import in_order, listed_order, needed
from mo_loop.frontend.onnx_graphs import OnnxGraph, called, domain_of, function_graph
from mo_loop.frontend.tensor_protos import dense_from_sparse, tensor_from
from mo_loop.graph import Value
from mo_loop.graph.origin import Origin

_NUMBERS = count()

DRIVEN = ("Loop", "Scan", "If", "SequenceMap")

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
        made = [tuple(node.output) for node in nodes]
        if not in_order(made, reads):
            order = listed_order(nodes, reads, graph.scope)
            nodes, reads = [nodes[place] for place in order], [reads[place] for place in order]
            made = [made[place] for place in order]
        kept = needed(made, graph.output_names, given, reads)
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
            given = {name for name, outer in zip(function.input, node.input, strict=False) if outer}
            nodes = without_absent(function, set(function.input) - given)
            copy = type(function)()
            copy.CopyFrom(function)
            del copy.node[:]
            copy.node.extend(resolved(each, attributes) for each in nodes)
            graph = function_graph(self.model, copy, self.origin(place).inner_scope)
            self._bodies[place] = {"": OnnxPlan(graph, self.model)}
        return self._bodies[place][""]

    def array(self, name: str) -> Any:
        """The values of an initializer or Constant node."""
        held = self.constants[name]
        if hasattr(held, "op_type"):
            return evaluated(held, self.graph)[0]
        if hasattr(held, "indices"):
            return dense_from_sparse(held, self.model.files).array()
        return tensor_from(held, self.model.files).array()


class OnnxFrame:
    """One run of a graph: the values of its tensors by name, and the frame of the IR that has counterparts of them."""

    def __init__(
        self, plan: OnnxPlan, values: Mapping[str, Any], outer: OnnxFrame | None = None, *,
        at: Iterations | None = None, ir: IrFrame | None = None,
    ) -> None:  # fmt: skip
        """`at` are the iterations around it, by default those around `outer`; `ir` is None if the IR has no graph for
        it."""
        self.number = next(_NUMBERS)
        self.plan = plan
        self.values = dict(values)
        self.outer = outer
        self.at: Iterations = at if at is not None else outer.at if outer is not None else ()
        self.ir = ir
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
        if self.plan.is_repeated:
            self.plan.compiled[place] = node
        return node.run(self)

    def compute(self, start: int, budget: int) -> int:
        """Run nodes from `start` on, up to one that is driven, until their results take more than `budget` bytes.

        Returns the place after the last one, which is the same one in each run of a body.
        """
        plan, place = self.plan, start
        end = plan.ends.get(start, len(plan.nodes))
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


def size_of(value: Any) -> int:
    """The bytes of an array, or of the arrays of a list."""
    if isinstance(value, list):
        return sum(map(size_of, value))
    return int(getattr(value, "nbytes", 0))
