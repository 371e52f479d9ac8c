"""Replacing, inserting and eliminating: uses, names, rt_info and dead nodes, by hand and on random graphs."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mo_loop import ops
from mo_loop.errors import InternalError
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.types import f32
from mo_loop.graph.verifier import invariants
from mo_loop.ops.base import Identity
from mo_loop.text import parse
from mo_loop.transforms.front.loop_elimination import EliminateUnusedPorts
from mo_loop.transforms.replace import (
    copy_runtime_info,
    drop_dead,
    eliminate,
    insert_after,
    insert_before,
    move_readers,
    replace_node,
    replace_output,
    replace_output_update_name,
)
from tests.unit.graph.graphs import LOOP, parameter


@pytest.fixture
def x(graph: Graph) -> Value:
    value = parameter(graph, 2)
    value.node.name = "x"
    value.names = ("x",)
    return value


def returned(value: Value, name: str) -> ops.Result:
    """A model output as translation makes it: the node before it has its name."""
    value.node.name = name
    value.add_name(name)
    return ops.Result(value, names=(name,))


def whole(graph: Graph) -> bool:
    graph.validate()
    found = invariants(graph)
    assert not found, found
    return True


def outputs(graph: Graph) -> dict[str, str]:
    """The name of each model output -> the name of the node before its Result."""
    return {result.output_names[0]: result.value.node.name for result in graph.results if result.output_names}


class TestReplaceNode:
    def test_uses_names_and_the_dead(self, graph: Graph, x: Value) -> None:
        old = ops.Add(ops.ReLU(x), 1.0, name="old")
        old.output.names = ("t",)
        ops.Result(ops.Tanh(old))
        ops.Result(ops.Abs(old))
        new = ops.Negative(x)
        replace_node(old, new)
        assert (new.name, new.output.names) == ("old", ("t",))
        assert [type(use.node) for use in new.output.uses] == [ops.Tanh, ops.Abs] and old not in graph
        assert graph.of(ops.ReLU) == [] and graph.of(ops.Constant) == [] and whole(graph)

    def test_a_producer_with_other_readers_stays(self, graph: Graph, x: Value) -> None:
        shared = ops.ReLU(x)
        old = ops.Tanh(shared)
        ops.Result(old)
        ops.Result(shared)
        replace_node(old, ops.Abs(x))
        assert shared in graph and whole(graph)

    def test_a_name_that_the_new_node_has_is_kept(self, graph: Graph, x: Value) -> None:
        old, new = ops.ReLU(x, name="old"), ops.Tanh(x, name="new")
        ops.Result(old)
        replace_node(old, new)
        assert new.name == "new"

    def test_but_a_model_output_keeps_its_name(self, graph: Graph, x: Value) -> None:
        old, new = ops.ReLU(x), ops.Tanh(x, name="new")
        returned(old.output, "y")
        replace_node(old, new)
        assert (new.name, new.output.names) == ("y", ("y",)) and outputs(graph) == {"y": "y"}

    def test_two_model_outputs_of_one_value(self, graph: Graph, x: Value) -> None:
        old, new = ops.ReLU(x), ops.Tanh(x)
        returned(old.output, "y")
        ops.Result(old, names=("z",))
        replace_node(old, new)
        assert [result.value for result in graph.results] == [new.output, new.output] and graph.of(ops.Identity) == []
        assert new.name == "y" and whole(graph)

    def test_by_an_input(self, graph: Graph, x: Value) -> None:
        old = ops.ReLU(x)
        returned(old.output, "y")
        inner = ops.Tanh(old)
        ops.Result(inner)
        replace_node(old, x)
        assert outputs(graph)["y"] == "y" and type(graph.results[0].value.node) is ops.Identity
        assert graph.results[0].value.names == ("y",) and inner.inputs == (x,)
        assert (x.node.name, x.names) == ("x", ("x",)) and whole(graph)

    def test_by_a_constant(self, graph: Graph, x: Value) -> None:
        old = ops.ReLU(x)
        returned(old.output, "y")
        replace_node(old, ops.Constant([1.0, 2.0], graph=graph, dtype=f32))
        assert outputs(graph) == {"y": "y"} and type(graph.results[0].value.node) is ops.Identity and whole(graph)

    def test_by_another_model_output(self, graph: Graph, x: Value) -> None:
        old, other = ops.ReLU(x), ops.Tanh(x)
        returned(old.output, "y")
        returned(other.output, "z")
        replace_node(old, other)
        assert outputs(graph) == {"y": "y", "z": "z"} and other.output.names == ("z",) and whole(graph)

    def test_by_another_output_of_a_node_that_bears_a_name(self, graph: Graph, x: Value) -> None:
        parts = ops.Split(x, 0, num_splits=2)
        returned(parts.outputs[0], "z")
        old = ops.Slice(x, [1], [2], [1], [0])
        returned(old.output, "y")
        assert replace_output_update_name(old.output, parts.outputs[1]) is False
        replace_node(old, parts.outputs[1])
        assert outputs(graph) == {"y": "y", "z": "z"} and parts.outputs[1].names == () and whole(graph)

    def test_two_model_outputs_of_one_node(self, graph: Graph, x: Value) -> None:
        old, new = ops.Split(x, 0, num_splits=2, name="parts"), ops.Split(ops.ReLU(x), 0, num_splits=2)
        for value, name in zip(old.outputs, ("a", "b"), strict=True):
            value.names = (name,)
            ops.Result(value, names=(name,))
        replace_node(old, new)
        assert [result.value for result in graph.results] == [*new.outputs]
        assert (new.name, [value.names for value in new.outputs]) == ("parts", [("a",), ("b",)])

    def test_several_outputs_an_unused_one_among_them(self, graph: Graph, x: Value) -> None:
        old = ops.Split(x, 0, num_splits=2, name="old")
        old.outputs[0].names, old.outputs[1].names = ("a",), ("b",)
        ops.Result(old.outputs[1])
        first, second = ops.ReLU(x), ops.Tanh(x)
        replace_node(old, [first, second.output])
        assert (first.output.names, second.output.names) == (("a",), ("b",))
        assert (first.name, second.name) == ("", "")  # none of them is the node that the name meant
        assert graph.results[0].value is second.output and old not in graph

    def test_by_a_node_of_as_many_outputs(self, graph: Graph, x: Value) -> None:
        old = ops.Split(x, 0, num_splits=2, name="old")
        total = ops.Add(old.outputs[0], old.outputs[1])
        ops.Result(total)
        new = ops.Split(ops.ReLU(x), 0, num_splits=2)
        replace_node(old, new)
        assert total.inputs == new.outputs and new.name == "old" and whole(graph)

    def test_a_wrong_number_changes_nothing(self, graph: Graph, x: Value) -> None:
        old = ops.Split(x, 0, num_splits=2)
        ops.Result(old.outputs[0])
        new = ops.ReLU(x)
        with pytest.raises(InternalError, match="has 2 outputs, its replacement 1"):
            replace_node(old, new)
        assert graph.results[0].value is old.outputs[0]

    def test_by_a_node_that_reads_it(self, graph: Graph, x: Value) -> None:
        old = ops.ReLU(x)
        returned(old.output, "y")
        new = ops.Tanh(old)
        replace_node(old, new)
        assert new.inputs == (old.output,) and graph.results[0].value is new.output and new.output.names == ("y",)
        assert whole(graph)

    def test_an_absent_input_stays_absent(self, graph: Graph, x: Value) -> None:
        old = ops.ReLU(x)
        cut = ops.Slice(old, [0], [1], [1])
        graph.set_inputs(cut, [*cut.inputs, None])
        ops.Result(cut)
        replace_node(old, ops.Tanh(x))
        assert cut.inputs[4] is None
        graph.remove(graph.results[0])
        drop_dead([cut])
        assert list(graph) == [x.node]

    def test_in_a_body_results_need_no_name(self) -> None:
        graph = parse(LOOP)
        body = graph.of(ops.Loop)[0].body
        total = body.of(ops.Add)[0]
        replace_node(total, body.parameters[0])
        assert body.results[1].value is body.parameters[0].output and body.of(ops.Identity) == [] and whole(graph)


class TestReplaceOutput:
    def test_the_node_stays(self, graph: Graph, x: Value) -> None:
        old, new = ops.ReLU(x), ops.Tanh(x)
        ops.Result(old)
        old.output.names = ("t",)
        replace_output(old.output, new.output)
        assert old in graph and (old.output.names, new.output.names) == ((), ("t",))

    def test_by_itself_changes_nothing(self, graph: Graph, x: Value) -> None:
        old = ops.ReLU(x)
        returned(old.output, "y")
        replace_output(old.output, old.output)
        assert old.output.names == ("y",) and outputs(graph) == {"y": "y"}

    def test_one_of_several(self, graph: Graph, x: Value) -> None:
        old = ops.Split(x, 0, num_splits=2)
        total = ops.Add(old.outputs[0], old.outputs[1])
        ops.Result(total)
        new = ops.Slice(x, [1], [2], [1], [0])
        replace_output(old.outputs[1], new.output)
        assert total.inputs == (old.outputs[0], new.output) and whole(graph)

    def test_update_name(self, graph: Graph, x: Value) -> None:
        old, new = ops.ReLU(x), ops.Tanh(x, name="new")
        old.rt_info.update(a=1, b=1)
        new.rt_info.update(b=2)
        returned(old.output, "y")
        assert replace_output_update_name(old.output, new.output) is True
        assert (new.name, new.rt_info) == ("y", {"a": 1, "b": 2}) and old not in graph

    @pytest.mark.parametrize("other", ["input", "constant", "output"])
    def test_update_name_refuses_what_cannot_bear_it(self, graph: Graph, x: Value, other: str) -> None:
        old = ops.ReLU(x)
        old.rt_info["a"] = 1
        returned(old.output, "y")
        constant, output = ops.Constant([1.0], graph=graph, dtype=f32), ops.Tanh(x)
        returned(output.output, "z")
        new = {"input": x, "constant": constant.output, "output": output.output}[other]
        assert replace_output_update_name(old.output, new) is False and new.node.rt_info == {}
        assert outputs(graph) == {"y": "y", "z": "z"} and graph.results[0].value is old.output

    def test_eliminate(self, graph: Graph, x: Value) -> None:
        first = ops.ReLU(x, name="first")
        second = ops.Tanh(first, name="second")
        returned(second.output, "y")
        assert eliminate(second) is True and graph.results[0].value is first.output and first.name == "y"
        assert eliminate(first) is False  # an input cannot have the name
        assert whole(graph)

    def test_eliminate_by_another_input(self, graph: Graph, x: Value) -> None:
        kept = ops.Tanh(x)
        total = ops.Add(ops.ReLU(x), kept)
        ops.Result(total)
        assert eliminate(total, 1) is True and graph.results[0].value is kept.output and graph.of(ops.ReLU) == []

    def test_eliminate_by_an_absent_input(self, graph: Graph, x: Value) -> None:
        cut = ops.Slice(x, [0], [1], [1])
        graph.set_inputs(cut, [*cut.inputs, None])
        ops.Result(cut)
        assert eliminate(cut, 4) is False and cut in graph


class TestInsert:
    def test_after(self, graph: Graph, x: Value) -> None:
        old = ops.ReLU(x, name="old")
        old.output.names = ("t",)
        readers = [ops.Tanh(old), ops.Add(old, old)]
        for each in readers:
            ops.Result(each)
        new = insert_after(old.output, ops.Abs)
        assert new.inputs == (old.output,)
        assert [each.inputs for each in readers] == [(new.output,), (new.output, new.output)]
        assert (old.output.names, new.output.names) == ((), ("t",)) and whole(graph)

    def test_after_a_model_output(self, graph: Graph, x: Value) -> None:
        old = ops.ReLU(x)
        returned(old.output, "y")
        new = insert_after(old.output, ops.Abs)
        assert outputs(graph) == {"y": "y"} and new.output.names == ("y",) and whole(graph)

    def test_a_chain_after(self, graph: Graph, x: Value) -> None:
        old = ops.ReLU(x)
        returned(old.output, "y")
        insert_after(old.output, lambda value: ops.Tanh(ops.Abs(value)))
        assert [type(node) for node in graph] == [ops.Parameter, ops.ReLU, ops.Abs, ops.Tanh, ops.Result]
        assert whole(graph)

    def test_names_that_the_new_value_has_are_kept(self, graph: Graph, x: Value) -> None:
        old, new = ops.ReLU(x), ops.Tanh(x)
        old.output.names, new.output.names = ("a",), ("b",)
        ops.Result(old)
        move_readers(old.output, new.output, old.output.uses)
        assert set(new.output.names) == {"a", "b"}

    def test_readers_of_an_output_move_to_an_input_and_both_keep_their_names(self, graph: Graph, x: Value) -> None:
        old = ops.ReLU(x)
        result = returned(old.output, "y")
        other = ops.Tanh(old)
        ops.Result(other)
        move_readers(old.output, x, old.output.uses)
        graph.sweep()
        assert (x.node.name, x.names) == ("x", ("x",))
        assert (result.value.node.name, result.value.names) == ("y", ("y",))
        assert isinstance(result.value.node, Identity) and other.inputs == (x,) and whole(graph)

    def test_before(self, graph: Graph, x: Value) -> None:
        other = ops.Tanh(x)
        total = ops.Subtract(x, x)
        ops.Result(total)
        ops.Result(other)
        new = insert_before(total, 1, ops.Abs)
        assert total.inputs == (x, new.output) and other.inputs == (x,) and whole(graph)

    def test_before_an_absent_input(self, graph: Graph, x: Value) -> None:
        cut = ops.Slice(x, [0], [1], [1])
        graph.set_inputs(cut, [*cut.inputs, None])
        with pytest.raises(InternalError, match="has no input 4"):
            insert_before(cut, 4, ops.Abs)


class TestRuntimeInfo:
    def nodes(self, x: Value, *infos: dict[str, Any]) -> list[Node]:
        made: list[Node] = []
        for info in infos:
            made.append(ops.ReLU(x))
            made[-1].rt_info.update(info)
        return made

    def test_one_to_one(self, x: Value) -> None:
        a, b = self.nodes(x, {"a": 1}, {"b": 2})
        copy_runtime_info(a, b)
        assert (a.rt_info, b.rt_info) == ({"a": 1}, {"a": 1})  # the former rt_info of the destination is lost

    def test_one_to_many(self, x: Value) -> None:
        a, b, c = self.nodes(x, {"a": 1}, {"b": 2}, {})
        copy_runtime_info(a, [b, c])
        assert b.rt_info == c.rt_info == {"a": 1}
        b.rt_info["later"] = 1
        assert "later" not in c.rt_info

    def test_many_to_one(self, x: Value) -> None:
        a, b, c = self.nodes(x, {"a": 1, "s": 1}, {"b": 2, "s": 2}, {"c": 3})
        copy_runtime_info([a, b], c)
        assert c.rt_info == {"a": 1, "b": 2, "s": 1}  # the first is right

    def test_many_to_many(self, x: Value) -> None:
        a, b, c, d = self.nodes(x, {"a": 1}, {"b": 2}, {"c": 3}, {"d": 4})
        copy_runtime_info([a, b], [c, d])
        assert c.rt_info == d.rt_info == {"a": 1, "b": 2}

    def test_a_destination_among_the_sources_keeps_its_own(self, x: Value) -> None:
        a, b = self.nodes(x, {"a": 1}, {"b": 2})
        copy_runtime_info([a, b], b)
        assert b.rt_info == {"a": 1, "b": 2}

    def test_from_nothing_to_something(self, x: Value) -> None:
        a, b = self.nodes(x, {}, {"b": 2})
        copy_runtime_info(a, b)
        assert b.rt_info == {}

    def test_values_that_know_how_to_merge(self, x: Value) -> None:
        class Priority(int):
            def merge(self, other: Priority) -> Priority:
                return Priority(max(self, other))

        a, b, c = self.nodes(x, {"p": Priority(1)}, {"p": Priority(3)}, {})
        copy_runtime_info([a, b], c)
        assert c.rt_info == {"p": 3}

    def test_fused_names_are_a_set(self, x: Value) -> None:
        infos = [{"fused_names": {"name": "fused_names", "version": "0", "value": each}} for each in ("b,a", "c,a")]
        a, b, c = self.nodes(x, *infos, {})
        copy_runtime_info([a, b], c)
        assert c.rt_info["fused_names"]["value"] == "a,b,c" and a.rt_info["fused_names"]["value"] == "b,a"


def counter() -> Graph:
    """count = count + x, across inferences; y = count"""
    graph = Graph("counter")
    x = parameter(graph, 1)
    x.node.name = "x"
    x.names = ("x",)
    variable: dict[str, Any] = {"variable_id": "count", "variable_type": f32, "variable_shape": (1,)}
    count = ops.ReadValue(ops.Constant([0.0], graph=graph, dtype=f32), **variable)
    total = ops.Add(count, x)
    ops.Assign(total, **variable)
    returned(total.output, "y")
    return graph


class TestSinks:
    def test_a_sink_survives_sweep_and_drop_dead(self) -> None:
        graph = counter()
        sink = graph.of(ops.Assign)[0]
        assert graph.sweep() == 0
        drop_dead([sink])
        assert sink in graph
        EliminateUnusedPorts().run(graph)
        assert sink in graph

    def test_and_what_it_reads(self) -> None:
        graph = counter()
        graph.remove(graph.results[0])
        assert graph.sweep() == 0
        drop_dead([*graph.of(ops.Add), *graph.of(ops.ReadValue)])
        assert len(graph) == 5

    def test_where_a_sink_reads_what_is_replaced(self) -> None:
        graph = counter()
        old = graph.of(ops.Add)[0]
        new = ops.Subtract(*old.inputs)
        replace_node(old, new)
        assert graph.of(ops.Assign)[0].inputs == (new.output,) and whole(graph)

# -- random sequences on random graphs


def random_graph(rng: random.Random) -> Graph:
    graph = Graph("random")
    values = [parameter(graph, 2) for _ in range(2)]
    for index, value in enumerate(values):
        value.node.name = f"p{index}"
    values.append(ops.Constant([1.0, 2.0], graph=graph, dtype=f32).output)
    for _ in range(rng.randrange(3, 14)):
        choice = rng.randrange(4)
        if choice < 2:
            values.append(rng.choice((ops.ReLU, ops.Tanh))(rng.choice(values)).output)
        elif choice == 2:
            values.append(ops.Add(rng.choice(values), rng.choice(values)).output)
        else:
            parts = ops.Split(ops.Concat(rng.choice(values), rng.choice(values), axis=0), 0, num_splits=2)
            values += parts.outputs
    for index, value in enumerate(rng.sample(values, 3)):
        name = f"out{index}"
        if value.node.name or not isinstance(value.node, ops.ReLU | ops.Tanh | ops.Add):
            value = ops.Identity(value).output
        returned(value, name)
    if rng.random() < 0.3:
        ops.Assign(rng.choice(values), variable_id="v", variable_type=f32, variable_shape=(2,))
    return graph


def inner_nodes(graph: Graph) -> list[Node]:
    return [node for node in graph if node.outputs and node.inputs and not node.is_kept]


def step(graph: Graph, rng: random.Random) -> None:
    """One edit at a random place; what replaces a node comes before it, so that no cycle can arise."""
    nodes = inner_nodes(graph)
    if not nodes:
        return
    node = rng.choice(nodes)
    order = list(graph.ordered())
    before = [value for each in order[: order.index(node)] for value in each.outputs if value.shape == (2,)]
    fits = all(value.shape == (2,) for value in node.outputs)
    edit = rng.randrange(6)
    if edit == 0 and fits and before:
        replace_node(node, [rng.choice(before) for _ in node.outputs])
    elif edit == 1 and fits and before:
        new = [rng.choice((ops.Abs, ops.Negative))(rng.choice(before)) for _ in node.outputs]
        copy_runtime_info(node, new)
        replace_node(node, new)
    elif edit == 2:
        insert_after(rng.choice(node.outputs), rng.choice((ops.Abs, ops.Identity)))
    elif edit == 3:
        insert_before(node, 0, ops.Negative)
    elif edit == 4 and len(node.outputs) == 1 and node.inputs[0] is not None and node.inputs[0].shape == (2,) and fits:
        eliminate(node)
    elif fits and before:
        replace_output_update_name(node.outputs[0], rng.choice(before))


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_any_sequence_leaves_the_graph_whole(seed: int, length: int) -> None:
    rng = random.Random(seed)
    graph = random_graph(rng)
    names = [result.output_names for result in graph.results]
    sinks = graph.of(ops.Assign)
    for _ in range(length):
        step(graph, rng)
        graph.validate()
        found = invariants(graph)
        assert not found, f"seed {seed}: {found}"
        assert outputs(graph) == {f"out{index}": f"out{index}" for index in range(3)}, f"seed {seed}"
    assert [result.output_names for result in graph.results] == names and graph.of(ops.Assign) == sinks
    graph.sweep()
    assert not invariants(graph)
