"""The table of the runtime's errors: each is shown by a probe, and avoided by its rule."""

import json
from collections.abc import Iterable

import pytest

from mo_loop.errors import ConversionErrors, UnsupportedError
from mo_loop.frontend.registry import listed
from mo_loop.graph import Graph
from mo_loop.target import CPU, MEASURED, SEVERITIES, Gap, Processor
from tests.harness import BY_ID, RELEASE
from tests.running.processor import fail_or_skip, processor
from tests.running.together import Known, probed
from tests.runtime.probing import LIMIT, Probe, Verdict, limits, probes, rules, run, shows
from tools import rule_costs
from tools.gap_table import GAPS
from tools.runtimes import chosen_interpreter

PROBES = probes()
SHOWN = [gap for gap in GAPS if gap.device == CPU and gap.id in PROBES and PROBES[gap.id].limit == LIMIT]
AVOIDED = [gap for gap in SHOWN if gap.rule and gap.rule != "last check"]
BY_PASSES = [gap for gap in AVOIDED if gap.rule in rules() and not PROBES[gap.id].onnx]

UNSHOWN = {"zero-trips-size-of-capture", "returned-slice", "tile-of-two-axes", "rdft-f64", "initial-value-read-late",
           "failed-check-with-one-thread", "inference-after-failed-check", "returned-output-of-another-request"}
"""Gaps of which no graph is known that shows them on one of the measured releases, or that need a reset, an inference
that fails or a second request, which probes do not do: tests/runtime/states/test_make_stateful.py,
tests/runtime/verify/test_verify.py, tests/runtime/passes/test_requests.py."""


def test_ids_are_unique_and_words_with_dashes() -> None:
    assert len(BY_ID) == len(GAPS)
    assert [gap.id for gap in GAPS if not gap.id.replace("-", "").isalnum() or gap.id != gap.id.lower()] == []


def test_rows_are_complete() -> None:
    assert [gap.id for gap in GAPS if gap.severity not in SEVERITIES] == []
    assert [gap.id for gap in GAPS if bool(gap.rule) != bool(gap.form)] == []
    assert [gap.id for gap in GAPS if gap.alone and gap.device == CPU] == []
    for gap in GAPS:
        ranges = [each for each in map(gap.releases, Processor) if each is not None]
        assert {bound for each in ranges for bound in (each.since, each.until)} <= {"", *MEASURED}, gap.id
    assert [gap.id for gap in GAPS if gap.sentence.endswith(".") or gap.sentence[0].isspace()] == []


def test_rules_are_passes_of_the_pipeline_translators_or_the_last_check() -> None:
    others = {gap.rule for gap in GAPS if gap.rule} - rules()
    names = {rule.removeprefix("translator of ") for rule in others} - {"last check"}
    assert [name for name in names if not listed(name)] == []


def test_the_costs_of_every_rule_are_measured() -> None:
    """tools/rule_costs.py RULE measures those of a new one; docs/runtime.md lists them."""
    assert list(json.loads(rule_costs.FILE.read_text("utf-8"))) == rule_costs.names()


def test_every_gap_has_a_probe() -> None:
    assert {gap.id for gap in GAPS} - PROBES.keys() == UNSHOWN
    assert PROBES.keys() <= BY_ID.keys()


def test_what_translators_avoid_is_shown_by_an_onnx_model_too() -> None:
    """No pass avoids it, so the graph alone does not show what is written instead."""
    assert [gap.id for gap in AVOIDED if gap.rule not in rules() and not PROBES[gap.id].onnx] == []


def test_releases_are_compared_as_numbers() -> None:
    gap = Gap("a", "b", since="2025.4.1", until="2026.4.1")
    asked = ("2024.6.0", "2025.4.1", "2025.10.0", "2026.4.1", "2026.10.0")
    assert [gap.is_in(release) for release in asked] == [False, True, True, True, False]
    assert Gap("a", "b").is_in("2030.1.0")


def judged(probe: Probe, graph: Graph, limit: str) -> tuple[Verdict, Known]:
    """The result of the probe for a graph, and the place where an earlier run of the tests has left it."""
    python = chosen_interpreter()
    known = probed(graph, repr(probe), python or "", limit)
    return known.found or run(probe, graph, limit, python=python), known


UNLIKE = pytest.mark.skip(reason="the limit of the instructions gives other kernels than a processor that has no more")


def each_limit(gaps: Iterable[Gap], *, only_shown: bool = False) -> pytest.MarkDecorator:
    """Run a test for each gap under each of its `limits`; with `only_shown` where its probe shows it."""
    rows = [(gap, limit, shows(gap, PROBES[gap.id], RELEASE, limit)) for gap in gaps for limit in limits(gap)]
    parameters = [
        pytest.param(gap, limit, id=f"{gap.id}{limit and f'-{limit}'}", marks=UNLIKE if expected is None else ())
        for gap, limit, expected in rows
        if expected is not False or not only_shown
    ]
    return pytest.mark.parametrize(("gap", "limit"), parameters)


@pytest.mark.sweep(2)
@each_limit(SHOWN)
def test_the_probe_shows_what_the_table_says(gap: Gap, limit: str) -> None:
    """On the installed release, or that of MO_LOOP_RUNTIME, and on this processor."""
    probe = PROBES[gap.id]
    verdict, known = judged(probe, probe.as_written(), limit)
    text = f"{processor(limit).value}: {verdict.result}: {verdict.message}"
    assert verdict.is_right != shows(gap, probe, RELEASE, limit), text
    known.keep(verdict)


@each_limit(AVOIDED)
def test_the_rule_avoids_it(gap: Gap, limit: str) -> None:
    probe = PROBES[gap.id]
    verdict, known = judged(probe, probe.avoided(), limit)
    fail_or_skip([] if verdict.is_right else [f"{verdict.result}: {verdict.message}"])
    known.keep(verdict)


@pytest.mark.skipif(MEASURED[-1] != RELEASE, reason="tools/probe_runtime.py --every wants one release where it is so")
@pytest.mark.sweep(2)
@each_limit(BY_PASSES, only_shown=True)
def test_the_other_rules_do_not_avoid_it(gap: Gap, limit: str) -> None:
    """So the rule is not there for nothing."""
    probe = PROBES[gap.id]
    verdict, known = judged(probe, probe.avoided(gap.rule, *probe.skips), limit)
    assert not verdict.is_right, f"the probe is right without {gap.rule} on OpenVINO {RELEASE}"
    known.keep(verdict)


@pytest.mark.parametrize("gap", [gap for gap in SHOWN if gap.rule == "last check"], ids=lambda gap: gap.id)
def test_the_last_check_refuses_it(gap: Gap) -> None:
    with pytest.raises((ConversionErrors, UnsupportedError), match=gap.form.partition(", ")[2]):
        PROBES[gap.id].avoided()
