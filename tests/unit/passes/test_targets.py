"""Target: releases, and the rules that they need."""

import pytest

from mo_loop import target
from mo_loop.errors import UsageError
from mo_loop.options import ConvertOptions
from mo_loop.target import Gap, Target
from mo_loop.transforms import pipelines
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.pipelines import is_needed
from mo_loop.transforms.runtime import local


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four releases were measured."""
    monkeypatch.setattr(target, "MEASURED", ("2024.6.0", "2025.1.0", "2025.4.1", "2026.4.1"))


def rule(name: str, *gaps: Gap) -> type[FunctionPass]:
    return type(name, (FunctionPass,), {"avoids": gaps})


WITH_GAPS = (
    rule("Always", Gap("always", "")), rule("Ended", Gap("ended", "", until="2025.1.0")),
    rule("Begun", Gap("begun", "", since="2026.4.1")),
    rule("Two", Gap("two-1", "", until="2024.6.0"), Gap("two-2", "", since="2026.4.1")), rule("Unlisted"),
)
"""Rules that avoid errors that all releases have, that ended, and that began later."""


@pytest.mark.parametrize(("text", "shown"), [
    (None, "2024.6-2026.4"), ("2025.4", "2025.4"), ("2025.4.1", "2025.4"), ("2024.6-2025.0", "2024.6-2025.0"),
    (" 2025.1 - 2025.1.3 ", "2025.1"), ("2024.6.0-2031.12", "2024.6-2031.12"),
])
def test_text(text: str | None, shown: str) -> None:
    assert str(Target.parse(text)) == shown


@pytest.mark.parametrize(("text", "said"), [
    ("", "is not a release"), ("new", "is not a release"), ("2025", "is not a release"),
    ("2025.4-", "not a release"),
    ("2025.4-2025.1-2026.1", "not a release"), ("2025.4-2025.1", "ends before it begins"),
    ("2024.5", "begins before 2024.6"), ("2023.3-2026.1", "begins before 2024.6"),
    ("2025.7", "there is no OpenVINO 2025.7"),
])
def test_bad_text(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ConvertOptions(target=text)


@pytest.mark.parametrize(("text", "needed"), [
    (None, "Always Ended Begun Two Unlisted"),
    ("2024.6", "Always Ended Two Unlisted"),
    ("2025.1", "Always Ended Unlisted"),
    ("2025.2", "Always Ended Unlisted"),  # not measured, and the release before has it
    ("2025.4", "Always Unlisted"),
    ("2026.1", "Always Begun Two Unlisted"),  # not measured, and the next release has it
    ("2026.4", "Always Begun Two Unlisted"),
    ("2027.0", "Always Begun Two Unlisted"),
])
def test_needed_rules(text: str | None, needed: str) -> None:
    assert " ".join(each.__name__ for each in WITH_GAPS if is_needed(each, Target.parse(text))) == needed


@pytest.mark.parametrize(("device", "avoided"), [
    ("any", "cpu arm gpu"), ("CPU", "cpu arm"), ("ARM", "cpu arm arm-alone"), ("GPU", "cpu gpu gpu-alone"),
])
def test_gaps_of_devices(device: str, avoided: str) -> None:
    """Those of the CPU are avoided for all, those that cost other devices time for their own alone."""
    gaps = [Gap("cpu", "")]
    for name in ("ARM", "GPU"):
        gaps += [Gap(name.lower(), "", device=name), Gap(f"{name.lower()}-alone", "", device=name, alone=True)]
    assert " ".join(gap.id for gap in gaps if Target.parse(None, device).may_have(gap)) == avoided


def test_a_device_is_one_of_those_known() -> None:
    with pytest.raises(UsageError, match="device is 'NPU'"):
        ConvertOptions(device="NPU")


def _disabled(target: str) -> list[str]:
    """The passes that are off by default."""
    passes = pipelines.default_pipeline(target=Target.parse(target))
    return [each.name for each in passes if not each.enabled_by_default]


def test_rules_that_no_release_needs_are_off_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines, "_not_needed", pipelines._not_needed.__wrapped__)  # without its cache
    for each in pipelines.RULES:
        monkeypatch.setattr(each, "avoids", ())
    for each in local.RULES:
        monkeypatch.setattr(each, "avoids", ())
    gone = pipelines.RULES[0]
    monkeypatch.setattr(gone, "avoids", (Gap("gone", "", until="2025.1.0"),))
    assert _disabled("2026.4") == [gone.__name__] and _disabled("2025.0") == [] and gone.enabled_by_default


def test_a_rule_that_others_rely_on_is_needed_on_every_release(monkeypatch: pytest.MonkeyPatch) -> None:
    (relied_on,) = pipelines.RELIED_ON
    monkeypatch.setattr(relied_on, "avoids", (Gap("gone", "", until="2025.1.0"),))
    assert is_needed(relied_on, Target.parse("2026.4"))
