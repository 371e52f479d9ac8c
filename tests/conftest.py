"""Settings for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

# No deadline: times vary with the load of the machine. The same examples in every run: a failure can be repeated.
settings.register_profile("repository", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("repository")


@pytest.fixture(scope="session", autouse=True)
def checked_passes() -> Iterator[None]:
    """Every conversion in a test checks the invariants of the graph after each pass, unless the test turns it off."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mo_loop.conversion.CHECK_PASSES", True)
        yield
