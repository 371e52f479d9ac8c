"""The passes that avoid errors of the runtime: applied again, they change nothing."""

import pytest

from mo_loop.conversion import Conversion
from mo_loop.errors import InternalError
from mo_loop.graph import Graph
from mo_loop.ops.front import Barrier
from mo_loop.transforms import pipelines
from mo_loop.transforms.function_pass import FunctionPass
from tests.harness import parsed, raised

LOOP = parsed("""
    main (float[N] x, int64 n) => (float[?] y, float[?,?] z) {
      y, z = Loop (n, "", x) <body = step (int64 i, bool c, float[a] s) => (bool d, float[b] t, float[b] u) {
        d = Identity (c) t = Concat <axis = 0> (s, s) u = Neg (t)
      }>
    }""")


class Restless(FunctionPass):
    def run_on_graph(self, graph: Graph) -> bool:
        return True


TWICE = {
    "DistinguishBranchShapes", "DistinguishElements", "DistinguishStaticShapes", "PreserveEmptyBroadcasts",
    "RemoveSliceBounds",
}
"""Rules that hide sizes are after those that read them; rules that make products of elements are after those for
them."""


def test_all_rules_are_in_the_pipeline_once() -> None:
    assert len(set(pipelines.RULES)) == len(pipelines.RULES) > 20
    assert {each.__name__ for each in pipelines.RULES if pipelines.FRONT.count(each) != 1} == TWICE


def test_they_change_nothing_when_they_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    Conversion(check_passes=True).run(LOOP)
    monkeypatch.setattr(pipelines, "RULES", (*pipelines.RULES, Restless))
    found = raised(InternalError, Conversion(check_passes=True).run, LOOP, match="Restless changes the graph again")
    assert found.code == "ML411"
    Conversion(check_passes=False).run(LOOP)


def test_a_run_that_ends_early_leaves_no_barriers() -> None:
    graph = Conversion(stop_after="RemoveResultBounds").run(LOOP)
    assert not any(scope.of(Barrier) for scope in graph.scopes())
