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

RELEASES: tuple[Release, ...] = (
    (2024, 6), (2025, 0), (2025, 1), (2025, 2), (2025, 3), (2025, 4), (2026, 0), (2026, 1), (2026, 2), (2026, 3),
    (2026, 4),
)  # fmt: skip
"""The releases whose errors are known (transforms/runtime/gaps.py)."""

OLDEST, NEWEST = RELEASES[0], RELEASES[-1]

_FORM = re.compile(r"(\d{4})\.(\d{1,2})(?:\.\d{1,2})?")
_HINT = 'give a release such as "2025.4", or the oldest and the newest one, such as "2024.6-2026.4"'


@dataclass(frozen=True)
class Target:
    """All releases from `oldest` to `newest`; one after NEWEST is expected to be like NEWEST."""

    oldest: Release = OLDEST
    newest: Release = NEWEST

    @classmethod
    def parse(cls, text: str | None) -> Target:
        """UsageError if `text` is neither a release nor a range, if it begins before OLDEST, or if there is no such
        release."""
        if text is None:
            return cls()
        first, dash, last = text.strip().partition("-")
        oldest = _release(first, text)
        newest = _release(last, text) if dash else oldest
        if oldest > newest:
            raise UsageError(f"the target {text!r} ends before it begins", hint=_HINT)
        if oldest < OLDEST:
            raise UsageError(
                f"the target {text!r} begins before {shown(OLDEST)}, the oldest release supported",
                hint=f"give {shown(OLDEST)} or a later release",
            )
        for each in (oldest, newest):
            if each <= NEWEST and each not in RELEASES:
                known = ", ".join(map(shown, RELEASES))
                raise UsageError(f"the target {text!r}: there is no OpenVINO {shown(each)}", hint=f"there are {known}")
        return cls(oldest, newest)

    def __str__(self) -> str:
        return shown(self.oldest) if self.oldest == self.newest else f"{shown(self.oldest)}-{shown(self.newest)}"


def _release(text: str, whole: str) -> Release:
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"the target {whole!r} is not a release of OpenVINO", hint=_HINT)
    return int(found[1]), int(found[2])


def shown(release: Release) -> str:
    """A release as text."""
    return f"{release[0]}.{release[1]}"
