"""Whether the answer of `first_difference` to a planted fault is right.

    trial = tried(planted)                                  # runs native code
    trial.result                                            # "right", "wrong node", "wrong iteration" ...

    where = expected_place(model, planted.graph, planted.fault, feeds)
    where.nodes, where.iterations                           # the ONNX nodes that may be named, and the iteration

The interpreter (tests/interpreter.py) runs the graph with and without the fault and records every value. Of those that
contain a tensor of the ONNX model and differ, the one that comes first in the order of the model is the right answer;
the node of the changed layer itself is right as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.api import Model
from mo_loop.compare.execution.runtime import compile_model
from mo_loop.compare.layers import LayerDifference, first_difference
from mo_loop.compare.results.array_comparison import compare, compare_all
from mo_loop.frontend.model import load
from mo_loop.frontend.node_order import NamesRead, listed_order
from mo_loop.frontend.onnx_graphs import OnnxGraph, label, main_graph
from mo_loop.graph import Graph, Node
from mo_loop.ir.xml import layer_names, layer_order
from mo_loop.ops.control import Iteration
from mo_loop.origin import Origin
from mo_loop.support.workers import report_stage
from tests import interpreter
from tests.fuzz.planted.planting import Fault, Planted, planted

RIGHT, WRONG_NODE, WRONG_ITERATION, NOT_FOUND = "right", "wrong node", "wrong iteration", "not found"
UNSEEN, UNJUDGED = "changes no output", "not judged"

END = 1 << 60
"""The outputs of a node come after all that is in its bodies."""

Iterations = tuple[int, ...]
Key = tuple[tuple[str, ...], str]


@dataclass(frozen=True)
class Place:
    """Where a fault shows first: `nodes` are paths of ONNX nodes, `tensor` is the first one that differs."""

    nodes: frozenset[str]
    tensor: Key
    iterations: Iterations


def expected_place(model: Any, graph: Graph, fault: Fault, feeds: Mapping[str, Any]) -> Place | None:
    """Where the fault shows first; None if no tensor of the ONNX model differs.

    Raises `interpreter.Uninterpreted`, or `interpreter.Invalid`, for graphs that the interpreter does not run.
    """
    given = [np.asarray(feeds[node.output.origins[0].output]) for node in graph.parameters]
    right, failed = _recorded(graph, given)
    if failed is not None:
        raise interpreter.Invalid("the graph without the fault does not run")
    wrong, failed = _recorded(fault.graph, given)
    changed = planted_node(fault).origin
    positions = _Positions(main_graph(load(model)))
    differing = []
    for key, iterations in right.keys() & wrong.keys():
        if not all(compare(a, b) for a, b in zip(right[key, iterations], wrong[key, iterations], strict=False)):
            place = positions.of(key, iterations)
            if place is not None:
                differing.append((place, key, iterations))
    own = Origin(changed.scope, changed.node).path
    if differing:
        _, key, iterations = min(differing)
        return Place(frozenset((own, positions.maker(key))), key, iterations)
    if failed is None:
        return None
    # The changed layer, or one that reads it, fails: the first tensors that contain what it makes.
    behind = {Origin(each.scope, each.node).path for each in first_tensors(planted_node(fault))}
    return Place(frozenset((own, failed[0], *behind)), ((), ""), failed[1])


def first_tensors(node: Node) -> list[Origin]:
    """The tensors of the ONNX model that a layer makes, or else those that the layers that read it make."""
    found: list[Origin] = []
    seen: set[Any] = set()
    stack: list[Any] = list(node.outputs)
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        found += [each for each in value.origins if each.node]
        if not any(each.node for each in value.origins):
            stack += [after for use in value.uses for after in _behind(use.node)]
    return found


def _behind(reader: Node) -> list[Any]:
    """The outputs of a layer that reads a value; a Result is an output of the node with the body."""
    if reader.outputs or reader.graph.owner is None:
        return list(reader.outputs)
    owner: Any = reader.graph.owner
    results = [
        {getattr(entry, "result", None), getattr(entry, "then", None), getattr(entry, "else_", None)}
        for entry in owner.output_map
    ]
    return [value for value, ends in zip(owner.outputs, results, strict=True) if reader in ends]


def planted_node(fault: Fault) -> Node:
    """The changed layer."""
    graph = fault.graph
    for name, tag in zip(fault.scope[::2], fault.scope[1::2], strict=True):
        owner = _layer(graph, name)
        graph = owner.bodies[tag == "else_body"]
    return _layer(graph, fault.layer)


def _layer(graph: Graph, name: str) -> Node:
    order = layer_order(graph)
    return order[layer_names(order).index(name)]


@dataclass(frozen=True)
class Trial:
    """One fault: the result, the answer of `first_difference`, and what was expected, in words."""

    result: str
    found: LayerDifference | None = None
    expected: str = ""


def tried(each: Planted, feeds: Mapping[str, Any] | None = None) -> Trial:
    """Look for a planted fault, with `feeds` or the first inputs for which the fault changes an output.

    It runs native code: the stage of the worker is "whole N" while the whole graph with the fault runs input set N.
    """
    feeds = showing(each) if feeds is None else feeds
    if feeds is None:
        return Trial(UNSEEN)
    report_stage("without the fault")
    clean = first_difference(each.model, each.graph, feeds)
    if clean is not None:
        return Trial(UNJUDGED, clean, "the graph without the fault differs from the model")
    try:
        place = expected_place(each.model, each.graph, each.fault, feeds)
    except (interpreter.Uninterpreted, interpreter.Invalid) as error:
        return Trial(UNJUDGED, None, f"the interpreter does not run the graph: {error}")
    if place is None:
        return Trial(UNJUDGED, None, "no tensor of the model differs in the interpreter")
    report_stage("with the fault")
    found = first_difference(each.model, each.fault.graph, feeds)
    if found is None:
        return Trial(NOT_FOUND, None, str(place))
    if found.path not in place.nodes:
        return Trial(WRONG_NODE, found, str(place))
    right = tuple(number for _, number in found.iterations) == place.iterations
    return Trial(RIGHT if right else WRONG_ITERATION, found, str(place))


def showing(each: Planted) -> Mapping[str, Any] | None:
    """The first inputs for which the graph runs, and with the fault gives other numbers or fails."""
    right = compile_model(Model(each.graph).to_openvino())
    try:
        wrong = compile_model(Model(each.fault.graph).to_openvino())
    except Exception:  # the errors of the runtime share no base class
        wrong = None
    for number, feeds in enumerate(each.feeds):
        try:
            expected = right.run(feeds)
        except Exception:
            continue
        report_stage(f"whole {number}")
        try:
            differs = wrong is None or not all(compare_all(expected, wrong.run(feeds)))
        except Exception:
            differs = True
        if differs:
            return feeds
    return None


def tried_number(task: tuple[int, int, int | None]) -> tuple[str, str, int, Trial]:
    """Try fault `number` of `planted` in a worker, with a seed, and if given, one set of inputs.

    Returns its description, kind and depth as well.
    """
    seed, number, chosen = task
    each = numbered(seed, number)
    fault = each.fault
    trial = tried(each, None if chosen is None else each.feeds[chosen])
    return f"{each.name}, {fault.kind} at {fault.path} ({fault.change})", fault.kind, fault.depth, trial


def numbered(seed: int, number: int) -> Planted:
    """Fault `number` of `planted` with a seed. Numbers that rise need no new start."""
    if _source and (_source[0] != seed or _source[1] > number):
        _source.clear()
    if not _source:
        _source[:] = [seed, 0, planted(1 << 30, seed), None]
    while _source[1] <= number:
        _source[3] = next(_source[2])
        _source[1] += 1
    found: Planted = _source[3]
    return found


_source: list[Any] = []
"""Seed, how many faults were planted, the iterator over them, the last one."""


class _Positions:
    """The order of the tensors of a model."""

    def __init__(self, graph: OnnxGraph) -> None:
        self._places: dict[tuple[tuple[str, ...], str], tuple[int, str, str]] = {}
        self._makers: dict[Key, str] = {}
        self._of_tensor: dict[Key, int] = {}
        stack = [graph]
        while stack:
            here = stack.pop()
            names = NamesRead()
            order = listed_order(here.nodes, [names.of_node(node) for node in here.nodes], here.scope)
            for place, node in enumerate(here.nodes[number] for number in order):
                self._places[here.scope, label(node)] = (place, node.op_type, here.path_of(node))
                for name in filter(None, node.output):
                    self._of_tensor[here.scope, name] = place
                    self._makers[here.scope, name] = here.path_of(node)
                stack += here.bodies(node)
            for name in here.input_names:
                if here.owner is not None and here.outer is not None:
                    self._of_tensor[here.scope, name] = -1
                    self._makers[here.scope, name] = here.outer.path_of(here.owner)

    def of(self, key: Key, iterations: Iterations) -> tuple[int, ...] | None:
        """Where a tensor of certain iterations comes: positions and iterations from the outside in."""
        scope, _ = key
        if key not in self._of_tensor:
            return None
        found: list[int] = []
        left = list(iterations)
        for depth in range(0, len(scope), 2):
            entry = self._places.get((scope[:depth], scope[depth]))
            if entry is None:
                return None
            found.append(entry[0])
            if entry[1] != "If":
                if not left:
                    return None
                found.append(left.pop(0))
        return None if left else (*found, self._of_tensor[key], END)

    def maker(self, key: Key) -> str:
        return self._makers[key]


Recorded = dict[tuple[Key, Iterations], list[Any]]


def _recorded(graph: Graph, given: list[Any]) -> tuple[Recorded, tuple[str, Iterations] | None]:
    """The values that contain each tensor of the ONNX model, in each iteration, up to the node that fails, if any."""
    found: Recorded = {}
    failed: list[tuple[str, Iterations]] = []
    loops: list[list[Any]] = []  # [node, iteration] of the loops that run
    computed, run = interpreter._computed, interpreter._run

    def record(node: Node, arrays: Any) -> None:
        at = tuple(number for _, number in loops)
        for value, array in zip(node.outputs, arrays, strict=True):
            if isinstance(array, np.ndarray | np.generic):
                for each in value.origins:
                    found.setdefault(((each.scope, each.output), at), []).append(np.asarray(array))

    def recording_computed(node: Node, given: list[Any]) -> Any:
        if isinstance(node, Iteration):
            loops.append([node, -1])
        try:
            arrays = computed(node, given)
        except (interpreter.Invalid, ValueError, IndexError):
            failed.append((Origin(node.origin.scope, node.origin.node).path, tuple(number for _, number in loops)))
            raise
        if isinstance(node, Iteration):
            loops.pop()
        record(node, arrays)
        return arrays

    def recording_run(body: Graph, known: dict[Any, Any]) -> Any:
        if loops and loops[-1][0].bodies[0] is body:
            loops[-1][1] += 1
        if body.owner is not None:
            for parameter, array in known.items():
                record(parameter, [array])
        return run(body, known)

    interpreter._computed, interpreter._run = recording_computed, recording_run
    try:
        interpreter.interpret(graph, given)
    except (interpreter.Invalid, ValueError, IndexError):
        return found, failed[0]
    finally:
        interpreter._computed, interpreter._run = computed, run
    return found, None
