"""The graph: edges, order, uses, removal, types, copies."""

from __future__ import annotations

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.check import invariants
from mo_loop.errors import InternalError, ModelError, TypeError_
from mo_loop.graph import Graph, Node, Value
from mo_loop.ops.base import Parameter, Result
from mo_loop.text import parse, to_text
from mo_loop.types import TensorType, f32, i64

LOOP = """
    %m = Parameter : i64[]
    %x = Parameter : f32[2]
    %w = Parameter : f32[2]
    %y = Loop(%m, true, %x, %w) {
      condition: @go, input_map: [Merged(%s, @n), Invariant(%k)], output_map: [Final(@n)]
    }
      body {
        %s = Parameter
        %k = Parameter
        %n = Add(%s, %k)
        Result(true) @go
        Result(%n)
      }
    Result(%y)
"""
INNER_LOOP = LOOP.replace("Parameter : i64[]", "Parameter").replace("Parameter : f32[2]", "Parameter")


def parameter(graph: Graph, *shape: int) -> Value:
    return Parameter(graph=graph, dtype=f32, shape=shape).output


def chain(length: int) -> tuple[Graph, list[Node]]:
    """x -> Negative -> Negative -> ... -> Result"""
    graph = Graph("chain")
    value = parameter(graph, 2)
    nodes: list[Node] = []
    for _ in range(length):
        nodes.append(ops.Negative(value))
        value = nodes[-1].output
    Result(value)
    return graph, nodes


class TestUses:
    def test_uses_are_a_snapshot_with_ports(self) -> None:
        graph = Graph()
        x = parameter(graph, 2)
        both = ops.Add(x, x)
        uses = x.uses
        ops.Negative(x)
        assert uses == ((both, 0), (both, 1))
        assert len(x.uses) == 3

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
        assert copy.inputs == (x, x)
        assert y.inputs == z.inputs == (copy.output,)
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
        assert node.inputs == (x, y)
        assert x.uses == ((node, 0),) and y.uses == ((node, 1),)
        graph.set_input(node, 1, None)
        assert node.inputs == (x, None) and not y.is_used

    def test_set_inputs_changes_their_number(self) -> None:
        graph = Graph()
        x, y = parameter(graph, 2), parameter(graph, 3)
        node = ops.Concat(x, x, axis=0)
        graph.set_inputs(node, [y, x, y])
        graph.validate()
        assert node.output.shape == (8,)
        assert not invariants(graph)

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
        assert node.inputs == (x, x)
        assert not invariants(graph)

    def test_drop_outputs_numbers_the_rest(self) -> None:
        graph = parse("""
            %x = Parameter : f32[1]
            %a, %b, %c = TensorIterator(%x) {
              input_map: [Sliced(%s, axis: 0)]
              output_map: [Final(@n), Final(@k), Concatenated(@n, axis: 0)]
            }
              body {
                %s = Parameter
                %n = Negative(%s)
                %k = Abs(%s)
                Result(%n)
                Result(%k)
              }
            Result(%c)
        """)
        (node,) = graph.of(ops.TensorIterator)
        last = node.outputs[2]
        with pytest.raises(InternalError, match="still used"):
            graph.drop_outputs(node, [0, 1])
        graph.drop_outputs(node, [1, 2])
        node.output_map = node.output_map[1:]
        graph.validate()
        assert node.outputs[1] is last and last.index == 1
        assert graph.results[0].value is last
        assert not invariants(graph)

    def test_a_used_node_cannot_be_removed(self) -> None:
        graph, nodes = chain(2)
        with pytest.raises(InternalError, match="still used"):
            graph.remove(nodes[0])

    def test_removing_ends_takes_them_off_the_lists(self) -> None:
        graph, _ = chain(0)
        graph.remove(graph.results[0])
        graph.remove(graph.parameters[0])
        assert not graph.results and not graph.parameters and len(graph) == 0

    def test_sweep_keeps_what_a_result_or_a_kept_node_needs(self) -> None:
        graph, nodes = chain(1)
        extra = ops.Abs(nodes[0].output)
        ops.Exp(ops.Sqrt(extra.output).output)
        assert graph.sweep(keep=[extra]) == 2
        assert extra in graph and graph.sweep() == 1
        assert extra not in graph and nodes[0] in graph
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
        assert list(graph.ordered())[-1] is late
        assert not graph.validate() and not invariants(graph)

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
        assert graph.of(ops.Negative) == nodes
        assert set(graph.of(Node)) == set(graph)

    def test_scopes_are_outer_first(self) -> None:
        graph = parse(LOOP)
        inner = graph.of(ops.Loop)[0].body
        assert list(graph.scopes()) == [graph, inner]
        assert (graph.depth, inner.depth) == (0, 1)


class TestConstruction:
    def test_a_failed_one_leaves_nothing_behind(self) -> None:
        graph = Graph()
        x, y = parameter(graph, 2), parameter(graph, 3)
        with pytest.raises(TypeError_, match="cannot be broadcast"):
            ops.Add(x, y)
        with pytest.raises(TypeError_):
            ops.Transpose(x, np.array([0, 1, 2]))
        assert list(graph) == [x.node, y.node] and not x.is_used

    def test_inputs_of_two_graphs_are_refused_and_leave_nothing_behind(self) -> None:
        graph, other = Graph(), Graph()
        x, foreign = parameter(graph, 2), parameter(other, 2)
        with pytest.raises(InternalError, match="cross graphs"):
            ops.Select(np.array(True), x, foreign, graph=graph)
        assert list(graph) == [x.node] and list(other) == [foreign.node]
        assert not x.is_used and not foreign.is_used

    def test_scalars_take_the_type_of_the_port_or_of_the_first_value(self) -> None:
        graph = Graph()
        x = parameter(graph, 2, 3)
        added, turned = ops.Add(x, 1), ops.Transpose(x, [1, 0])
        assert added.inputs[1].dtype is f32
        assert turned.inputs[1].dtype is i64

    def test_an_input_type_handed_back_says_nothing_about_the_values(self) -> None:
        graph = Graph()
        number = ops.Constant(4, graph=graph)
        assert number.output.known is not None
        assert ops.Abs(number).output.known is None


class TestTypes:
    def test_only_what_depends_on_a_change_is_inferred_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        graph, nodes = chain(4)
        other = ops.Exp(parameter(graph, 5))
        seen: list[Node] = []
        infer = ops.Op.infer_types

        def watched(self: ops.Op) -> object:
            seen.append(self)
            return infer(self)

        monkeypatch.setattr(ops.Op, "infer_types", watched)
        younger = ops.Abs(nodes[1].output)
        graph.set_input(nodes[2], 0, younger.output)
        graph.validate()
        assert seen == [nodes[2]]  # its type came out the same: what follows need not know
        seen.clear()
        graph.parameters[0].retype(TensorType(f32, (7,)))
        graph.validate()
        assert other not in seen and nodes[3] in seen
        assert nodes[3].output.shape == (7,)

    def test_an_attribute_marks_its_node(self) -> None:
        graph = Graph()
        node = ops.ReduceSum(parameter(graph, 2, 3), [0])
        node.keep_dims = True
        assert graph.is_dirty
        graph.validate()
        assert node.output.shape == (1, 3) and not graph.is_dirty

    def test_a_name_marks_nothing(self) -> None:
        graph, nodes = chain(1)
        nodes[0].name = "n"
        nodes[0].output.add_name("t")
        assert not graph.is_dirty

    def test_a_change_in_a_body_marks_its_owners(self) -> None:
        graph = parse(LOOP)
        (loop,) = graph.of(ops.Loop)
        add = loop.body.of(ops.Add)[0]
        loop.body.set_input(add, 1, add.inputs[0])
        assert loop.body.is_dirty and graph.is_dirty
        graph.validate()
        assert not loop.body.is_dirty and not graph.is_dirty

    def test_a_change_outside_reaches_the_body(self) -> None:
        graph = parse(LOOP)
        (loop,) = graph.of(ops.Loop)
        graph.parameters[2].retype(TensorType(f32, (1,)))
        graph.validate()
        assert loop.body.parameters[1].output.shape == (1,)
        assert loop.output.shape == (2,)
        assert not invariants(graph)

    def test_through_two_levels(self) -> None:
        graph = parse(f"""
            %c = Parameter : boolean[]
            %m = Parameter : i64[]
            %x = Parameter : f32[2]
            %w = Parameter : f32[2]
            %y = If(%c, %m, %x, %w) {{
              input_map: [Branched(%m, _), Branched(%x, %k), Branched(%w, _)], output_map: [Selected(@y, @k)]
            }}
              then_body {{ {INNER_LOOP} }}
              else_body {{
                %k = Parameter
                Result(%k)
              }}
            Result(%y)
        """)
        choice = graph.of(ops.If)[0]
        loop = choice.then_body.of(ops.Loop)[0]
        loop.body.touch(loop.body.of(ops.Add)[0])
        assert graph.is_dirty and choice.then_body.is_dirty
        graph.validate()
        graph.parameters[3].retype(TensorType(f32, (1, 2)))
        graph.parameters[2].retype(TensorType(f32, (1, 2)))
        graph.validate()
        assert loop.body.parameters[1].output.shape == (1, 2)
        assert choice.output.shape == (1, 2)
        assert not invariants(graph)

    def test_a_type_that_no_longer_fits_is_an_error_with_its_place(self) -> None:
        graph, _ = chain(0)
        x = graph.parameters[0].output
        node = ops.Add(x, ops.Constant(np.ones(2, np.float32), graph=graph), name="sum")
        graph.parameters[0].retype(TensorType(f32, (3,)))
        with pytest.raises(TypeError_, match="cannot be broadcast") as caught:
            graph.validate()
        assert caught.value.where == "sum"
        graph.set_input(node, 1, x)
        graph.validate()
        assert node.output.shape == (3,)


class TestCopies:
    def test_a_clone_is_equal_and_separate(self) -> None:
        graph = parse(LOOP)
        before = to_text(graph)
        copy = graph.clone()
        assert to_text(copy) == before and not invariants(copy)
        (loop,) = copy.of(ops.Loop)
        add = loop.body.of(ops.Add)[0]
        loop.body.set_input(add, 1, add.inputs[0])
        copy.validate()
        assert to_text(graph) == before != to_text(copy)
        assert not set(graph) & set(copy)

    def test_a_clone_shares_the_weights(self) -> None:
        graph = parse("%c = Constant seed(1) : f32[64,64]\nResult(%c)")
        copy = graph.clone()
        assert copy.of(ops.Constant)[0].tensor is graph.of(ops.Constant)[0].tensor

    def test_a_clone_is_as_dirty_as_its_original(self) -> None:
        graph = parse(LOOP)
        graph.parameters[2].retype(TensorType(f32, (1,)))
        copy = graph.clone()
        copy.validate()
        assert copy.of(ops.Loop)[0].body.parameters[1].output.shape == (1,)
        assert graph.is_dirty

    def test_a_clone_keeps_names_and_additional_info(self) -> None:
        graph = parse("""graph "m" {
            info {a: "b"}
            %x = Parameter : f32[2] "x" names "t" info {k: "v"}
            Result(%x) names "y"
        }""")
        assert to_text(graph.clone()) == to_text(graph)

    def test_inlining_a_body_twice_unrolls_it(self) -> None:
        graph = parse(LOOP)
        (loop,) = graph.of(ops.Loop)
        _, x, w = (each.output for each in graph.parameters)
        state = x
        for _ in range(2):
            _, state = graph.inline(loop.body, [state, w])
        loop.output.replace_with(state)
        graph.validate()
        graph.sweep()
        assert to_text(graph, names=False) == to_text(
            parse("""
            %m = Parameter : i64[]
            %x = Parameter : f32[2]
            %w = Parameter : f32[2]
            %a = Add(%x, %w)
            %b = Add(%a, %w)
            Result(%b)
        """),
            names=False,
        )
        assert not invariants(graph)

    def test_what_is_inlined_is_typed_by_its_bindings(self) -> None:
        graph = parse("""
            %m = Parameter : i64[]
            %x = Parameter : f32[1]
            %y = Loop(%m, true, %x) {condition: @go, input_map: [Merged(%s, @n)], output_map: [Final(@n)]}
              body {
                %s = Parameter
                %n = Concat(%s, %s) {axis: 0}
                Result(true) @go
                Result(%n)
              }
            Result(%y)
        """)
        (loop,) = graph.of(ops.Loop)
        assert str(loop.body.of(ops.Concat)[0].output.type) == "f32[?]"
        _, state = graph.inline(loop.body, [graph.parameters[1].output])
        graph.validate()
        assert state.shape == (2,)

    def test_inlining_copies_bodies_within_bodies(self) -> None:
        graph = parse(f"""
            %c = Parameter : boolean[]
            %i = Parameter : i64[]
            %u = Parameter : f32[2]
            %v = Parameter : f32[2]
            %r = If(%c, %i, %u, %v) {{
              input_map: [Branched(%m, _), Branched(%x, %k), Branched(%w, _)], output_map: [Selected(@y, @k)]
            }}
              then_body {{ {INNER_LOOP} }}
              else_body {{
                %k = Parameter
                Result(%k)
              }}
            Result(%r)
        """)
        choice = graph.of(ops.If)[0]
        (value,) = graph.inline(choice.then_body, [each.output for each in graph.parameters[1:]])
        choice.output.replace_with(value)
        graph.sweep()
        graph.validate()
        wanted = parse(LOOP.replace("%m = ", "%c = Parameter : boolean[]\n%m = "))
        assert to_text(graph, names=False) == to_text(wanted, names=False)
        assert not invariants(graph)
