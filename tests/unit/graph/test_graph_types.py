"""The graph: types that follow changes, through bodies and back, and copies."""

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.errors import TypeError_
from mo_loop.graph import Graph, Node
from mo_loop.graph.types import TensorType, f32
from mo_loop.graph.verifier import invariants
from mo_loop.text import parse, to_text
from tests.cases import read_cases
from tests.unit.graph.graphs import LOOP, chain, parameter

INNER_LOOP = LOOP.replace("Parameter : i64[]", "Parameter").replace("Parameter : f32[2]", "Parameter")


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
        graph.set_input(nodes[2], 0, parameter(graph, 2))
        graph.validate()
        assert seen == [nodes[2]]  # its type is unchanged: its consumers are not inferred
        younger, youngest = ops.Abs(nodes[1].output), ops.Exp(nodes[1].output)
        graph.set_input(nodes[2], 0, younger.output)
        graph.validate()
        graph.set_input(nodes[2], 0, youngest.output)
        assert not graph.is_dirty and youngest.output.type is younger.output.type  # nothing can be inferred from it
        seen.clear()
        graph.parameters[0].retype(TensorType(f32, (7,)))
        graph.validate()
        assert other not in seen and nodes[3] in seen and nodes[3].output.shape == (7,)

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
        assert loop.body.parameters[1].output.shape == (1,) and loop.output.shape == (2,) and not invariants(graph)

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
        assert to_text(graph) == before != to_text(copy) and not set(graph) & set(copy)

    def test_a_clone_is_as_dirty_as_its_original(self) -> None:
        graph = parse(LOOP)
        graph.parameters[2].retype(TensorType(f32, (1,)))
        copy = graph.clone()
        copy.validate()
        assert copy.of(ops.Loop)[0].body.parameters[1].output.shape == (1,) and graph.is_dirty

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
            %m = Parameter : i64[] %x = Parameter : f32[2] %w = Parameter : f32[2]
            %a = Add(%x, %w) %b = Add(%a, %w)
            Result(%b)"""),
            names=False,
        )
        assert not invariants(graph)


read_cases(globals())
