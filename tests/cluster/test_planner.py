"""The memory of the plan of many models at URLs, by simulated listings."""

from __future__ import annotations

import sys

import pytest

from tools.benching.bench_rows import CLUSTER, CLUSTER_RATIO, FunctionRow, rows
from tools.benching.cluster_load import planner


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process")
def test_the_memory_of_a_plan_is_flat_from_1000_to_100000_models() -> None:
    assert planner() == []


def test_the_bench_has_a_row_for_the_cpu_of_a_cluster() -> None:
    (row,) = (each for each in rows() if each.name == "cluster")
    assert isinstance(row, FunctionRow) and row.script == CLUSTER and row.target == CLUSTER_RATIO
    assert not row.lacks
