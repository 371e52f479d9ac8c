"""The OpenVINO releases on which an IR is to run, and the errors that they have.

    Target.parse("2025.4")            # all of 2025.4
    Target.parse("2024.6-2026.1")     # these and all between
    Target.parse(None)                # OLDEST to NEWEST
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from mo_loop.errors import UsageError

Release = tuple[int, int]
"""(2025, 4) for 2025.4.0, 2025.4.1, ..."""

@cache
def version(release: str) -> tuple[int, ...]:
    """(2025, 4, 1) of "2025.4.1"."""
    return tuple(int(part) for part in release.split("."))


MEASURED = (
    "2024.6.0", "2025.0.0", "2025.1.0", "2025.2.0", "2025.3.0", "2025.4.1", "2026.0.0", "2026.1.0", "2026.2.1",
    "2026.3.1", "2026.4.1",
)  # fmt: skip
"""The releases on which all probes of errors have run, oldest first."""

RELEASES: tuple[Release, ...] = tuple((year, number) for year, number, _ in map(version, MEASURED))
"""The releases whose errors are known."""

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

    def may_have(self, gap: Gap) -> bool:
        """Whether a release has the error, or is not measured and between one that has it and one that does not."""
        before = [version(each)[:2] for each in MEASURED if gap.since and version(each) < version(gap.since)]
        after = [version(each)[:2] for each in MEASURED if gap.until and version(each) > version(gap.until)]
        return not (before and self.newest <= before[-1]) and not (after and self.oldest >= after[0])

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


# -- errors of the releases

WRONG, CRASH, ERROR, SLOW = "wrong numbers", "crash", "error", "slow"
SEVERITIES = (WRONG, CRASH, ERROR, SLOW)


@dataclass(frozen=True)
class Gap:
    """One error of the runtime, stated by the pass that avoids it: `avoids = (Gap("abs-of-concat", ...),)` of a pass.

    tests/runtime/probes has a graph under the name `id` that shows it; `tools/probe_runtime.py` runs it on a release
    and compares the result with `since` and `until`. `form` is written instead. `since` is the first release of
    `MEASURED` that has the error, "" if all of them have it up to `until`; `until` is the last one, "" if the newest
    still has it. `avx512_since` is the first release that has it only on processors with AVX-512, "" if there is none;
    only processors without AVX-512 have one that is `without_avx512`. Passes avoid it for all processors, because an IR
    runs on any. `rule` is the name of the pass, or the translator, in a table of all.
    """

    id: str
    sentence: str
    form: str = ""
    severity: str = WRONG
    since: str = ""
    until: str = ""
    avx512_since: str = ""
    without_avx512: bool = False
    rule: str = ""

    def is_in(self, release: str, *, has_avx512: bool = True) -> bool:
        """Whether `release`, such as "2025.4.1", has it on such a processor; a newer one than all measured has what the
        newest has."""
        number = version(release)
        if has_avx512 and self.without_avx512:
            return False
        if not has_avx512 and self.avx512_since and number >= version(self.avx512_since):
            return False
        return (not self.since or number >= version(self.since)) and (not self.until or number <= version(self.until))
