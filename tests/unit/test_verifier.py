"""The invariants find errors: each graph here is broken by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.graph.types import TensorType, f32
from mo_loop.graph.verifier import invariants
from mo_loop.ops.base import Parameter
from mo_loop.text import parse

TEXT = """
    %m = Parameter : i64[] %x = Parameter : f32[2]
    %a = Add(%x, 1) %b = Negative(%a)
    %y = Loop(%m, true, %b, %x) {
      iteration: %i, condition: @go, input_map: [Merged(%s, @n), Invariant(%k)], output_map: [Final(@n)]
    }
      body {
        %i = Parameter %s = Parameter %k = Parameter
        %n = Add(%s, %k)
        Result(true) @go Result(%n)
      }
    Result(%y)"""


def only(graph: Graph, cls: Any) -> Any:
    (node,) = graph.of(cls)
    return node


def reads_without_an_edge(graph: Graph) -> None:
    only(graph, ops.Negative).inputs = (graph.parameters[1].output,)


def an_edge_that_nobody_reads(graph: Graph) -> None:
    only(graph, ops.Negative).inputs = (None,)


def wrong_index(graph: Graph) -> None:
    only(graph, ops.Add).output.index = 3


def an_output_replaced(graph: Graph) -> None:
    node = only(graph, ops.Add)
    node.outputs = (type(node.output)(node, 0, node.output.type),)


def a_stranger_among_the_parameters(graph: Graph) -> None:
    graph.parameters.append(Parameter(graph=Graph(), dtype=f32, shape=()))


def a_result_listed_twice(graph: Graph) -> None:
    graph.results.append(graph.results[0])


def a_body_without_owner(graph: Graph) -> None:
    only(graph, ops.Loop).body.owner = None


def a_port_of_another_body(graph: Graph) -> None:
    loop = only(graph, ops.Loop)
    stranger = Parameter(graph=Graph(), dtype=f32, shape=(2,))
    loop.__dict__["input_map"] = (loop.input_map[0], replace(loop.input_map[1], parameter=stranger))


def one_parameter_fed_twice(graph: Graph) -> None:
    loop = only(graph, ops.Loop)
    loop.__dict__["input_map"] = (loop.input_map[0], replace(loop.input_map[1], parameter=loop.iteration))


def a_port_map_too_short(graph: Graph) -> None:
    only(graph, ops.Loop).__dict__["output_map"] = ()


def not_validated(graph: Graph) -> None:
    graph.touch(only(graph, ops.Negative))


def a_stale_type(graph: Graph) -> None:
    only(graph, ops.Negative).output.type = TensorType(f32, (3,))


def a_stale_type_in_a_body(graph: Graph) -> None:
    only(only(graph, ops.Loop).body, ops.Add).output.type = TensorType(f32, (1, 2))


def a_wrong_order(graph: Graph) -> None:
    order = list(graph.ordered())
    graph._order = order[::-1]


@pytest.mark.parametrize(("break_it", "says"), [
    (reads_without_an_edge, "there is no such edge"), (an_edge_that_nobody_reads, "which does not read it"),
    (wrong_index, "refers to itself as output 3"), (an_output_replaced, "no longer has"),
    (a_stranger_among_the_parameters, "parameters lists 3 nodes"),
    (a_result_listed_twice, "twice"), (a_body_without_owner, "has the owner None"),
    (a_port_of_another_body, "not a port of its bodies"), (one_parameter_fed_twice, "is fed 2 times"),
    (a_port_map_too_short, "not parallel"), (not_validated, "not validated"),
    (a_stale_type, "inference gives f32[2]"), (a_stale_type_in_a_body, "inference gives"),
    (a_wrong_order, "is after its consumer"),
], ids=lambda each: each.__name__ if callable(each) else "")
def test_it_is_seen(break_it: Callable[[Graph], None], says: str) -> None:
    graph = parse(TEXT)
    assert invariants(graph) == []
    break_it(graph)
    assert any(says in finding for finding in invariants(graph)), invariants(graph)


def test_findings_name_their_place() -> None:
    graph = parse(TEXT)
    loop = only(graph, ops.Loop)
    loop.name, loop.body.name = "main", "step"
    only(loop.body, ops.Add).output.index = 1
    assert any("main/step" in finding for finding in invariants(graph))
