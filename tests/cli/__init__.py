"""The command line, as a user calls it."""

import pytest

# The assertions shared by the tests say as much as the tests' own.
pytest.register_assert_rewrite(f"{__name__}.commands")
