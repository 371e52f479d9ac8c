"""Planted faults in models of every kind (tests/fuzz/faults); tools/fuzz_verify.py plants many more."""

import pytest

from mo_loop.compare.execution.isolated import isolated
from tests.fuzz.faults.models import KINDS
from tests.fuzz.faults.trial import FOUND, UNSEEN, fault_trial

SEED = 53


@pytest.mark.sweep(5)
@pytest.mark.parametrize("number", range(2 * len(KINDS)))
def test_planted_faults_differ_with_their_piece(number: int) -> None:
    found = isolated(fault_trial, (SEED, number), limit=300)
    assert found.result in (FOUND, UNSEEN), found
