"""Operators whose forms were once many times slower: none takes several times the goal of tools/bench_operators.py.

The sides run in turn and the shortest times count, so other work of the machine does not matter much; a form that is
slow is so by far more than the bound.
"""

from __future__ import annotations

import pytest

from tools.benching.loop_times import Task, measure
from tools.benching.slow_operators import goal
from tools.benching.typical_operators import typical

BOUND = 3.0
TRIES = 4

FAST = (
    "CumSum", "Expand", "GRU", "LSTM", "ReduceMax", "ReduceSum/integers", "Softmax/channels", "TopK",
    "TopK/classes", "ai.onnx.ml::TreeEnsembleRegressor/row", "ai.onnx.ml::TreeEnsembleRegressor/rows",
)  # fmt: skip


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", FAST)
def test_an_operator_takes_no_multiple_of_its_goal(name: str, dynamic: bool) -> None:
    ratios: list[float] = []
    while len(ratios) < TRIES and min(ratios, default=BOUND + 1) > BOUND:
        row = measure(Task(name, *typical(name, dynamic), 1, 200, seconds=0.3, peer=False))
        assert not row.problem
        ratios.append(goal(row))
    assert min(ratios) <= BOUND
