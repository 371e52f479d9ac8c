"""Notes about models that would gain from states: variables which the runtime keeps between inferences."""

from __future__ import annotations

from collections.abc import Iterator

from mo_loop import ops
from mo_loop.diagnostics.diagnostic import Diagnostic
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.dimension import Dim, Dimension, now
from mo_loop.ops.base import Parameter
from mo_loop.ops.control import If, Iteration
from mo_loop.ops.port_map import Concatenated, Merged, Sliced
from mo_loop.ops.recurrent import Sequence
from mo_loop.transforms.states.pairing import find_pairs
from mo_loop.transforms.states.port_names import is_next
from mo_loop.transforms.states.step_axes import mixing_along

_SHOWN = 3
"""The number of pairs that a message names."""


def state_diagnostics(graph: Graph) -> Iterator[Diagnostic]:
    """All notes about the graph and the branches in it. A model that was converted with states has nothing left to
    say."""
    yield from _carried(graph)
    yield from _stepped(graph, graph)


def _carried(graph: Graph) -> Iterator[Diagnostic]:
    """One note for all inputs that the caller fills with outputs.

    The result of a loop is of the type of its initial value in models that are not called in turn, too: a pair counts
    if it grows, or if its names show that the caller carries it.
    """
    found = find_pairs(graph).found
    pairs = [each for each in found if each.growing is not None or is_next(each.input, each.output)]
    if not pairs or len(pairs) == len(graph.parameters):  # a model whose every input is a state computes nothing new
        return
    names = [f"{each.input} -> {each.output}" for each in pairs]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    many = "1 input and output is a state" if len(pairs) == 1 else f"{len(pairs)} inputs and outputs are states"
    origin = next((parameter.origin for parameter in graph.parameters if parameter.name == pairs[0].input), None)
    yield Diagnostic.of_code("ML550", f"{many} that the caller carries ({', '.join(names[:_SHOWN])}{more})", origin)


def _stepped(graph: Graph, model: Graph) -> Iterator[Diagnostic]:
    """A note for each loop and recurrent operation that goes forward through a sequence of the model's inputs."""
    for node in graph.ordered():
        for body in _bodies_that_run(node) if isinstance(node, If) else ():
            yield from _stepped(body, model)
        for value, axis in _sequences(node):
            name = _input_of(model, value, axis)
            if name:
                text = f"it steps through a sequence of the input {name!r}"
                yield Diagnostic.of_code("ML551", text, node.origin)
                break


def _bodies_that_run(node: If) -> tuple[Graph, ...]:
    condition = node.operands[0].type.integers
    return node.bodies if condition is None else node.bodies[:1] if condition[0] else node.bodies[1:]


def _sequences(node: Node) -> Iterator[tuple[Value, int]]:
    """The values that a node steps through from the beginning to the end, and their axes; none if it has no state."""
    if isinstance(node, Sequence):
        x = node.inputs[0]
        if node.direction == "forward" and x is not None:
            yield x, 1
    if not isinstance(node, Iteration) or not any(isinstance(each, Merged) for each in node.input_map):
        return
    slices = [each for each in (*node.input_map, *node.output_map) if isinstance(each, Sliced | Concatenated)]
    if any(each.stride < 0 for each in slices):
        return
    for entry, value in zip(node.input_map, node.inputs[node.first_data_port :], strict=True):
        if isinstance(entry, Sliced) and value is not None:
            yield value, entry.axis


def _input_of(graph: Graph, value: Value, axis: int) -> str:
    """The input of the model that has the dimension `axis` of a value; empty if none has, or if it is 1.

    Empty as well if something else in the model needs several steps of the sequence: LowLatency2 refuses it.
    """
    shape = value.shape
    if shape is None or not -len(shape) <= axis < len(shape):
        return ""
    dim: Dimension = shape[axis]
    length = now(dim)
    if length is not None:
        source = _source(value)
        is_longer = length > 1 and isinstance(source, Parameter) and length in map(now, source.output.shape or ())
        return source.name if is_longer else ""
    assert isinstance(dim, Dim)
    if any(True for _ in mixing_along(graph, frozenset(dim.symbols()))):
        return ""
    for parameter in graph.parameters:
        own = [each for each in parameter.output.shape or () if isinstance(each, Dim)]
        if any(symbol in each.symbols() for symbol in dim.symbols() for each in own):
            return parameter.name
    return ""


def _source(value: Value) -> Node:
    """The node that makes the elements of a value, outside of the branches that the value is in."""
    while True:
        node, owner = value.node, value.graph.owner
        if isinstance(node, ops.SameElements | ops.Transpose | ops.Convert) and node.inputs[0] is not None:
            value = node.inputs[0]
        elif isinstance(node, Parameter) and isinstance(owner, If) and (outer := owner.outer(node)) is not None:
            value = outer
        else:
            return node
