"""Random recurrent models with states, step by step; tools/fuzz_states.py runs any number of them."""

import pytest

from mo_loop.target import ANY
from tests.fuzz.states.models import KINDS, drawn
from tests.running.processor import fail_or_skip
from tools.fuzz_states import run
from tools.runtimes import chosen_interpreter

SEED, ROUNDS = 2026, 4


@pytest.mark.sweep(4)
@pytest.mark.parametrize("number", range(ROUNDS))
def test_steps_are_the_whole_sequence(number: int) -> None:
    """One model of each kind."""
    numbers = range(number * len(KINDS), (number + 1) * len(KINDS))
    wrong = run([(SEED, each, chosen_interpreter(), ANY) for each in numbers], jobs=1)
    fail_or_skip(wrong)


def test_a_number_gives_the_same_model_again() -> None:
    first, again = (drawn(SEED, len(KINDS) + 3) for _ in range(2))
    assert first.model.SerializeToString() == again.model.SerializeToString()
    assert all((first.step(2)[name] == array).all() for name, array in again.step(2).items())
