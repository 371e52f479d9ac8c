"""The OpenVINO releases and the devices on which an IR is to run, and the errors that they have.

    Target.parse("2025.4")            # all of 2025.4
    Target.parse("2024.6-2026.1")     # these and all between
    Target.parse(None)                # OLDEST to NEWEST
    Target.parse(None, "GPU")         # on the GPU alone
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
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
)
"""The releases on which all probes of errors have run, oldest first."""

RELEASES: tuple[Release, ...] = tuple((year, number) for year, number, _ in map(version, MEASURED))
"""The releases whose errors are known."""

OLDEST, NEWEST = RELEASES[0], RELEASES[-1]

_FORM = re.compile(r"(\d{4})\.(\d{1,2})(?:\.\d{1,2})?")
_HINT = 'give a release such as "2025.4", or the oldest and the newest one, such as "2024.6-2026.4"'


CPU, ARM, GPU = "CPU", "ARM", "GPU"
"""Devices whose errors are known: the CPU device, what is different in it on ARM processors, and the GPU device."""

ANY = "any"
"""All devices: what avoids an error of one of them is written if it costs the others nothing."""

DEVICES = (ANY, CPU, GPU, ARM)
"""The values of the option `device`."""


@dataclass(frozen=True)
class Target:
    """All releases from `oldest` to `newest`, and a `device`; a release after NEWEST is expected to be like NEWEST."""

    oldest: Release = OLDEST
    newest: Release = NEWEST
    device: str = ANY

    @classmethod
    def parse(cls, text: str | None, device: str = ANY) -> Target:
        """UsageError if `text` is neither a release nor a range, if it begins before OLDEST, or if there is no such
        release."""
        if text is None:
            return cls(device=device)
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
        return cls(oldest, newest, device)

    def may_have(self, gap: Gap) -> bool:
        """Whether a release has the error on any processor, or lies, not measured, between one that has it and one that
        does not; the error is one of the `device`, or of any device if that costs the others nothing.

        Errors of the CPU device are avoided for all devices: many of them are errors of the transformations that all
        devices share, and the others were tested with what avoids them.
        """
        is_free = not gap.alone and gap.device in {ANY: DEVICES, CPU: (CPU, ARM)}.get(self.device, ())
        return (is_free or gap.device in (CPU, self.device)) and any(
            releases is not None and self._meets(releases) for releases in map(gap.releases, Processor)
        )

    def _meets(self, releases: ReleaseRange) -> bool:
        first, last = (bound and version(bound) for bound in (releases.since, releases.until))
        before = [version(each)[:2] for each in MEASURED if first and version(each) < first]
        after = [version(each)[:2] for each in MEASURED if last and version(each) > last]
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


class Processor(Enum):
    """A kind of processor, by the instructions for which the runtime has other kernels; the best kind first.

    The name is that of the instructions in ONEDNN_MAX_CPU_ISA.
    """

    AVX512_CORE = "AVX-512"
    AVX2 = "AVX2"
    """Without AVX-512."""
    SSE41 = "SSE4.1"
    """Without AVX2."""


@dataclass(frozen=True)
class ReleaseRange:
    """The releases of `MEASURED` from `since` to `until`, both included; "" where there is no bound."""

    since: str = ""
    until: str = ""

    def __contains__(self, release: str) -> bool:
        """A release newer than all measured is like the newest."""
        number = version(release)
        return (not self.since or number >= version(self.since)) and (not self.until or number <= version(self.until))


NEVER = None
"""No release."""


@dataclass(frozen=True)
class Gap:
    """One error of the runtime, stated by the pass that avoids it: `avoids = (Gap("abs-of-concat", ...),)` of a pass.

    tests/runtime/probes has a graph under the name `id` that shows it; `tools/probe_runtime.py` runs it on a release
    and compares the result with `since` and `until`. `form` is written instead. `since` is the first release of
    `MEASURED` that has the error, "" if all of them have it up to `until`; `until` is the last one, "" if the newest
    still has it. `on` has the kinds of processors that other releases concern, or `NEVER`. Passes avoid it for all
    processors, because an IR runs on any. `rule` is the name of the pass, or the translator, in a table of all.

    `device` has the error; with `alone` it is avoided only in an IR for this device alone, because `form` costs time on
    others.
    """

    id: str
    sentence: str
    form: str = ""
    severity: str = WRONG
    since: str = ""
    until: str = ""
    on: Mapping[Processor, ReleaseRange | None] = field(default_factory=dict, hash=False)
    rule: str = ""
    device: str = CPU
    alone: bool = False

    @property
    def converted_for(self) -> str:
        """The value of the option `device` with which it is avoided."""
        return self.device if self.alone else ANY

    def releases(self, processor: Processor) -> ReleaseRange | None:
        """Those that have it on such a processor; None if none has."""
        return self.on.get(processor, ReleaseRange(self.since, self.until))

    def is_in(self, release: str, processor: Processor = Processor.AVX512_CORE) -> bool:
        """Whether `release`, such as "2025.4.1", has it on such a processor."""
        releases = self.releases(processor)
        return releases is not None and release in releases


def without_avx512(releases: ReleaseRange | None) -> dict[Processor, ReleaseRange | None]:
    """`on` of an error that other releases have on all processors without AVX-512, or `NEVER`."""
    return {Processor.AVX2: releases, Processor.SSE41: releases}
