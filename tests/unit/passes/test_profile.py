"""The table of a run and its data."""

import json
import time

import pytest

from mo_loop.conversion import phase
from mo_loop.transforms.manager import Manager
from mo_loop.transforms.profile import Profile
from mo_loop.transforms.rewrite import GraphRewrite
from tests.unit.graphs import chain

from .small_passes import AbsToReLU, NegativeToAbs, Notes


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
