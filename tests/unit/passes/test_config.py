"""Which passes run, which nodes they must not change, and their explanations and times."""

from __future__ import annotations

import json
import time

import pytest

from mo_loop import ops
from mo_loop.conversion import phase
from mo_loop.graph import Graph, Node
from mo_loop.text import parse
from mo_loop.transforms.config import Explanation, PassConfig
from mo_loop.transforms.front.loop_elimination import EliminateUnusedPorts
from mo_loop.transforms.front.loop_to_ti import LoopToTI, ScanLowering
from mo_loop.transforms.manager import Manager
from mo_loop.transforms.pattern import any_input, wrap_type
from mo_loop.transforms.predicates import has_static_rank, rank_equals
from mo_loop.transforms.profile import Profile
from mo_loop.transforms.rewrite import GraphRewrite, MatcherPass
from mo_loop.transforms.runtime.lower_barriers import LowerBarriers
from tests import ROOT
from tests.golden.test_golden import read
from tests.unit.graph.graphs import LOOP, chain, parameter
from tests.unit.passes.small_passes import AbsToReLU, NegativeToAbs, Notes, ReLUToTanh

# -- Which passes run, which nodes they must not change, and their explanations, for one pipeline only


def kinds(graph: Graph) -> list[str]:
    return [type(node).__name__ for node in graph.ordered()]


class TestWhichPassesRun:
    @pytest.mark.parametrize("how", ["name", "class", "instance"])
    @pytest.mark.parametrize("late", [False, True])
    def test_disable(self, how: str, late: bool) -> None:
        graph, _ = chain(1)
        each = NegativeToAbs()
        what = {"name": "NegativeToAbs", "class": NegativeToAbs, "instance": each}[how]
        manager = Manager([each] if late else [])
        manager.config.disable(what)
        if not late:
            manager.register(each)
        assert manager.run(graph) is False
        manager.config.enable(what)
        assert manager.run(graph) is True

    def test_what_is_disabled_by_default(self) -> None:
        for config, last in ((PassConfig(), "ReLU"), (enabling(ReLUToTanh), "Tanh")):
            graph, _ = chain(1)
            Manager([NegativeToAbs(), AbsToReLU(), ReLUToTanh()], config=config).run(graph)
            assert kinds(graph) == ["Parameter", last, "Result"]

    def test_matchers_in_a_rewriting(self) -> None:
        graph, _ = chain(1)
        manager = Manager([NegativeToAbs(), GraphRewrite([AbsToReLU(), ReLUToTanh()])])
        manager.config.disable(AbsToReLU)
        manager.run(graph)
        assert kinds(graph) == ["Parameter", "Abs", "Result"]
        manager.config.enable(AbsToReLU, ReLUToTanh)
        manager.run(graph)
        manager.run(graph)
        assert kinds(graph) == ["Parameter", "Tanh", "Result"]

    def test_a_rewriting_alone(self) -> None:
        graph = Graph("main")
        ops.Result(ops.Abs(parameter(graph, 2)))
        rewrite = GraphRewrite([AbsToReLU()])
        rewrite.config.disable(AbsToReLU)
        assert rewrite.run(graph) is False
        rewrite.config.enable(AbsToReLU)
        assert rewrite.run(graph) is True

    def test_nested_managers_share_it(self) -> None:
        log: list[str] = []
        innermost = Manager([Notes(log, "a"), Notes(log, "b")])
        outer = Manager([Manager([innermost]), Notes(log, "a")])
        outer.config.disable("a")
        outer.run(chain(1)[0])
        assert log == ["b"] and innermost.config is outer.config
        innermost.config.disable("b")
        outer.run(chain(1)[0])
        assert log == ["b"]

    def test_what_was_said_before_the_registration_is_kept(self) -> None:
        log: list[str] = []
        inner = Manager([Notes(log, "a"), Notes(log, "b"), Notes(log, "c")])
        inner.config.disable("a", "b")
        outer = Manager(config=enabling("b"))
        outer.register(inner)
        outer.run(chain(1)[0])
        assert log == ["b", "c"]  # the outer one had a reason about b itself

    def test_the_same_of_vetoes_and_explanations(self) -> None:
        graph, _nodes = chain(1)
        each = NegativeToAbs()
        each.config.veto(lambda node: True)
        each.config.explain(NegativeToAbs)
        manager = Manager([each])
        assert manager.run(graph) is False and [found.outcome for found in manager.config.explanations] == ["vetoed"]

    def test_two_managers_do_not_see_each_other(self) -> None:
        log: list[str] = []
        shared = Notes(log, "a")
        first, second = Manager([shared]), Manager([shared])
        first.config.disable("a")
        first.config.veto(lambda node: True)
        first.config.explain("a")
        first.run(chain(1)[0])
        assert log == []
        second.run(chain(1)[0])
        assert log == ["a"] and second.config.named == frozenset() and PassConfig().named == frozenset()

    def test_a_pass_moved_on_brings_nothing_of_the_first_manager(self) -> None:
        each = NegativeToAbs()
        first = Manager([each])
        first.config.disable("Other")
        second = Manager([each])
        assert second.config.is_enabled("Other") and each.config is second.config

    def test_what_it_is_about(self) -> None:
        config = enabling("a")
        config.disable("b")
        config.veto(lambda node: False, "c")
        config.veto(lambda node: False)
        config.explain("d")
        assert config.named == {"a", "b", "c", "d"}


def enabling(*passes: object) -> PassConfig:
    config = PassConfig()
    config.enable(*passes)
    return config


class TestVetoes:
    def test_of_one_pass(self) -> None:
        graph, nodes = chain(3)
        manager = Manager([NegativeToAbs(), AbsToReLU()])
        manager.config.veto(lambda node: node is nodes[1], NegativeToAbs)
        manager.run(graph)
        assert kinds(graph) == ["Parameter", "ReLU", "Negative", "ReLU", "Result"]

    def test_of_all_passes_by_a_rule(self) -> None:
        graph, _nodes = chain(3)
        manager = Manager([NegativeToAbs(), AbsToReLU()])
        manager.config.veto(lambda node: isinstance(node, ops.Abs))
        manager.run(graph)
        assert kinds(graph) == ["Parameter", "Abs", "Abs", "Abs", "Result"]

    def test_a_matcher_is_stopped_after_it_matched(self) -> None:
        asked: list[Node] = []

        def veto(node: Node) -> bool:
            asked.append(node)
            return True

        graph = Graph("main")
        once, twice = ops.Abs(parameter(graph, 2)), ops.Abs(parameter(graph, 2))
        ops.Result(ops.Add(once, ops.Add(twice, twice)))
        each = AbsToReLU()
        each.config.veto(veto)
        assert each.run(graph) is False and asked == [once]

    def test_words(self) -> None:
        def keep(node: Node) -> bool:
            return True

        node = chain(1)[1][0]
        for veto, words in (
            (keep, "vetoed by keep"),
            (lambda node: True, "vetoed by a callback"),
            (lambda node: "it is calibrated", "it is calibrated"),
        ):
            config = PassConfig()
            config.veto(lambda node: False)
            config.veto(veto, "X")
            assert config.vetoed("X", node) == words and config.vetoed("Y", node) == ""

    def test_inside_a_body(self) -> None:
        graph = parse(LOOP.replace("Add(%s, %k)", "Negative(%s)"))
        manager = Manager([NegativeToAbs()])
        manager.config.veto(lambda node: "/" in node.path)
        assert manager.run(graph) is False

    def test_of_the_passes_of_the_chain(self) -> None:
        graph = parse(LOOP)
        graph.remove(graph.results[0])
        ops.Result(graph.parameters[0])
        manager = Manager([EliminateUnusedPorts()])
        manager.config.veto(lambda node: "it stays", LoopToTI)
        assert manager.run(graph) and graph.of(ops.Loop) == []


COUNTED = """
    %x = Parameter : f32[3,2]
    %y = Loop(3, true, %x) {
      condition: @go, iteration: %i, input_map: [Invariant(%k)], output_map: [Concatenated(@n, axis: 0)]
    }
      body {
        %i = Parameter %k = Parameter
        %row = Gather(%k, %i, 0) %n = Unsqueeze(%row, 0)
        Result(true) @go Result(%n)
      }
    Result(%y)"""


class TestExplanations:
    def test_of_a_function_pass(self) -> None:
        graph, nodes = chain(3)
        nodes[0].name, nodes[1].name = "kept", "vetoed"
        manager = Manager([NegativeToAbs()])
        manager.config.explain(NegativeToAbs)
        manager.config.veto(lambda node: "it is mine" if node.name == "vetoed" else False)
        manager.run(graph)
        assert manager.config.explanations == [
            Explanation("NegativeToAbs", "kept", "refused", "it has a name"),
            Explanation("NegativeToAbs", "vetoed", "vetoed", "it is mine"),
            Explanation("NegativeToAbs", f"Negative#{nodes[2].id}", "changed"),
        ]

    def test_nobody_asked_for_the_others(self) -> None:
        manager = Manager([NegativeToAbs(), AbsToReLU()])
        manager.config.explain("AbsToReLU")
        manager.run(chain(2)[0])
        assert {each.pass_name for each in manager.config.explanations} == {"AbsToReLU"}

    def test_the_deepest_refusal_of_a_pattern(self) -> None:
        class Deep(MatcherPass):
            def __init__(self) -> None:
                super().__init__()
                inner = wrap_type(ops.Tanh, any_input(when=has_static_rank() & rank_equals(5), name="data"))
                self.register_matcher(wrap_type(ops.Abs, inner), lambda match: False)

        graph = Graph("main")
        x = parameter(graph, 2)
        near, far = ops.Abs(ops.ReLU(x), name="near"), ops.Abs(ops.Tanh(x), name="far")
        x.node.name = "x"
        ops.Result(ops.Add(near, far))
        each = Deep()
        each.config.explain(each)
        each.run(graph)
        # The pattern is tried although dispatch excludes a Tanh for a ReLU: it gives a better reason.
        assert each.config.explanations == [
            Explanation("Deep", "near", "refused", "Tanh at ReLU#1: is a ReLU", 1),
            Explanation("Deep", "far", "refused", "data at x: wants a known rank and rank 5, found 1", 2),
        ]

    def test_a_callback_that_changed_nothing(self) -> None:
        class Hesitates(MatcherPass):
            says = ""

            def __init__(self) -> None:
                super().__init__()
                self.register_matcher(wrap_type(ops.Negative, any_input()), self.rewrite)

            def rewrite(self, match: object) -> bool:
                return bool(self.says) and self.refuse(match.root, self.says)  # type: ignore[attr-defined]

        graph, _nodes = chain(1)
        each = Hesitates()
        each.config.explain(each)
        each.run(graph)
        each.says = "the moon is full"
        each.run(graph)
        reasons = [found.reason for found in each.config.explanations]
        assert reasons == ["the pattern matched, but the callback changed nothing", "the moon is full"]

    def test_of_the_chain(self) -> None:
        manager = Manager([LoopToTI()])
        manager.config.explain(LoopToTI)
        for text in (COUNTED, COUNTED.replace("Loop(3,", "Loop(2,"), LOOP):
            graph = parse(text)
            for loop in graph.of(ops.Loop):
                loop.name = "loop"
            manager.run(graph)
        assert [(each.outcome, each.reason) for each in manager.config.explanations] == [
            ("changed", ""),
            ("refused", "its trip count is not proven to be the length of its slices"),
            ("refused", "its body does not read the iteration number"),
        ]
        assert {each.node for each in manager.config.explanations} == {"loop"} and manager.passes[0].matches == 1

    @pytest.mark.parametrize(("case", "reasons"), [
        ("known_length", ["to a TensorIterator"]),
        ("length_may_be_zero", ["to a Loop, because its length may be 0"]),
        ("unread_slices", ["to a Loop, because its body reads no slice"]),
        ("nested", ["to a TensorIterator", "to a Loop, because it is directly in the body of a TensorIterator"]),
    ])
    def test_a_scan_says_why_it_becomes_a_loop(self, case: str, reasons: list[str]) -> None:
        manager = Manager([ScanLowering()])
        manager.config.explain(ScanLowering)
        manager.run(parse(read((ROOT / f"tests/golden/scan_lowering/{case}.txt").read_text("utf-8")).input))
        assert [(each.outcome, each.reason) for each in manager.config.explanations] == [
            ("changed", reason) for reason in reasons
        ]

    @pytest.mark.parametrize(("case", "reasons"), [
        ("sizes", {"hides bounds by Tile"}),
        ("two_in_a_row", {"hides bounds as another Barrier does", "hides value by Add", "hides bounds by Tile"}),
    ])
    def test_a_barrier_says_what_hides_the_fact(self, case: str, reasons: set[str]) -> None:
        manager = Manager([LowerBarriers()])
        manager.config.explain(LowerBarriers)
        manager.run(parse(read((ROOT / f"tests/golden/lower_barriers/{case}.txt").read_text("utf-8")).input))
        assert {each.reason for each in manager.config.explanations} == reasons

    def test_a_veto_of_the_chain(self) -> None:
        graph = parse(COUNTED)
        manager = Manager([LoopToTI()])
        manager.config.explain(LoopToTI)
        manager.config.veto(lambda node: "it is to stay a Loop", LoopToTI)
        assert manager.run(graph) is False and len(graph.of(ops.Loop)) == 1
        assert [each.reason for each in manager.config.explanations] == ["it is to stay a Loop"]


# -- The table of a run and its data


def run(profile: Profile) -> Profile:
    Manager([NegativeToAbs(), GraphRewrite([AbsToReLU()]), Notes([])], [profile]).run(chain(3)[0])
    return profile


def test_a_row_for_each_pass() -> None:
    profile = run(Profile())
    assert [row["pass"] for row in profile.rows] == ["NegativeToAbs", "GraphRewrite", "Notes"]
    assert [row["matches"] for row in profile.rows] == [3, 3, 0]
    assert [row["changed"] for row in profile.rows] == [True, True, False]
    assert profile.rows[1]["matchers"] == {"AbsToReLU": 3}
    assert [(row["nodes_before"], row["nodes_after"]) for row in profile.rows] == [(5, 5)] * 3
    assert profile.seconds == pytest.approx(sum(row["seconds"] for row in profile.rows)) and profile.seconds > 0


def test_plain_data() -> None:
    profile = run(Profile())
    data = json.loads(json.dumps(profile.as_json()))
    assert [row["pass"] for row in data["passes"]] == ["NegativeToAbs", "GraphRewrite", "Notes"]
    assert data["seconds"] == profile.seconds


def test_phases_around_the_passes() -> None:
    profile = Profile()
    with phase("reading", [profile]):
        time.sleep(0.01)
    with phase("passes", [profile]):
        run(profile)
    with phase("writing", [profile]):
        time.sleep(0.01)
    phases = {row["phase"]: row["seconds"] for row in profile.as_json()["phases"]}
    assert list(phases) == ["reading", "writing"] and all(seconds >= 0.01 for seconds in phases.values())
    names = [line.split()[0] for line in profile.table().splitlines()[1:]]
    assert names == ["reading", "NegativeToAbs", "GraphRewrite", "AbsToReLU", "Notes", "writing", "passes", "all"]


def test_the_table_is_aligned() -> None:
    lines = run(Profile()).table().splitlines()
    assert lines[1].split()[-2:] == ["3", "5"] and lines[3].split() == ["AbsToReLU", "3"]
    assert lines[4].split()[-2:] == ["-", "5"]
    column = lines[0].index("matches") + len("matches")
    assert all(line[column - 1] in "3-" for line in lines[1:5])


def test_an_empty_run() -> None:
    profile = Profile()
    Manager([], [profile]).run(chain(1)[0])
    assert profile.rows == [] and profile.seconds == 0
    assert profile.table().splitlines()[-1].split() == ["all", "0.00", "0%"]
