"""Passes of every kind on small graphs: which nodes are visited, in which order, how often, and what dispatch skips."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from mo_loop import ops
from mo_loop.errors import InternalError
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.types import f32
from mo_loop.graph.verifier import invariants
from mo_loop.text import parse, to_text
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.pattern import (
    Match,
    Matcher,
    Pattern,
    any_input,
    any_of,
    any_order,
    constant,
    optional,
    repeated,
    wrap_type,
)
from mo_loop.transforms.predicates import consumers_count, rank_equals
from mo_loop.transforms.replace import replace_node
from mo_loop.transforms.rewrite import BackwardGraphRewrite, Dispatch, GraphRewrite, MatcherPass
from tests.unit.graph.graphs import LOOP, chain, parameter


class Finds(MatcherPass):
    """Records its matches; its callback returns `done`."""

    def __init__(self, pattern: Pattern, name: str = "Finds", done: bool = False) -> None:
        super().__init__()
        self.called = name
        self.found: list[Node] = []
        self.done = done
        self.register_matcher(pattern, self.remember)

    @property
    def name(self) -> str:
        return self.called

    def remember(self, match: Match) -> bool:
        self.found.append(match.root)
        return self.done


class Fuses(MatcherPass):
    """Negative(Negative(x))  ->  Abs(x), a change that is easily counted"""

    x = any_input()
    inner = wrap_type(ops.Negative, x, when=consumers_count(1))
    pattern = wrap_type(ops.Negative, inner)

    def matched(self, match: Match) -> bool:
        return self.replace(match, ops.Abs(match[self.x]))


class Becomes(MatcherPass):
    """one kind of node  ->  another; `register`: the new one is visited again"""

    def __init__(self, old: type[Node], new: Callable[..., Any], register: bool = False) -> None:
        super().__init__()
        self.new = new
        self.register = register
        self.x = any_input()
        self.register_matcher(wrap_type(old, self.x), self.rewrite)

    def rewrite(self, match: Match) -> bool:
        node = self.new(match[self.x])
        if self.register:
            self.register_new_node(node)
        return self.replace(match, node)


class Renames(FunctionPass):
    """Gives every Add a name."""

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in self.candidates(graph, ops.Add):
            if node.name:
                self.refuse(node, "it has one")
                continue
            node.name = f"{graph.name}-add"
            changed = self.accept(node)
        return changed


def kinds(graph: Graph) -> list[str]:
    return [type(node).__name__ for node in graph.ordered()]


class TestFunctionPass:
    @pytest.mark.parametrize(
        ("bodies", "visited"), [("first", ["inner", "outer"]), ("last", ["outer", "inner"]), ("never", ["outer"])]
    )
    def test_bodies(self, bodies: Any, visited: list[str]) -> None:
        seen = []

        class Looks(FunctionPass):
            def run_on_graph(self, graph: Graph) -> bool:
                seen.append("inner" if graph.owner is not None else "outer")
                return graph.owner is not None

        Looks.bodies = bodies
        assert Looks().run(parse(LOOP)) is (bodies != "never") and seen == visited

    def test_a_pass_that_changes_counts_and_then_rests(self) -> None:
        graph = parse(LOOP)
        each = Renames()
        assert each.run(graph) and each.matches == 1 and each.run(graph) is False
        assert each.matches == 1

    def test_nothing_to_do(self) -> None:
        graph, _ = chain(3)
        assert Renames().run(graph) is False

    def test_a_body_of_a_node_removed_on_the_way_is_not_visited(self) -> None:
        graph = parse(LOOP)
        loop = graph.of(ops.Loop)[0]
        seen = []

        class Drops(FunctionPass):
            bodies = "last"

            def run_on_graph(self, graph: Graph) -> bool:
                seen.append(graph)
                if graph.owner is None:
                    graph.remove(graph.results[0])
                    graph.remove(loop)
                return True

        Drops().run(graph)
        assert seen == [graph]

    def test_candidates_that_disappear_are_left_out(self) -> None:
        graph, nodes = chain(3)

        class Drops(FunctionPass):
            def run_on_graph(self, graph: Graph) -> bool:
                seen = []
                for node in self.candidates(graph, ops.Negative):
                    seen.append(node)
                    if node is nodes[0]:
                        graph.remove(graph.results[0])
                        graph.remove(nodes[2])
                assert seen == nodes[:2]
                return True

        assert Drops().run(graph)


class TestMatcherPass:
    def test_on_a_graph_and_a_second_time(self) -> None:
        graph, _ = chain(4)
        each = Fuses()
        assert each.run(graph)
        graph.validate()
        assert kinds(graph) == ["Parameter", "Abs", "Abs", "Result"] and each.matches == 2 and not invariants(graph)
        before = to_text(graph)
        assert each.run(graph) is False and to_text(graph) == before

    def test_its_negative_twin(self) -> None:
        graph, nodes = chain(2)
        ops.Result(nodes[0])  # the inner one has another consumer
        each = Fuses()
        assert each.run(graph) is False and each.matches == 0 and kinds(graph).count("Negative") == 2

    def test_inside_a_body(self) -> None:
        graph = parse(LOOP.replace("%n = Add(%s, %k)", "%a = Negative(%s)\n        %n = Negative(%a)"))
        assert Fuses().run(graph)
        graph.validate()
        assert kinds(graph.of(ops.Loop)[0].body).count("Abs") == 1 and not invariants(graph)

    def test_by_hand_on_one_node(self) -> None:
        graph, nodes = chain(4)
        each = Fuses()
        assert each.match(nodes[0]) is None and each.run_on_node(nodes[0]) is False
        match = each.match(nodes[3])
        assert match is not None and match[each.x] is nodes[1].output
        assert len(graph) == 6  # matching changes nothing
        assert each.run_on_node(nodes[3]) is True and each.matches == 1 and kinds(graph).count("Negative") == 2

    def test_one_matcher_only(self) -> None:
        each = Fuses()
        with pytest.raises(InternalError, match="Fuses registers a second matcher"):
            each.register_matcher(wrap_type(ops.Add), lambda match: False)

    def test_one_matcher_at_least(self) -> None:
        class Empty(MatcherPass):
            pass

        with pytest.raises(InternalError, match="Empty registered no matcher"):
            GraphRewrite([Empty()])
        with pytest.raises(InternalError, match="Empty registered no matcher"):
            Empty().run_on_node(chain(1)[1][0])

    def test_a_result_cannot_be_a_root(self) -> None:
        with pytest.raises(InternalError, match="a Result has no output"):
            Finds(any_of(wrap_type(ops.Add), wrap_type(ops.Result)))

    def test_what_is_disabled_by_default_still_runs_by_hand(self) -> None:
        class Shy(Fuses):
            enabled_by_default = False

        graph, _ = chain(2)
        assert Shy().run(graph)

    def test_rt_info_names_and_uses_move(self) -> None:
        graph, nodes = chain(2)
        nodes[0].rt_info["a"], nodes[1].rt_info["b"] = 1, 2
        nodes[1].name = "last"
        nodes[1].output.names = ("tensor",)
        assert Fuses().run(graph)
        new = graph.of(ops.Abs)[0]
        assert (new.name, new.output.names, new.rt_info) == ("last", ("tensor",), {"a": 1, "b": 2})


class TestGraphRewrite:
    def test_those_registered_first_are_asked_first(self) -> None:
        graph, _nodes = chain(1)
        asked: list[str] = []

        class Says(Finds):
            def remember(self, match: Match) -> bool:
                asked.append(self.name)
                return super().remember(match)

        pattern = wrap_type(ops.Negative)
        first, second, third = Says(pattern, "a"), Says(pattern, "b", done=True), Says(pattern, "c")
        assert GraphRewrite([first, second, third]).run(graph)
        assert asked == ["a", "b"]  # the first True ends the visit
        assert third.found == [] and second.matches == 1 and first.matches == 0

    def test_producers_first_and_consumers_first(self) -> None:
        graph, nodes = chain(3)
        forward, backward = (Finds(wrap_type(ops.Negative)) for _ in range(2))
        GraphRewrite([forward]).run(graph)
        BackwardGraphRewrite([backward]).run(graph)
        assert forward.found == nodes and backward.found == nodes[::-1]

    def test_the_direction_decides_what_an_odd_chain_becomes(self) -> None:
        forward, backward = chain(3)[0], chain(3)[0]
        GraphRewrite([Fuses()]).run(forward)
        BackwardGraphRewrite([Fuses()]).run(backward)
        assert type(forward.results[0].value.node) is ops.Negative and type(backward.results[0].value.node) is ops.Abs

    @pytest.mark.parametrize("direction", [GraphRewrite, BackwardGraphRewrite])
    def test_new_nodes_are_visited_by_the_matchers_behind_and_by_all_if_registered(self, direction: Any) -> None:
        for register, is_first, last in ((False, True, ops.Tanh), (False, False, ops.Abs), (True, False, ops.Tanh)):
            graph, _ = chain(3)
            passes = [Becomes(ops.Negative, ops.Abs, register), Becomes(ops.Abs, ops.Tanh)]
            assert direction(passes if is_first else passes[::-1]).run(graph)
            assert {type(node) for node in graph if node.inputs} == {last, ops.Result}

    def test_an_inner_node_of_a_replacement_is_visited_by_the_matchers_behind(self) -> None:
        graph, _ = chain(1)
        rewrite = GraphRewrite([Becomes(ops.Negative, lambda x: ops.ReLU(ops.Abs(x))), Becomes(ops.Abs, ops.Tanh)])
        assert rewrite.run(graph) and kinds(graph) == ["Parameter", "Tanh", "ReLU", "Result"]

    def test_a_node_whose_input_a_later_match_changes_is_visited_by_the_matchers_behind(self) -> None:
        graph, _ = chain(3)
        seen = Finds(wrap_type(ops.Negative, wrap_type(ops.Abs, any_input())), "seen")

        class ChangesTheFirst(MatcherPass):
            """-(-(-x))  ->  -(-|x|)"""

            pattern = wrap_type(ops.Negative, wrap_type(ops.Negative, wrap_type(ops.Negative, any_input())))

            def matched(self, match: Match) -> bool:
                first = match.root.producers[0].producers[0]
                replace_node(first, ops.Abs(first.inputs[0]))
                return True

        assert GraphRewrite([ChangesTheFirst(), seen]).run(graph) and seen.found == [graph.of(ops.Negative)[0]]

    def test_a_chain_of_fusions(self) -> None:
        graph = Graph("main")
        value = parameter(graph, 2)
        for _ in range(16):
            value = ops.Add(value, 1.0).output
        ops.Result(value)

        class Adds(MatcherPass):
            """(x + a) + b  ->  x + c, which may be the x + a of the next one"""

            x, a, b = any_input(), constant(), constant()
            pattern = wrap_type(ops.Add, wrap_type(ops.Add, x, a), b)

            def matched(self, match: Match) -> bool:
                total = match[self.a].constant + match[self.b].constant
                return self.replace(match, self.register_new_node(ops.Add(match[self.x], total)))

        each = Adds()
        assert GraphRewrite([each]).run(graph)
        graph.validate()
        assert each.matches == 15 and kinds(graph).count("Add") == 1
        assert graph.of(ops.Add)[0].inputs[1].constant == 16  # type: ignore[union-attr]
        assert not invariants(graph)

    def test_several_new_nodes_are_visited_in_their_order_and_before_the_rest(self) -> None:
        graph, _nodes = chain(2)
        seen = Finds(any_input(), "seen")

        class Splits(MatcherPass):
            x = any_input()
            pattern = wrap_type(ops.Negative, x)

            def matched(self, match: Match) -> bool:
                first = self.register_new_node(ops.ReLU(match[self.x]))
                second = self.register_new_node(ops.Tanh(first))
                return self.replace(match, second, also=[first])

        GraphRewrite([Splits(), seen]).run(graph)
        assert [type(node) for node in seen.found] == [ops.Parameter, ops.ReLU, ops.Tanh, ops.ReLU, ops.Tanh]

    def test_nodes_dropped_on_the_way_are_not_visited(self) -> None:
        graph, nodes = chain(3)

        class Cuts(MatcherPass):
            pattern = wrap_type(ops.Negative, any_input())

            def matched(self, match: Match) -> bool:
                graph.set_input(graph.results[0], 0, match.root.output)
                graph.remove(nodes[2])
                graph.remove(nodes[1])
                return True

        each = Cuts()
        assert each.run(graph) and each.matches == 1 and kinds(graph) == ["Parameter", "Negative", "Result"]

    def test_a_node_dropped_by_a_callback_that_says_no_is_not_asked_about_again(self) -> None:
        graph, _nodes = chain(1)
        after = Finds(any_input())

        class Drops(MatcherPass):
            pattern = wrap_type(ops.Negative, any_input())

            def matched(self, match: Match) -> bool:
                graph.remove(graph.results[0])
                graph.remove(match.root)
                return False

        GraphRewrite([Drops(), after]).run(graph)
        assert after.found == [graph.parameters[0]]

    def test_a_matcher_for_the_top_level_alone(self) -> None:
        class Top(Finds):
            bodies = "never"

        graph = parse(LOOP)
        top, everywhere = Top(any_input(), "top"), Finds(any_input(), "everywhere")
        GraphRewrite([top, everywhere]).run(graph)
        assert {node.graph for node in top.found} == {graph}
        assert {node.graph for node in everywhere.found} == set(graph.scopes())

    def test_a_root_that_is_a_subclass_of_a_subclass(self) -> None:
        class Once(ops.Negative, opset=1):
            pass

        class Twice(Once, opset=1):
            pass

        graph = Graph("main")
        node = Twice(Once(parameter(graph, 2)))
        every, last = Finds(wrap_type(ops.Negative, any_input())), Finds(wrap_type(Twice, wrap_type(ops.Negative)))
        GraphRewrite([every, last]).run(graph)
        assert every.found == [node.inputs[0].node, node]  # type: ignore[union-attr]
        assert last.found == [node]

    def test_a_root_of_any_type(self) -> None:
        graph, nodes = chain(2)
        ops.Result(ops.Reshape(nodes[1], [1, 2]))
        each = Finds(any_input(when=rank_equals(1) & consumers_count(1)))
        each.run(graph)
        assert each.found == [graph.parameters[0], nodes[0], graph.of(ops.Constant)[0]]

    def test_without_matchers(self) -> None:
        assert GraphRewrite().run(chain(2)[0]) is False

    def test_a_matcher_that_nobody_is_interested_in_costs_no_attempt(self) -> None:
        graph, nodes = chain(3)
        add, product = Finds(wrap_type(ops.Add)), Finds(wrap_type(ops.Negative, wrap_type(ops.Multiply)))
        dispatch = Dispatch([add, product])
        assert [dispatch.of(node) for node in graph] == [()] * len(graph)
        last = Finds(wrap_type(ops.Negative, wrap_type(ops.Negative)))
        dispatch = Dispatch([last])
        assert [dispatch.of(node) for node in nodes] == [(), (last,), (last,)]

    def test_the_second_producer_counts_too(self) -> None:
        graph = Graph("main")
        x = parameter(graph, 2)
        each = Finds(any_order(ops.Add, any_input(), wrap_type(ops.ReLU)))
        dispatch = Dispatch([each])
        assert dispatch.of(ops.Add(x, x)) == () and dispatch.of(ops.Add(x, ops.ReLU(x))) == (each,)
        assert dispatch.of(ops.Add(ops.ReLU(x), x)) == (each,)


UNARY = (ops.ReLU, ops.Tanh, ops.Sigmoid, ops.Negative, ops.Abs)
BINARY = (ops.Add, ops.Multiply, ops.Maximum)


def random_graph(rng: random.Random, size: int) -> Graph:
    graph = Graph("random")
    values = [parameter(graph, 4) for _ in range(2)]
    values.append(ops.Constant([1.0] * 4, graph=graph, dtype=f32).output)
    for _ in range(size):
        near = values[-5:] if rng.random() < 0.7 else values
        choice = rng.random()
        if choice < 0.5:
            values.append(rng.choice(UNARY)(rng.choice(near)).output)
        elif choice < 0.8:
            values.append(rng.choice(BINARY)(rng.choice(near), rng.choice(near)).output)
        elif choice < 0.9:
            value = ops.Concat(*rng.sample(near, 2), axis=0).output
            values += ops.Split(value, 0, num_splits=2).outputs
        else:
            low = ops.Clamp(rng.choice(near), min=0.0, max=1.0) if rng.random() < 0.5 else rng.choice(near)
            values.append(ops.Slice(low, [0], [4], [1], *([[0]] if rng.random() < 0.5 else [])).output)
    for value in values:
        if not value.is_used:
            ops.Result(value)
    return graph


def random_pattern(rng: random.Random, depth: int, known: list[Pattern]) -> Pattern:
    def inner() -> Pattern:
        return random_pattern(rng, depth - 1, known)

    if known and rng.random() < 0.1:
        return rng.choice(known)
    if depth == 0:
        made = rng.choice([any_input(), any_input(when=consumers_count(1)), constant(), wrap_type(ops.Parameter)])
        known.append(made)
        return made
    choice = rng.randrange(9)
    if choice < 2:
        made = wrap_type(rng.choice(UNARY), *([inner()] if rng.random() < 0.8 else []))
    elif choice == 2:
        made = wrap_type(rng.choice(BINARY), inner(), inner())
    elif choice == 3:
        made = any_order(tuple(rng.sample(BINARY, 2)), inner(), inner())
    elif choice == 4:
        made = any_of(inner(), inner())
    elif choice == 5:
        made = optional(rng.choice(UNARY), inner())
    elif choice == 6:
        kind = rng.choice(UNARY)
        made = repeated(lambda p: wrap_type(kind, p), inner(), at_least=rng.randrange(2), at_most=rng.choice([None, 2]))
    elif choice == 7:
        made = wrap_type(ops.Split, *rng.choice([(), (inner(), ...)])).output(rng.randrange(2))
    else:
        rest = rng.choice([(), (None,), (any_input(),), (...,)])
        made = wrap_type(ops.Slice, inner(), any_input(), any_input(), any_input(), *rest)
    known.append(made)
    return made


@pytest.mark.parametrize("seed", range(40))
def test_dispatch_loses_no_match(seed: int) -> None:
    rng = random.Random(seed)
    graph = random_graph(rng, 60)
    patterns = [random_pattern(rng, rng.randrange(1, 4), []) for _ in range(25)]
    passes = [Finds(pattern) for pattern in patterns]
    GraphRewrite(passes).run(graph)
    for each in passes:
        plain = [node for node in graph.ordered() if Matcher(each.matcher.pattern).match(node) is not None]
        assert each.found == plain, f"seed {seed}: {each.matcher.pattern!r}"


def test_the_random_patterns_do_match() -> None:
    """Without it, the test above could compare nothing with nothing."""
    found = 0
    for seed in range(40):
        rng = random.Random(seed)
        graph = random_graph(rng, 60)
        for _ in range(25):
            pattern = random_pattern(rng, rng.randrange(1, 4), [])
            hits = sum(Matcher(pattern).match(node) is not None for node in graph.ordered())
            found += 0 < hits < len(graph) // 2
    assert found > 300  # of 1,000


def test_values_of_one_graph_stay_in_it() -> None:
    """A rewriting in a body that would read a value of the outer graph is refused, with the name of the pass."""
    graph = parse(LOOP)
    outer: Value = graph.parameters[1].output

    class Leaves(MatcherPass):
        pattern = wrap_type(ops.Add)

        def matched(self, match: Match) -> bool:
            return self.replace(match, ops.Negative(outer))

    with pytest.raises(InternalError, match="would cross graphs") as caught:
        Leaves().run(graph)
    assert caught.value.during == "the pass Leaves"
