"""Random models that generate text, compared with ONNX Runtime; tools/fuzz_generation.py runs any number of them."""

import pytest

from tests.fuzz.generation.configurations import DESCRIPTIONS, drawn
from tests.running.processor import fail_or_skip
from tools.fuzz_generation import run

SEED, COUNT = 2026, 6


@pytest.mark.sweep(8)
@pytest.mark.parametrize("operator", DESCRIPTIONS)
@pytest.mark.parametrize("half", range(2))
def test_configurations(half: int, operator: str) -> None:
    verdicts, skipped = run([(SEED, number, operator) for number in range(half, COUNT, 2)], jobs=1, python=None)
    assert len(verdicts) >= COUNT // 2 - 2, skipped
    wrong = [f"{sample.name}: {verdict.result} {verdict.message}" for sample, verdict in verdicts if verdict.bad]
    fail_or_skip(wrong)


@pytest.mark.parametrize("operator", DESCRIPTIONS)
def test_a_number_gives_the_same_configuration_again(operator: str) -> None:
    first, again = (drawn(SEED, 1, operator) for _ in range(2))
    assert first.model().SerializeToString() == again.model().SerializeToString()
    assert all((first.sets[0][name] == array).all() for name, array in again.sets[0].items())
