"""Which rules for the runtime the releases of a target need."""

from __future__ import annotations

from functools import cache

from mo_loop.target import Target
from transforms.runtime.gaps import GAPS, MEASURED, Gap, version

RELIED_ON = ("PushConstantToSubgraph",)
"""Rules whose form other rules rely on: they read axes and sizes where the constants are."""


def needs(target: Target, rule: str) -> bool:
    """Whether a release of the target may have an error that `rule` avoids; True if the table names no error."""
    avoided = _by_rule().get(rule, ())
    return rule in RELIED_ON or not avoided or any(may_have(target, gap) for gap in avoided)


def may_have(target: Target, gap: Gap) -> bool:
    """Whether a release of the target has the error, or was not measured and lies between one that has it and one that
    does not."""
    measured = [version(each) for each in MEASURED]
    before = [each[:2] for each in measured if gap.since and each < version(gap.since)]
    after = [each[:2] for each in measured if gap.until and each > version(gap.until)]
    return not (before and target.newest <= before[-1]) and not (after and target.oldest >= after[0])


@cache
def _by_rule() -> dict[str, list[Gap]]:
    found: dict[str, list[Gap]] = {}
    for gap in GAPS:
        found.setdefault(gap.rule, []).append(gap)
    return found
