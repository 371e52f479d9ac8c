"""Which passes run, and the table of a run."""

from __future__ import annotations

from typing import Any

import pytest

from mo_loop.errors import UsageError
from mo_loop.graph import Graph
from mo_loop.ops.base import Identity
from mo_loop.text import parse
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.manager import Manager
from mo_loop.transforms.pattern import wrap_type
from mo_loop.transforms.profile import Profile
from mo_loop.transforms.rewrite import GraphRewrite, MatcherPass
from mo_loop.transforms.selection import Selection
from tests.harness import raised, without


class First(FunctionPass):
    def run_on_graph(self, graph: Graph) -> bool:
        return False


class Second(First):
    pass


class Third(First):
    pass


class OnRequest(First):
    enabled_by_default = False


class DropIdentity(MatcherPass):
    """Identity(x)  ->  x"""

    def __init__(self) -> None:
        super().__init__()
        self.register_matcher(wrap_type(Identity), lambda match: self.replace(match, match.root.inputs[0]))


class Other(DropIdentity):
    pass


def pipeline() -> list[FunctionPass]:
    return [First(), Manager([Second(), OnRequest()]), GraphRewrite([DropIdentity(), Other()]), First(), Third()]


def selected(stop_after: str | None = None, *, disable: Any = (), enable: Any = ()) -> Selection:
    config = without(*disable)
    config.enable(*enable)
    return Selection(Manager(pipeline(), config=config), stop_after)


class TestSelection:
    def running(self, selection: Selection) -> list[str]:
        return [entry.name for entry in selection.entries if entry.runs]

    def test_everything_that_is_on_by_default(self) -> None:
        selection = selected()
        found = self.running(selection)
        assert found == ["First", "Manager", "Second", "GraphRewrite", "DropIdentity", "Other", "First", "Third"]
        assert [entry.depth for entry in selection.entries] == [0, 0, 1, 1, 0, 1, 1, 0, 0]
        assert selection.skipped == [] and not selection.runs("OnRequest")

    def test_disabled_and_enabled(self) -> None:
        selection = selected(disable=["First", "Other"], enable=["OnRequest"])
        assert self.running(selection) == ["Manager", "Second", "OnRequest", "GraphRewrite", "DropIdentity", "Third"]
        assert selection.skipped == ["First", "Other"]

    def test_what_is_within_a_disabled_pass(self) -> None:
        selection = selected(disable=["GraphRewrite"], enable=["Other"])
        assert not selection.runs("Other") and selection.skipped == ["GraphRewrite"]

    @pytest.mark.parametrize(
        ("last", "skipped"),
        [("First", ["Third"]), ("Second", ["GraphRewrite", "First", "Third"]), ("GraphRewrite", ["First", "Third"])],
    )
    def test_stop(self, last: str, skipped: list[str]) -> None:
        """After the last pass of that name; a pass that occurs twice may have run and be skipped."""
        assert selected(last).skipped == skipped

    def test_a_stop_never_reached(self) -> None:
        raised(UsageError, selected, "Third", disable=["Third"], match="disabled")
        raised(UsageError, selected, "Second", disable=["Manager"], match="disabled")
        raised(UsageError, selected, "Other", match="it is not a step")
        raised(UsageError, selected, "Manager", match="it is not a step")

    @pytest.mark.parametrize("name", ["secnd", "SECOND", "Secondd"])
    def test_unknown_names(self, name: str) -> None:
        for call in (lambda: selected(name), lambda: selected(disable=[name]), lambda: selected().require(name)):
            caught = raised(UsageError, call)
            assert caught.code == "ML201" and name in caught.message
            assert caught.hint == "did you mean 'Second'?"

    def test_what_passes_hold(self) -> None:
        selection = selected(disable=["Other"])
        assert selection.held("First") == ["First"] and selection.held("Manager") == ["Second"]
        assert selection.held("GraphRewrite") == ["DropIdentity"]
        assert selection.steps == ["First", "Second", "OnRequest", "GraphRewrite", "First", "Third"]

    def test_a_name_like_no_other(self) -> None:
        assert "--passes" in raised(UsageError, selected, "qqq").hint


class TestProfile:
    def table(self) -> tuple[Profile, list[list[str]]]:
        profile = Profile()
        graph = parse("%x = Parameter : f32[2]\n%a = Identity(%x)\n%b = Identity(%a)\n%y = ReLU(%b)\nResult(%y)")
        Manager(pipeline(), [profile]).run(graph)
        return profile, [line.split() for line in profile.table().splitlines()]

    def test_a_row_a_pass(self) -> None:
        profile, lines = self.table()
        assert [line[0] for line in lines] == [
            "ms", "First", "Second", "GraphRewrite", "DropIdentity", "First", "Third", "passes", "all",
        ]
        assert lines[3][3:] == ["2", "5", "->", "3"]
        assert lines[4] == ["DropIdentity", "2"]  # Other found nothing: it has no row
        assert lines[5][3:] == ["-", "3"] and lines[-2][3:] == ["5", "->", "3"]
        assert profile.seconds == sum(row["seconds"] for row in profile.rows)

    def test_columns_are_aligned(self) -> None:
        lines = self.table()[0].table().splitlines()
        ends = {line.index("%") for line in lines if "%" in line}
        assert len(ends) == 1 and lines[0].index("share") + 4 in ends

    def test_nothing_ran(self) -> None:
        assert [line.split()[0] for line in Profile().table().splitlines()] == ["ms", "all"]
