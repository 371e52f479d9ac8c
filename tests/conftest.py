"""Settings for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

# No deadline: the machine is shared and noisy. The same examples every time: a red run can be repeated.
settings.register_profile("repository", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("repository")


@pytest.fixture(scope="session", autouse=True)
def checked_passes() -> Iterator[None]:
    """Every conversion in a test checks the invariants of the graph after each pass, unless it says otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mo_loop.conversion.CHECK_PASSES", True)
        yield
