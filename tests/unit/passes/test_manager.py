"""A pipeline: order, inference after each pass, nesting, observers, and errors with their place."""

from __future__ import annotations

from typing import Any

import pytest

from mo_loop import ops
from mo_loop.errors import InternalError, TypeError_, UsageError
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.types import TensorType, f32
from mo_loop.text import parse
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.manager import Manager, Step, Stop, Validate, check_invariants, flattened, stop_after
from mo_loop.transforms.pattern import Match, any_input, wrap_type
from mo_loop.transforms.predicates import Predicate
from mo_loop.transforms.rewrite import GraphRewrite, MatcherPass
from tests.harness import raised
from tests.unit.graph.graphs import LOOP, chain, parameter

from .small_passes import AbsToReLU, NegativeToAbs, Notes


def kinds(graph: Graph) -> list[str]:
    return [type(node).__name__ for node in graph.ordered()]


class Acts(FunctionPass):
    """Calls a function with the graph; returns whether it changed something, unless the function returns False."""

    def __init__(self, action: Any, bodies: Any = "never") -> None:
        self.action = action
        self.bodies = bodies  # type: ignore[misc]

    def run_on_graph(self, graph: Graph) -> bool:
        return self.action(graph) is not False


class TestOrder:
    def test_passes_of_every_kind_one_after_another(self) -> None:
        graph, _ = chain(2)
        assert Manager([NegativeToAbs(), GraphRewrite([AbsToReLU()])]).run(graph)
        assert kinds(graph) == ["Parameter", "ReLU", "ReLU", "Result"]
        assert Manager([NegativeToAbs(), GraphRewrite([AbsToReLU()])]).run(graph) is False

    def test_register_returns_the_pass(self) -> None:
        manager = Manager()
        each = manager.register(NegativeToAbs())
        assert isinstance(each, NegativeToAbs) and each.config is manager.config

    def test_nested_managers_run_in_their_places(self) -> None:
        log: list[str] = []
        inner = Manager([Notes(log, "b"), Manager([Notes(log, "c")])])
        outer = Manager([Notes(log, "a"), inner, Notes(log, "d")])
        assert outer.run(chain(1)[0]) is False and log == ["a", "b", "c", "d"]
        assert [each.name for each in flattened(outer.passes)] == log

    def test_a_change_deep_inside_is_a_change(self) -> None:
        assert Manager([Manager([NegativeToAbs()]), Notes([])]).run(chain(1)[0])

    def test_bodies_are_left_to_the_passes(self) -> None:
        graph = parse(LOOP)
        seen: list[str] = []
        Manager([Acts(lambda scope: seen.append(scope.path) or False, "first")]).run(graph)
        assert len(seen) == 2


class Watched(ops.Negative, opset=1):
    """Counts its inferences."""

    inferred: Any = ()

    def infer_types(self) -> Any:
        Watched.inferred = (*Watched.inferred, self)
        return super().infer_types()


class TestInference:
    @pytest.fixture
    def watched(self) -> tuple[Graph, list[Watched]]:
        graph = Graph("main")
        nodes = [Watched(parameter(graph, 2))]
        for _ in range(3):
            nodes.append(Watched(nodes[-1]))
        ops.Result(nodes[-1])
        Watched.inferred = ()
        return graph, nodes

    def test_only_downstream_of_a_change(self, watched: tuple[Graph, list[Watched]]) -> None:
        graph, nodes = watched

        def widen(graph: Graph) -> None:
            graph.set_input(nodes[2], 0, ops.Concat(nodes[1], nodes[1], axis=0).output)

        Manager([Acts(widen)]).run(graph)
        assert Watched.inferred == (nodes[2], nodes[3]) and nodes[3].output.shape == (4,)

    def test_it_ends_where_nothing_new_is_found(self, watched: tuple[Graph, list[Watched]]) -> None:
        graph, nodes = watched
        same = ops.Abs(nodes[0]).output
        Manager([Acts(lambda graph: graph.set_input(nodes[1], 0, parameter(graph, 2)))]).run(graph)
        assert Watched.inferred == (nodes[1],)
        graph.set_input(nodes[2], 0, same)
        Manager([Acts(lambda graph: graph.set_input(nodes[2], 0, nodes[0].output))]).run(graph)
        assert Watched.inferred == (nodes[1],) and same.type is nodes[0].output.type, "the type is the same object"

    def test_after_each_pass_that_changed_something(self, watched: tuple[Graph, list[Watched]]) -> None:
        graph, nodes = watched
        seen = []

        def change(graph: Graph) -> None:
            graph.set_input(nodes[0], 0, parameter(graph, 5))

        Manager([Acts(change), Acts(lambda graph: seen.append(nodes[3].output.shape) or False)]).run(graph)
        assert seen == [(5,)]

    def test_not_after_one_that_did_not(self, watched: tuple[Graph, list[Watched]]) -> None:
        graph, _nodes = watched
        Manager([Acts(lambda graph: False)]).run(graph)
        assert Watched.inferred == ()

    def test_a_body_is_typed_with_its_owner(self) -> None:
        graph = parse(LOOP)
        loop = graph.of(ops.Loop)[0]

        def retype(graph: Graph) -> None:
            for parameter_ in graph.parameters[1:]:
                parameter_.retype(TensorType(f32, (7,)))

        Manager([Acts(retype)]).run(graph)
        assert loop.outputs[0].shape == (7,) and loop.body.of(ops.Add)[0].output.shape == (7,)

    def test_as_a_pass(self) -> None:
        graph, nodes = chain(1)
        assert Validate().run(graph) is False
        graph.set_input(nodes[0], 0, parameter(graph, 5))
        assert Validate().run(graph) is True and nodes[0].output.shape == (5,) and Validate().run(graph) is False


class TestObservers:
    def test_a_step_says_what_a_pass_did(self) -> None:
        graph, _ = chain(2)
        steps: list[Step] = []
        rewrite = GraphRewrite([AbsToReLU(), AbsToReLU()])
        Manager([NegativeToAbs(), rewrite, NegativeToAbs()], [steps.append]).run(graph)
        first, second, third = steps
        assert (first.name, first.changed, first.matches, first.matchers) == ("NegativeToAbs", True, 2, ())
        assert (first.nodes_before, first.nodes_after) == (4, 4) and first.graph is graph
        assert (second.name, second.matches, second.matchers) == ("GraphRewrite", 2, (("AbsToReLU", 2),))
        assert (third.changed, third.matches) == (False, 0) and all(step.seconds > 0 for step in steps)

    def test_counts_are_those_of_this_run(self) -> None:
        each = AbsToReLU()
        steps: list[Step] = []
        manager = Manager([NegativeToAbs(), each], [steps.append])
        manager.run(chain(3)[0])
        manager.run(chain(2)[0])
        assert [step.matches for step in steps] == [3, 3, 2, 2] and each.matches == 5

    def test_matchers_of_one_name_are_counted_together(self) -> None:
        graph, _ = chain(3)
        steps: list[Step] = []
        first, second = AbsToReLU(), AbsToReLU()
        first.matches = 10  # from somewhere else
        Manager([NegativeToAbs(), GraphRewrite([first, second])], [steps.append]).run(graph)
        assert steps[1].matchers == (("AbsToReLU", 3),)

    def test_nodes_of_bodies_are_counted(self) -> None:
        graph = parse(LOOP)
        steps: list[Step] = []
        Manager([Notes([])], [steps.append]).run(graph)
        assert steps[0].nodes_before == sum(len(scope) for scope in graph.scopes()) > len(graph)

    def test_outer_observers_see_nested_steps_and_inner_ones_only_theirs(self) -> None:
        outer: list[str] = []
        inner: list[str] = []
        nested = Manager([Notes([], "b")], [lambda step: inner.append(step.name)])
        Manager([Notes([], "a"), nested, Notes([], "c")], [lambda step: outer.append(step.name)]).run(chain(1)[0])
        assert outer == ["a", "b", "c"] and inner == ["b"]

    def test_the_graph_is_typed_when_an_observer_sees_it(self) -> None:
        seen = []
        Manager([NegativeToAbs()], [lambda step: seen.append(step.graph.is_dirty)]).run(chain(2)[0])
        assert seen == [False]

    def test_stop_after(self) -> None:
        log: list[str] = []
        passes = [Notes(log, "a"), Manager([Notes(log, "b"), Notes(log, "a")]), Notes(log, "c")]
        Manager(passes, [stop_after("a", passes)]).run(chain(1)[0])
        assert log == ["a", "b", "a"]  # the last one of that name
        raised(UsageError, stop_after, "x", passes, match="no pass is called 'x'")

    def test_stop_from_a_nested_observer_stops_everything(self) -> None:
        log: list[str] = []

        def stop(step: Step) -> None:
            raise Stop

        Manager([Manager([Notes(log, "a"), Notes(log, "b")], [stop]), Notes(log, "c")]).run(chain(1)[0])
        assert log == ["a"]

    def test_check_invariants_names_the_pass(self) -> None:
        graph, nodes = chain(2)

        def break_it(graph: Graph) -> None:
            nodes[1].inputs = (graph.parameters[0].output,)  # without the writers

        with pytest.raises(InternalError, match="violates its invariants") as caught:
            Manager([Acts(break_it)], [check_invariants]).run(graph)
        assert (caught.value.code, caught.value.during) == ("ML410", "the pass Acts")


class Raises(MatcherPass):
    """Raises in the predicate of its pattern or in its callback."""

    def __init__(self, where: str, error: Exception) -> None:
        super().__init__()
        self.error = error

        def check(value: Value) -> bool:
            return where != "predicate" or self.fail()

        self.register_matcher(wrap_type(ops.Add, any_input(), any_input(when=Predicate("luck", check))), self.rewrite)

    def fail(self) -> bool:
        raise self.error

    def rewrite(self, match: Match) -> bool:
        return self.fail()


class Unlucky(ops.Negative, opset=1):
    """Fails when it is inferred a second time."""

    def infer_types(self) -> Any:
        raise LookupError("nothing there")


class TestErrors:
    @pytest.fixture
    def graph(self) -> Graph:
        graph = parse(LOOP)
        loop = graph.of(ops.Loop)[0]
        loop.name, loop.body.name = "loop", "body"
        loop.body.of(ops.Add)[0].name = "sum"
        return graph

    @pytest.mark.parametrize("where", ["predicate", "callback"])
    @pytest.mark.parametrize("wrapped", [False, True])
    def test_in_a_matcher(self, graph: Graph, where: str, wrapped: bool) -> None:
        cause = KeyError("lost")
        each: FunctionPass = Raises(where, cause)
        with pytest.raises(InternalError, match="KeyError: 'lost'") as caught:
            Manager([GraphRewrite([each]) if wrapped else each]).run(graph)  # type: ignore[list-item]
        assert caught.value.during == "the pass Raises" and caught.value.where == "loop/body/sum"
        assert caught.value.__cause__ is cause

    def test_in_a_matcher_run_alone(self, graph: Graph) -> None:
        caught = raised(InternalError, Raises("callback", RuntimeError("boom")).run, graph, match="boom")
        assert (caught.during, caught.where) == ("the pass Raises", "loop/body/sum")

    def test_an_error_of_ours_stays_what_it_is(self, graph: Graph) -> None:
        error = TypeError_("shapes differ", code="ML239")
        caught = raised(TypeError_, Manager([Raises("callback", error)]).run, graph)
        assert (caught.message, caught.code) == ("shapes differ", "ML239")
        assert (caught.during, caught.where) == ("the pass Raises", "loop/body/sum")
        assert caught.__cause__ is None and caught.__suppress_context__ and (error.during, error.where) == ("", "")

    def test_its_own_place_is_kept(self, graph: Graph) -> None:
        error = TypeError_("shapes differ", where="elsewhere")
        assert raised(TypeError_, Manager([Manager([Raises("callback", error)])]).run, graph).where == "elsewhere"

    def test_in_a_pass_between_candidates_and_outside_of_them(self, graph: Graph) -> None:
        class Fails(FunctionPass):
            late = False

            def run_on_graph(self, graph: Graph) -> bool:
                for _ in self.candidates(graph, ops.Add):
                    if not self.late:
                        raise RuntimeError("boom")
                if graph.owner is None:
                    raise RuntimeError("late")
                return False

        each = Fails()
        caught = raised(InternalError, Manager([each]).run, graph, match="RuntimeError: boom")
        assert (caught.during, caught.where) == ("the pass Fails", "loop/body/sum")
        each.late = True
        assert raised(InternalError, Manager([each]).run, graph, match="RuntimeError: late").where == ""

    def test_in_the_inference_after_a_pass(self) -> None:
        graph = Graph("main")
        x = parameter(graph, 2)
        unlucky = Unlucky(x, name="unlucky")
        ops.Result(unlucky)

        class Looks(FunctionPass):
            def run_on_graph(self, graph: Graph) -> bool:
                for node in graph.of(ops.Parameter):
                    self.leaves(node)  # the last that it looked at has nothing to do with what follows
                graph.touch(unlucky)
                return True

        caught = raised(InternalError, Manager([Looks()]).run, graph, match="inference: LookupError: nothing there")
        assert (caught.during, caught.where) == ("the pass Looks", "unlucky")
        assert isinstance(caught.__cause__, LookupError)

    def test_in_the_inference_of_a_body(self, graph: Graph) -> None:
        loop = graph.of(ops.Loop)[0]
        total: Node = loop.body.of(ops.Add)[0]
        loop.body.set_input(loop.body.results[1], 0, Unlucky(total, name="unlucky").output)

        with pytest.raises(InternalError, match="LookupError") as caught:
            Manager([Acts(lambda graph: loop.body.touch(loop.body.of(Unlucky)[0]))]).run(graph)
        assert caught.value.where == "loop/body/unlucky"

    def test_types_that_no_longer_fit(self, graph: Graph) -> None:
        total = graph.of(ops.Loop)[0].body.of(ops.Add)[0]

        def misfit(graph: Graph) -> None:
            body = total.graph
            body.set_input(total, 1, ops.Constant([1.0, 2.0, 3.0], graph=body, dtype=f32).output)

        caught = raised(TypeError_, Manager([Acts(misfit)]).run, graph)
        assert (caught.during, caught.where) == ("the pass Acts", "loop/body/sum")

    def test_a_veto_that_fails(self, graph: Graph) -> None:
        manager = Manager([AbsToReLU(), NegativeToAbs()])
        manager.config.veto(lambda node: 1 // 0)  # type: ignore[arg-type,return-value]
        fine, nodes = chain(1)
        caught = raised(InternalError, manager.run, fine, match="ZeroDivisionError")
        assert caught.during == "the pass NegativeToAbs" and caught.where == nodes[0].path
