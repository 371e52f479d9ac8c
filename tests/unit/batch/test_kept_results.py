"""Results on disk: their order, models without one, and memory."""

from functools import partial
from pathlib import Path

import pytest

from mo_loop.batching.plan import BatchPlan, FoundModels
from mo_loop.batching.result import CANCELLED, FAILED, Error, KeptResults, ModelResult
from tests.costs import least_peak


def plan_of(count: int, start: str = "") -> BatchPlan:
    found = FoundModels()
    assert found.add((f"/models/{start}m{number:06}.onnx", None) for number in range(count)) == count
    return found.plan(Path("/models"), Path("out"))


def refused(plan: BatchPlan, number: int) -> ModelResult:
    error = Error("ML300", f"odd {number}", ("loop/body/n",), "because", "do it", 3)
    return ModelResult(plan.models[number], FAILED, 0.1, 3, (error,), comparison={"outputs": [1, 2]})


def test_models_without_a_result_are_cancelled() -> None:
    plan = plan_of(5)
    results = KeptResults(plan.models)
    for number in (3, 1):
        results.put(number, refused(plan, number))
    assert [each.status for each in results] == [CANCELLED, FAILED, CANCELLED, FAILED, CANCELLED]
    assert [each.model for each in results] == list(plan.models)
    assert (results[3], results[-2], results[1:4:2]) == (refused(plan, 3), refused(plan, 3), [results[1], results[3]])
    assert results[4].status == CANCELLED and len(results) == 5
    with pytest.raises(IndexError):
        results[5]


def test_names_that_are_not_unicode() -> None:
    plan = plan_of(2, "\udcff")
    results = KeptResults(plan.models)
    results.put(0, refused(plan, 0))
    assert results[0].model.name == "\udcffm000000.onnx"
    assert plan.models[1].source == Path("/models/\udcffm000001.onnx")


def test_memory_does_not_grow_with_results() -> None:
    def keep(plan: BatchPlan) -> None:
        results = KeptResults(plan.models)
        for number in range(len(plan.models)):
            results.put(number, refused(plan, number))
        assert sum(each.status == FAILED for each in results) == len(plan.models)

    bound = least_peak(partial(keep, plan_of(500))) + (300 << 10)  # less than 70 bytes for a model
    assert least_peak(partial(keep, plan_of(5000)), bound) < bound
