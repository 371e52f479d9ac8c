"""Planted faults in models of every kind, and right models (tests/fuzz/faults); tools/fuzz_verify.py tries more."""

import pytest

from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.results.report import PASSED
from tests.fuzz.faults.models import KINDS
from tests.fuzz.faults.right import NO_MODEL, REFUSED, SOURCES, RightTask, right_trial
from tests.fuzz.faults.trial import FOUND, UNSEEN, FaultTask, fault_trial

SEED = 53


@pytest.mark.sweep(10)
@pytest.mark.parametrize("number", range(2 * len(KINDS)))
def test_planted_faults_differ_with_their_piece(number: int) -> None:
    found = isolated(fault_trial, FaultTask(SEED, number), limit=300)
    assert found.result in (FOUND, UNSEEN), found


@pytest.mark.sweep(10)
@pytest.mark.parametrize("source", [each for each in SOURCES if each not in ("models", "suite")])
@pytest.mark.parametrize("number", range(4))
def test_right_models_agree_in_all_pieces(source: str, number: int) -> None:
    found = isolated(right_trial, RightTask(source, number, SEED), limit=300)
    assert found.verdict in (PASSED, REFUSED, NO_MODEL), found
