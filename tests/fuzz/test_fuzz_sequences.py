"""A fixed part of the random models with lists of tensors, with states that their first type does not hold, and with
recurrences: `python tools/fuzz_controlflow.py --lists --seed 2026`, `--widens`, and `--recurs`.

Each is converted and run on one compiled model with several input sets in changing order, and compared with ONNX
Runtime.
"""

from collections import Counter
from typing import Any

import pytest

from mo_loop.support.workers import Pool
from tests.fuzz.control_flow.generator import generate
from tests.running.processor import fail_or_skip
from tests.running.samples import EXCUSED, settle

SEED, COUNT, OTHERS, BATCH = 2026, 80, 20, 5

EXCUSES: set[int] = set()
"""The number of models refused for one of the reasons listed in tests.fuzz.control_flow.oracle."""


@pytest.mark.sweep(16)
@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_models(first: int) -> None:
    _run([(SEED, index, True) for index in range(first, first + BATCH)])


@pytest.mark.sweep(4)
@pytest.mark.parametrize("first", range(0, OTHERS, BATCH))
def test_models_with_states_that_their_first_type_does_not_hold(first: int) -> None:
    """Ranks that differ by ones, stacks that begin without enough rows, pieces of size 1."""
    tasks = [(SEED, index, False, True) for index in range(OTHERS)]
    features = sum((generate(*task).features for task in tasks), Counter[str]())
    assert features["state of ranks that differ by ones"] > 5
    assert features["state of ranks in another loop"] > 2
    assert features["stack that begins with too few rows"] > 5
    assert features["list split in ones"] > 1
    _run(tasks[first : first + BATCH])


@pytest.mark.sweep(4)
@pytest.mark.parametrize("first", range(0, 2 * OTHERS, 2 * BATCH))
def test_models_of_recurrences(first: int) -> None:
    """Up to 40 steps, none among them, forwards and backwards, nested, and loops that end early."""
    tasks = [(SEED + 4, index, False, False, True) for index in range(first, first + 2 * BATCH)]
    features = sum((generate(*task).features for task in tasks), Counter[str]())
    assert features["recurrence that ends early"] and features["recurrence around another"]
    _run(tasks)


def _run(tasks: list[Any]) -> None:
    with Pool("tests.fuzz.control_flow.oracle:oracle", limit=60) as pool:
        samples = {outcome.task[1]: outcome.value for outcome in pool.map(tasks)}
    known = {index: sample for index, sample in samples.items() if sample is not None and not isinstance(sample, str)}
    assert len(known) >= len(tasks) - 1, "ONNX Runtime runs nearly every model"
    wrong = []
    with Pool("tests.running.samples:judge", limit=120) as pool:
        for outcome in pool.map(("mo_loop", sample) for sample in known.values()):
            verdict = settle(outcome, pool.call)
            name = outcome.task[1].name
            if verdict.bad or (verdict.result == EXCUSED) != (int(name.split("-")[1]) in EXCUSES):
                wrong.append(f"{name}: {verdict.result} {verdict.message}")
    fail_or_skip(wrong)


def test_every_model_has_lists() -> None:
    """Many carry them through loops."""
    models = [generate(SEED, index, lists=True).features for index in range(100)]
    assert all(features["list"] for features in models)
    assert sum(features["list carried"] > 0 for features in models) >= 40
