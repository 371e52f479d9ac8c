"""Random models with quantised weights: a sample of what tools/fuzz_weights.py runs."""

from collections.abc import Iterator

import pytest

from mo_loop.support.workers import Pool
from tests.fuzz.weights import TYPES, draw
from tests.running.processor import fail_or_skip
from tools.fuzz_weights import TOLERANCE
from tools.measuring import OURS

SEED, COUNT = 20261122, 24


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool("tools.fuzz_weights:difference", jobs=1, limit=120) as pool:
        yield pool


@pytest.mark.sweep(4)
@pytest.mark.parametrize("index", range(COUNT))
def test_right(pool: Pool, index: int) -> None:
    outcome = pool.call((OURS, SEED, index))
    is_right = outcome.ok and outcome.value <= TOLERANCE
    fail_or_skip([] if is_right else [f"{SEED} {index} {outcome} {draw(SEED, index).facts}"])


def test_the_same_again() -> None:
    first, second = draw(SEED, 3), draw(SEED, 3)
    assert first.model.SerializeToString() == second.model.SerializeToString()


def test_every_type_reader_and_place_is_drawn() -> None:
    cases = [draw(1, index).facts for index in range(150)]
    assert {each["type"] for each in cases} == set(TYPES)
    assert {each["way"] for each in cases} == {"tensor", "tensor1", "axis", "block"}
    assert {each["place"] for each in cases} == {"main", "captured", "Loop", "If"}
    assert len({each["reader"] for each in cases}) == 12
