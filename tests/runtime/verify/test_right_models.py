"""Right models without given inputs: `verify` finds inputs for each kind, and passes it."""

import pytest

from tests.fuzz.planted.verdicts import AGREES, PASSES, ROUNDS, model_verdict, right_verdict
from tests.models.sources.registry_kinds import KINDS
from tests.running.processor import fail_or_skip


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_the_registries(kind: str) -> None:
    verdict, text = model_verdict((kind, 0, None))
    fail_or_skip([] if verdict in (AGREES, ROUNDS) else [f"{verdict}: {text}"])


@pytest.mark.parametrize("number", [8, 9, 14])
def test_random_models(number: int) -> None:
    """Sizes that a Split and a Reshape need, and a body that returns its iteration number."""
    _, verdict, text = right_verdict((3501, number))
    assert verdict == PASSES, text
