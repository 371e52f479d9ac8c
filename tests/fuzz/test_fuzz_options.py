"""Random pairs of options on random models; tools/fuzz_options.py runs any number of them."""

from collections import Counter
from dataclasses import fields

import pytest

from mo_loop.options import ConvertOptions
from tests.fuzz.options.choices import CHOICES, CONDITIONS, NOT_DRAWN
from tests.fuzz.options.comparing import REFUSED, RIGHT, pair
from tests.running.processor import fail_or_skip
from tools.fuzz_options import run
from tools.runtimes import chosen_interpreter

SEED, COUNT, BATCH = 2026, 60, 20


@pytest.mark.sweep(3)
@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_pairs_of_options(first: int) -> None:
    answers = run([(SEED, number, chosen_interpreter()) for number in range(first, first + BATCH)], jobs=1)
    wrong = [f"{each.status} {each.label}: {each.text}" for each in answers if each.status not in (RIGHT, REFUSED)]
    fail_or_skip(wrong)
    assert Counter(each.status for each in answers)[RIGHT] > BATCH * 3 // 4


def test_a_number_gives_the_same_pair_again() -> None:
    first, again = (pair(SEED, 7)[1] for _ in range(2))
    assert str(first.arguments) == str(again.arguments)
    assert first.subject.model.SerializeToString() == again.subject.model.SerializeToString()


def test_every_option_is_drawn_or_has_a_reason() -> None:
    """Those about the form of the IR are in CONDITIONS too."""
    assert {each.name for each in fields(ConvertOptions)} == ({*CHOICES} - {"make_stateful"}) | {*NOT_DRAWN}
    assert {*CONDITIONS} <= {*CHOICES} and not {*CHOICES} & {*NOT_DRAWN}
