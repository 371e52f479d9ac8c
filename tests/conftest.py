"""Settings for all tests."""

from __future__ import annotations

from hypothesis import settings

# No deadline: the machine is shared and noisy. The same examples every time: a red run can be repeated.
settings.register_profile("house", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("house")
