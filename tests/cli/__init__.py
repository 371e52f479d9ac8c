"""The command line, called as a user calls it."""

import pytest

# pytest explains failed assertions of the shared functions as it does those of the tests.
pytest.register_assert_rewrite(f"{__name__}.commands")
