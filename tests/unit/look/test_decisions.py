"""The decisions of passes in a dump: a limited number of each pass and step."""

from pathlib import Path
from typing import Any

import pytest

from mo_loop import ops
from mo_loop.conversion import phase
from mo_loop.graph import Graph
from mo_loop.graph.types import f32
from mo_loop.look.dump import Dumper
from mo_loop.look.dump.dumper import LIMIT, TRIED, Decisions
from mo_loop.look.dump.step_files import PAGE
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.manager import Manager
from mo_loop.transforms.pattern import Match, any_input, wrap_type
from mo_loop.transforms.predicates import rank_equals
from mo_loop.transforms.rewrite import MatcherPass
from tests.pages import document


class Decide(FunctionPass):
    """x  ->  x; every second one counts as changed"""

    def run_on_graph(self, graph: Graph) -> bool:
        for place, node in enumerate(self.candidates(graph, ops.Abs)):
            if place % 2:
                self.accept(node)
            else:
                self.refuse(node, "it is even")
        return True


class AbsOfExp(MatcherPass):
    """Abs(Exp(x))  ->  Exp(x), if x has one dimension"""

    pattern = wrap_type(ops.Abs, wrap_type(ops.Exp, any_input(when=rank_equals(1))))

    def matched(self, match: Match) -> bool:
        return self.replace(match, match.root.inputs[0])


def chain(count: int, first: Any = ops.ReLU, shape: tuple[int, ...] = (2,)) -> Graph:
    graph = Graph("main")
    value = ops.Parameter(graph=graph, dtype=f32, shape=shape).output
    for _ in range(count):
        value = ops.Abs(first(value).output).output
    ops.Result(value)
    return graph


def steps_of(each: FunctionPass, graph: Graph, folder: Path) -> list[dict[str, Any]]:
    dumper = Dumper(folder, ["json"])
    manager = Manager([each], [dumper])
    with phase("translating", [dumper], graph):
        pass
    with phase("passes", [dumper], graph, manager):
        manager.run(graph)
    dumper.finish()
    data = document((folder / PAGE).read_text("utf-8"))
    for step in data["steps"]:
        for reason in step["reasons"]:
            reason[4] = data["texts"][reason[4]]
    steps: list[dict[str, Any]] = data["steps"]
    return steps


@pytest.mark.parametrize("count", [3, LIMIT * 2 + 10])
def test_a_limited_number(count: int, tmp_path: Path) -> None:
    (step,) = steps_of(Decide(), chain(count), tmp_path)
    outcomes = [reason[3] for reason in step["reasons"]]
    changed = count // 2
    assert outcomes.count("changed") == min(changed, LIMIT)
    assert outcomes.count("refused") == min(count - changed, LIMIT)
    assert step.get("left_out", 0) == max(changed - LIMIT, 0) + max(count - changed - LIMIT, 0)
    assert {reason[4] for reason in step["reasons"] if reason[3] == "refused"} == {"it is even"}


def test_patterns_that_match_in_part(tmp_path: Path) -> None:
    """A candidate whose root fits is reported with the reason, each node by its id; other nodes are not."""
    (step,) = steps_of(AbsOfExp(), chain(2, ops.Tanh), tmp_path)
    assert step["reasons"] == []
    (step,) = steps_of(AbsOfExp(), chain(1, ops.Exp, (2, 2)), tmp_path)
    ((number, path, *told),) = step["reasons"]
    assert told[:2] == ["AbsOfExp", "refused"] and "wants rank 1, found 2" in told[2]
    assert number is not None and path.startswith("Abs#")
    (step,) = steps_of(AbsOfExp(), chain(1, ops.Exp), tmp_path)
    ((number, path, name, outcome, _),) = step["reasons"]
    assert (name, outcome) == ("AbsOfExp", "changed") and path.startswith("Abs#")
    assert number in step["delta"]["removed"]


def test_a_step_begins_anew() -> None:
    decisions = Decisions()
    each = AbsOfExp()
    for _ in range(2):
        assert [decisions.wants(each) for _ in range(TRIED + 2)] == [True] * TRIED + [False] * 2
        decisions.take(lambda _: None)


def test_a_decision_that_is_told_twice_is_kept_once(tmp_path: Path) -> None:
    graph = chain(1)
    decisions = Decisions()
    node = next(node for node in graph if isinstance(node, ops.Abs))
    for _ in range(3):
        decisions.hear(Decide(), node, "refused", "again")
    found, left_out = decisions.take(lambda _: 7)
    assert found == [[7, node.path, "Decide", "refused", decisions.texts["again"]]] and left_out == 0
