"""Target: releases, and the rules that they need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mo_loop.errors import UsageError
from mo_loop.options import ConvertOptions
from mo_loop.target import RELEASES, Target
from transforms import pipelines
from transforms.runtime import targets
from transforms.runtime.gaps import MEASURED, Gap, version
from transforms.runtime.targets import needs


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Four releases were measured; gaps that all have, that ended, and that began later."""
    gaps = (
        Gap("always", "", rule="Always"), Gap("ended", "", rule="Ended", until="2025.1.0"),
        Gap("begun", "", rule="Begun", since="2026.4.1"), Gap("two-1", "", rule="Two", until="2024.6.0"),
        Gap("two-2", "", rule="Two", since="2026.4.1"),
    )  # fmt: skip
    monkeypatch.setattr(targets, "GAPS", gaps)
    monkeypatch.setattr(targets, "MEASURED", ("2024.6.0", "2025.1.0", "2025.4.1", "2026.4.1"))
    targets._by_rule.cache_clear()
    yield
    targets._by_rule.cache_clear()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (None, "2024.6-2026.4"), ("2025.4", "2025.4"), ("2025.4.1", "2025.4"), ("2024.6-2025.0", "2024.6-2025.0"),
        (" 2025.1 - 2025.1.3 ", "2025.1"), ("2024.6.0-2031.12", "2024.6-2031.12"),
    ],
)  # fmt: skip
def test_text(text: str | None, shown: str) -> None:
    assert str(Target.parse(text)) == shown


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a release"), ("new", "is not a release"), ("2025", "is not a release"),
        ("2025.4-", "not a release"),
        ("2025.4-2025.1-2026.1", "not a release"), ("2025.4-2025.1", "ends before it begins"),
        ("2024.5", "begins before 2024.6"), ("2023.3-2026.1", "begins before 2024.6"),
        ("2025.7", "there is no OpenVINO 2025.7"),
    ],
)  # fmt: skip
def test_bad_text(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ConvertOptions(target=text)


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        (None, "Always Ended Begun Two Unlisted"),
        ("2024.6", "Always Ended Two Unlisted"),
        ("2025.1", "Always Ended Unlisted"),
        ("2025.2", "Always Ended Unlisted"),  # not measured, and the release before has it
        ("2025.4", "Always Unlisted"),
        ("2026.1", "Always Begun Two Unlisted"),  # not measured, and the release behind has it
        ("2026.4", "Always Begun Two Unlisted"),
        ("2027.0", "Always Begun Two Unlisted"),
    ],
)
def test_needed_rules(text: str | None, needed: str) -> None:
    rules = ("Always", "Ended", "Begun", "Two", "Unlisted")
    assert " ".join(rule for rule in rules if needs(Target.parse(text), rule)) == needed


def _disabled(target: str) -> list[str]:
    """The passes that are off by default."""
    passes = pipelines.default_pipeline(target=Target.parse(target))
    return [each.name for each in passes if not each.enabled_by_default]


def test_rules_that_no_release_needs_are_off_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = pipelines.RULES[0]
    gap = Gap("gone", "", rule=rule.__name__, until="2025.1.0")
    monkeypatch.setattr(targets, "GAPS", (gap,))
    targets._by_rule.cache_clear()
    assert _disabled("2026.4") == [rule.__name__]
    assert _disabled("2025.0") == []
    assert rule.enabled_by_default


def test_a_rule_that_others_rely_on_is_needed_on_every_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "GAPS", (Gap("gone", "", rule=targets.RELIED_ON[0], until="2025.1.0"),))
    targets._by_rule.cache_clear()
    assert needs(Target.parse("2026.4"), targets.RELIED_ON[0])
    assert all(hasattr(pipelines, each) for each in targets.RELIED_ON)


def test_the_releases_are_the_measured_ones() -> None:
    assert [version(each)[:2] for each in MEASURED] == list(RELEASES)
