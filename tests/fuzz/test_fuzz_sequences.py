"""A fixed part of the random models with lists of tensors: `python tools/fuzz_controlflow.py --lists --seed 2026`.

Each is converted and run on one compiled model with several input sets in changing order, and compared with ONNX
Runtime.
"""

from __future__ import annotations

import pytest

from mo_loop.verification.judge import EXCUSED, settle
from mo_loop.workers import Pool
from tests.fuzz.control_flow.generator import generate

SEED, COUNT, BATCH = 2026, 80, 20

EXCUSES: set[int] = set()
"""The number of models refused for one of the reasons listed in tests.fuzz.control_flow.oracle."""


@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_models(first: int) -> None:
    tasks = [(SEED, index, True) for index in range(first, first + BATCH)]
    with Pool("tests.fuzz.control_flow.oracle:oracle", limit=60) as pool:
        samples = {outcome.task[1]: outcome.value for outcome in pool.map(tasks)}
    known = {index: sample for index, sample in samples.items() if sample is not None and not isinstance(sample, str)}
    assert len(known) >= BATCH - 1, "ONNX Runtime runs nearly every model"
    wrong = []
    with Pool("mo_loop.verification.judge:judge", limit=120) as pool:
        for outcome in pool.map(("mo_loop", sample) for sample in known.values()):
            verdict = settle(outcome, pool.call)
            name = outcome.task[1].name
            if verdict.bad or (verdict.result == EXCUSED) != (int(name.split("-")[1]) in EXCUSES):
                wrong.append(f"{name}: {verdict.result} {verdict.message}")
    assert not wrong, "\n".join(wrong)


def test_every_model_has_lists() -> None:
    """Many carry them through loops."""
    models = [generate(SEED, index, lists=True).features for index in range(100)]
    assert all(features["list"] for features in models)
    assert sum(features["list carried"] > 0 for features in models) >= 40
