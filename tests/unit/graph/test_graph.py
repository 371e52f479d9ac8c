"""The graph: edges, uses, removal, order, construction, and invariants."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import networkx
import numpy as np
import pytest

from mo_loop import ops
from mo_loop.errors import InternalError, ModelError, TypeError_
from mo_loop.graph import Graph, Node
from mo_loop.graph.types import TensorType, f32, i64
from mo_loop.graph.verifier import invariants
from mo_loop.ops.base import Parameter
from mo_loop.text import parse
from tests.harness import raised
from tests.texts import texts
from tests.unit.graph.graphs import LOOP, chain, parameter

TEXTS = texts(__file__)

# -- The graph: edges, uses, removal, order, construction


def test_comparisons_of_values_do_not_hold_for_nan() -> None:
    """The runtime's Greater and GreaterEqual do (gap greater-of-nan)."""
    graph = Graph()
    x, y = parameter(graph, 2), parameter(graph, 2)
    for made, cls in ((x > y, ops.Less), (x >= y, ops.LessEqual)):
        assert isinstance(made.node, cls) and made.node.inputs == (y, x)
    positive = x > 0
    assert isinstance(positive.node, ops.Less) and positive.node.inputs[1] is x


class TestUses:
    def test_uses_are_a_snapshot_with_ports(self) -> None:
        graph = Graph()
        x = parameter(graph, 2)
        both = ops.Add(x, x)
        uses = x.uses
        ops.Negative(x)
        assert uses == ((both, 0), (both, 1)) and len(x.uses) == 3

    def test_only_use(self) -> None:
        graph = Graph()
        x = parameter(graph, 2)
        assert x.only_use is None and not x.is_used
        one = ops.Negative(x)
        assert x.only_use == (one, 0)
        ops.Abs(x)
        assert x.only_use is None and x.is_used

    def test_the_outputs_of_one_node_are_told_apart(self) -> None:
        graph = Graph()
        first, second = ops.Split(parameter(graph, 4), 0, num_splits=2).outputs
        node = ops.Subtract(second, first)
        assert first.uses == ((node, 1),) and second.uses == ((node, 0),)

    def test_replace_with_leaves_the_new_node_its_input(self) -> None:
        graph = Graph()
        x = parameter(graph, 2)
        y, z = ops.Abs(x), ops.Negative(x)
        copy = ops.Maximum(x, x)
        x.replace_with(copy.output)
        assert copy.inputs == (x, x) and y.inputs == z.inputs == (copy.output,)
        assert not graph.validate() and not invariants(graph)

    def test_replace_with_itself_changes_nothing(self) -> None:
        graph, nodes = chain(2)
        nodes[0].output.replace_with(nodes[0].output)
        assert not graph.is_dirty


class TestWriters:
    def test_set_input_moves_one_edge(self) -> None:
        graph = Graph()
        x, y = parameter(graph, 2), parameter(graph, 2)
        node = ops.Add(x, x)
        graph.set_input(node, 1, y)
        assert node.inputs == (x, y) and x.uses == ((node, 0),) and y.uses == ((node, 1),)
        graph.set_input(node, 1, None)
        assert node.inputs == (x, None) and not y.is_used

    def test_set_inputs_changes_their_number(self) -> None:
        graph = Graph()
        x, y = parameter(graph, 2), parameter(graph, 3)
        node = ops.Concat(x, x, axis=0)
        graph.set_inputs(node, [y, x, y])
        graph.validate()
        assert node.output.shape == (8,) and not invariants(graph)

    @pytest.mark.parametrize("writer", ["set_input", "set_inputs"])
    def test_an_edge_from_another_graph_is_refused_and_nothing_is_changed(self, writer: str) -> None:
        graph, other = Graph(), Graph()
        x, foreign = parameter(graph, 2), parameter(other, 2)
        node = ops.Add(x, x)
        with pytest.raises(InternalError, match="cross graphs"):
            if writer == "set_input":
                graph.set_input(node, 0, foreign)
            else:
                graph.set_inputs(node, [x, foreign])
        assert node.inputs == (x, x) and not invariants(graph)

    def test_drop_outputs_numbers_the_rest(self) -> None:
        graph = parse(TEXTS["drop outputs numbers the rest"])
        (node,) = graph.of(ops.TensorIterator)
        last = node.outputs[2]
        raised(InternalError, graph.drop_outputs, node, [0, 1], match="still used")
        graph.drop_outputs(node, [1, 2])
        node.output_map = node.output_map[1:]
        graph.validate()
        assert node.outputs[1] is last and last.index == 1 and graph.results[0].value is last
        assert not invariants(graph)

    def test_a_used_node_cannot_be_removed(self) -> None:
        graph, nodes = chain(2)
        raised(InternalError, graph.remove, nodes[0], match="still used")

    def test_removing_ends_takes_them_off_the_lists(self) -> None:
        graph, _ = chain(0)
        graph.remove(graph.results[0])
        graph.remove(graph.parameters[0])
        assert not graph.results and not graph.parameters and len(graph) == 0

    def test_sweep_keeps_what_a_result_or_a_sink_needs(self) -> None:
        graph, nodes = chain(1)
        extra = ops.Abs(nodes[0].output)
        ops.Exp(ops.Sqrt(extra.output).output)
        sink = ops.Assign(extra.output, variable_id="v", variable_type=f32, variable_shape=(2,))
        assert graph.sweep() == 2 and extra in graph and sink in graph
        graph.remove(sink)
        assert graph.sweep() == 1 and extra not in graph and nodes[0] in graph
        assert len(graph.parameters) == 1

    def test_sweep_keeps_unused_parameters(self) -> None:
        graph = Graph()
        parameter(graph, 2)
        assert graph.sweep() == 0 and len(graph.parameters) == 1


class TestOrder:
    def test_by_age_while_every_edge_runs_from_older_to_younger(self) -> None:
        graph, nodes = chain(5)
        assert list(graph.ordered())[1:-1] == nodes

    def test_producers_first_when_a_younger_node_feeds_an_older(self) -> None:
        graph, nodes = chain(3)
        younger = ops.Abs(graph.parameters[0].output)
        graph.set_input(nodes[1], 0, younger.output)
        order = list(graph.ordered())
        assert order.index(younger) < order.index(nodes[1])
        assert sorted(node.id for node in order) == list(range(len(graph)))
        assert not graph.validate() and not invariants(graph)

    def test_among_those_that_could_be_next_the_oldest(self) -> None:
        graph = Graph()
        x = parameter(graph, 2)
        a, b, c = ops.Abs(x), ops.Exp(x), ops.Sqrt(x)
        graph.set_input(a, 0, c.output)
        assert list(graph.ordered()) == [x.node, b, c, a]

    def test_nodes_added_to_a_sorted_graph_come_last(self) -> None:
        graph, nodes = chain(2)
        graph.set_input(nodes[0], 0, ops.Abs(graph.parameters[0].output).output)
        graph.ordered()
        late = ops.Exp(nodes[1].output)
        assert list(graph.ordered())[-1] is late and not graph.validate() and not invariants(graph)

    def test_a_cycle_is_named(self) -> None:
        graph, nodes = chain(3)
        for number, node in enumerate(nodes):
            node.name = f"n{number}"
        graph.set_input(nodes[0], 0, nodes[2].output)
        with pytest.raises(ModelError, match=r"n0 -> n1 -> n2|n1 -> n2 -> n0|n2 -> n0 -> n1") as caught:
            graph.ordered()
        assert caught.value.code == "ML224"

    def test_of_finds_subclasses(self) -> None:
        graph, nodes = chain(2)
        assert graph.of(ops.Negative) == nodes and set(graph.of(Node)) == set(graph)

    def test_scopes_are_outer_first(self) -> None:
        graph = parse(LOOP)
        inner = graph.of(ops.Loop)[0].body
        assert list(graph.scopes()) == [graph, inner] and (graph.depth, inner.depth) == (0, 1)


class TestReachability:
    """a -> b -> d -> e, a -> c -> d, and f apart."""

    @pytest.fixture
    def nodes(self) -> dict[str, Node]:
        graph = Graph()
        a = parameter(graph, 2)
        b, c, f = ops.Abs(a), ops.Negative(a), ops.Parameter(graph=graph, dtype=f32, shape=(2,))
        d = ops.Add(b, c)
        return {"a": a.node, "b": b, "c": c, "d": d, "e": ops.Result(d), "f": f}

    @pytest.mark.parametrize(("starts", "above", "below"), [
        ("a", "a", "abcde"), ("b", "ab", "bde"), ("bc", "abc", "bcde"), ("ad", "abcd", "abcde"),
        ("e", "abcde", "e"), ("f", "f", "f"), ("", "", ""),
    ])
    def test_ancestors_and_descendants(self, nodes: dict[str, Node], starts: str, above: str, below: str) -> None:
        graph = nodes["a"].graph
        given = [nodes[name] for name in starts]
        assert graph.ancestors(given) == {nodes[name] for name in above}
        assert graph.descendants(given) == {nodes[name] for name in below}


class TestNetworkx:
    def test_its_graph_follows_every_change(self) -> None:
        graph = Graph()
        x = parameter(graph, 2)
        y = ops.Abs(x)
        view = graph.nx
        z = ops.Add(y, y)
        graph.set_input(z, 1, x)
        assert list(view.nodes) == [x.node, y, z]
        assert list(view.edges(keys=True, data="value")) == [(x.node, y, 0, x), (x.node, z, 1, x), (y, z, 0, y.output)]
        assert list(view.predecessors(z)) == [y, x.node] and networkx.has_path(view, y, z)
        graph.set_input(z, 0, x)
        graph.remove(y)
        assert list(view.nodes) == [x.node, z] and dict(view.in_degree) == {x.node: 0, z: 2}
        assert graph.nx is view and view.number_of_edges() == 2


class TestConstruction:
    def test_a_failed_one_leaves_nothing_behind(self) -> None:
        graph = Graph()
        x, y = parameter(graph, 2), parameter(graph, 3)
        raised(TypeError_, ops.Add, x, y, match="cannot be broadcast")
        raised(TypeError_, ops.Transpose, x, np.array([0, 1, 2]))
        assert list(graph) == [x.node, y.node] and not x.is_used

    def test_inputs_of_two_graphs_are_refused_and_leave_nothing_behind(self) -> None:
        graph, other = Graph(), Graph()
        x, foreign = parameter(graph, 2), parameter(other, 2)
        raised(InternalError, ops.Select, np.array(True), x, foreign, graph=graph, match="cross graphs")
        assert list(graph) == [x.node] and list(other) == [foreign.node]
        assert not x.is_used and not foreign.is_used

    def test_scalars_take_the_type_of_the_port_or_of_the_first_value(self) -> None:
        graph = Graph()
        x = parameter(graph, 2, 3)
        added, turned = ops.Add(x, 1), ops.Transpose(x, [1, 0])
        assert added.inputs[1].dtype is f32 and turned.inputs[1].dtype is i64

    def test_an_input_type_handed_back_says_nothing_about_the_values(self) -> None:
        graph = Graph()
        number = ops.Constant(4, graph=graph)
        assert number.output.known is not None and ops.Erf(number).output.known is None


# -- The invariants find errors: each graph here is broken by hand


TEXT = TEXTS["text"]


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
