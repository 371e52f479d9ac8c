"""Chains of operators that the CPU plugin fuses: a sample of what tools/fuzz_fusions.py runs."""

import pytest

from tests.fuzz.fusions.drawing import F16, F32
from tests.fuzz.fusions.followers import FOLLOWERS, drawn
from tests.fuzz.fusions.producers import PRODUCERS
from tests.fuzz.fusions.trial import Task
from tests.running.processor import fail_or_skip
from tools.fuzz_fusions import chosen_cells, run

SEED, COUNT = 20261126, 4
FUSED = ("Reduce3", "Global", "MatMul", "Reduce", "BatchNormalization", "ReversedChannels")


@pytest.mark.sweep(2)
@pytest.mark.parametrize("start", FUSED)
def test_chains(start: str) -> None:
    chosen = [each for each in chosen_cells(SEED, start=start) if each.follower != "Sum"][: 12 * COUNT]
    rows = list(run(chosen, Task((), SEED, kinds=(F32, F16)), jobs=1))
    assert len(rows) > 6 * COUNT
    fail_or_skip([f"{cell} {verdict.result} {verdict.message} {facts}" for cell, facts, verdict in rows if verdict.bad])


def test_a_cell_and_a_seed_give_the_same_chain_again() -> None:
    for cell in chosen_cells(SEED, COUNT):
        first, second = drawn(cell, SEED), drawn(cell, SEED)
        assert first.facts == second.facts
        assert [each.tobytes() for each in first.expected] == [each.tobytes() for each in second.expected]


def test_the_grid_has_every_producer_and_follower() -> None:
    found = chosen_cells(SEED)
    assert {each.producer for each in found} == set(PRODUCERS)
    assert {each.follower for each in found} == set(FOLLOWERS)
    assert len(found) == len(set(found))
