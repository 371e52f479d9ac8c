"""tools/probe_runtime.py: what it reports of the probes' results."""

import pytest

from mo_loop.target import Gap, Processor
from tests.runtime.probing import RIGHT, WRONG, Probe, Verdict
from tools.probe_runtime import Finding, _differences, _failures, _idle, _needless

ENDED = Gap("ended", "", rule="Rule", until="2025.1.0")
OPEN = Gap("open", "", rule="Other")
KINDS = {"SSE41": Processor.SSE41}
GOOD, BAD = Verdict(RIGHT), Verdict(WRONG)


def test_a_release_that_differs_from_the_table_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.probe_runtime.probes", lambda: {"ended": Probe("ended")})
    results = {"2025.1.0": GOOD, "2025.2.0": GOOD, "2026.4.1": BAD}
    findings = [Finding(ENDED, release, "", verdict) for release, verdict in results.items()]
    assert list(_differences(findings)) == [
        "ended: on 2025.1.0 the table says yes, and the probe no",
        "ended: on 2026.4.1 the table says no, and the probe yes",
    ]


def test_a_probe_that_is_wrong_with_the_rules_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a limit that gives other kernels than those of a processor, it may fail."""
    monkeypatch.setattr("tools.probe_runtime.probes", lambda: {"open": Probe("open", unlike=("SSE41",))})
    monkeypatch.setattr("tests.runtime.probing.processor", lambda limit: KINDS.get(limit, Processor.AVX2))
    findings = [Finding(OPEN, "2025.1.0", "", BAD, GOOD), Finding(OPEN, "2026.4.1", "", BAD, BAD)]
    findings.append(Finding(OPEN, "2026.4.1", "SSE41", BAD, BAD))
    assert list(_failures(findings)) == ["open: wrong on 2026.4.1 with the rules, too"]


def test_a_rule_is_needed_if_one_release_shows_it() -> None:
    once = [Finding(ENDED, "2024.6.0", "", BAD, GOOD, GOOD), Finding(ENDED, "2025.1.0", "", BAD, GOOD, BAD)]
    assert list(_needless(once)) == []
    never = [Finding(OPEN, each, "", BAD, GOOD, GOOD) for each in ("2024.6.0", "2026.4.1")]
    assert list(_needless([*once, *never])) == ["open: right without Other on every release"]
    by_translator = Finding(OPEN, "2026.4.1", "", BAD, GOOD)  # its model has no other form
    assert list(_needless([by_translator])) == []


def test_rules_whose_errors_no_release_shows_can_go() -> None:
    assert _idle([Finding(ENDED, "2026.4.1", "", GOOD), Finding(OPEN, "2026.4.1", "", BAD)]) == ["Rule"]
