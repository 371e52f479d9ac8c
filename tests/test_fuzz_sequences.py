"""Random programs on lists, seeded: against ONNX Runtime on one compiled model each (tools/fuzzing/sequences.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mo_loop.verify.workers import Pool

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.fuzzing.check import PASSED, settle

SEED, COUNT, BATCH = 2026, 100, 20


@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_programs(first: int) -> None:
    tasks = [(SEED, index) for index in range(first, first + BATCH)]
    with Pool("tools.fuzzing.sequences:sample", limit=60) as pool:
        samples = [outcome.value for outcome in pool.map(tasks)]
    assert not [each for each in samples if isinstance(each, str)], "ONNX Runtime runs every program"
    wrong = []
    with Pool("tools.fuzzing.check:judge", limit=120) as pool:
        for outcome in pool.map(("mo_loop", sample) for sample in samples):
            verdict = settle(outcome, pool.call)
            if verdict.result != PASSED:
                wrong.append(f"{outcome.task[1].name}: {verdict.result} {verdict.message}")
    assert not wrong, "\n".join(wrong)
