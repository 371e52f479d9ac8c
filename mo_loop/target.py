"""Target: the OpenVINO releases on which an IR is to run.

    Target.parse("2025.4")            # all of 2025.4
    Target.parse("2024.6-2026.1")     # these and all between
    Target.parse(None)                # OLDEST to NEWEST
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mo_loop.errors import UsageError

Release = tuple[int, int]
"""(2025, 4) for 2025.4.0, 2025.4.1, ..."""

OLDEST: Release = (2024, 6)
NEWEST: Release = (2026, 4)
"""The newest release whose errors are known (transforms/runtime/gaps.py)."""

_FORM = re.compile(r"(\d{4})\.(\d{1,2})(?:\.\d{1,2})?")
_HINT = 'give a release such as "2025.4", or the oldest and the newest one, such as "2024.6-2026.4"'


@dataclass(frozen=True)
class Target:
    """All releases from `oldest` to `newest`; one after NEWEST is expected to be like NEWEST."""

    oldest: Release = OLDEST
    newest: Release = NEWEST

    @classmethod
    def parse(cls, text: str | None) -> Target:
        """UsageError if `text` is neither a release nor a range, or begins before OLDEST."""
        if text is None:
            return cls()
        first, dash, last = text.strip().partition("-")
        oldest = _release(first, text)
        newest = _release(last, text) if dash else oldest
        if oldest > newest:
            raise UsageError(f"the target {text!r} ends before it begins", hint=_HINT)
        if oldest < OLDEST:
            raise UsageError(f"the target {text!r} begins before {_shown(OLDEST)}, the oldest release supported")
        return cls(oldest, newest)

    def __str__(self) -> str:
        return _shown(self.oldest) if self.oldest == self.newest else f"{_shown(self.oldest)}-{_shown(self.newest)}"


def _release(text: str, whole: str) -> Release:
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"the target {whole!r} is not a release of OpenVINO", hint=_HINT)
    return int(found[1]), int(found[2])


def _shown(release: Release) -> str:
    return f"{release[0]}.{release[1]}"
