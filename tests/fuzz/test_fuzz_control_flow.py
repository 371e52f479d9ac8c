"""A fixed part of the random control-flow models; tools/fuzz_controlflow.py runs any number of them.

Each model is converted and run on one compiled model with several input sets in changing order, and compared with ONNX
Runtime in a process of its own. Seed and index name a model:
`python tools/fuzz_controlflow.py --seed 2026 --only 17`.
"""

import atexit
from collections import Counter
from functools import cache

import numpy as np
import pytest
from onnx.parser import parse_model

from mo_loop.compare.oracle.oracle import OnnxRuntime
from mo_loop.support.workers import Pool
from tests.fuzz.control_flow.features import GROUPS, KINDS, features, rare
from tests.fuzz.control_flow.generator import generate
from tests.fuzz.control_flow.lowering import without_scan
from tests.fuzz.control_flow.oracle import REASONS
from tests.running.processor import fail_or_skip
from tests.running.samples import EXCUSED, Sample, settle

SEED = 2026
COUNT = 300
KNOWN: dict[int, str] = {}
"""Index -> the reason why the model fails. A listed model that passes fails the test."""

NOT_RUN: set[int] = set()
"""Valid models that ONNX Runtime refuses, or that crash it."""

EXCUSES: set[int] = set()
"""The number of models refused for one of the reasons listed in tests.fuzz.control_flow.oracle."""


@cache
def pool(target: str) -> Pool:
    made = Pool(target, limit=60)
    atexit.register(made.close)
    return made


@pytest.mark.sweep(6)
@pytest.mark.parametrize("index", range(COUNT))
def test_model(index: int) -> None:
    sample = pool("tests.fuzz.control_flow.oracle:oracle").call((SEED, index)).value
    if index in NOT_RUN:
        assert not isinstance(sample, Sample), f"ONNX Runtime runs {SEED}-{index} now: take it off the list"
        return
    assert isinstance(sample, Sample), f"{SEED}-{index}: ONNX Runtime cannot run it: {sample}"
    judge = pool("tests.running.samples:judge")
    verdict = settle(judge.call(("mo_loop", sample)), judge.call)
    if index in KNOWN:
        assert verdict.bad, f"{SEED}-{index} passes now: take it off the list ({KNOWN[index]})"
        return
    fail_or_skip([f"{SEED}-{index}: {verdict.result}, {verdict.message}"] if verdict.bad else [])
    assert (verdict.result == EXCUSED) == (index in EXCUSES), f"{SEED}-{index}: {verdict.result}, {verdict.message}"


def test_features() -> None:
    """Enough of the models have each feature, and at least one has each chain of three constructs."""
    counts: Counter[str] = Counter()
    models = 800
    for index in range(models):
        counts.update(generate(SEED, index).features.keys())
    assert rare(counts, models) == {}
    chains = [f"{a} in {b} in {c}" for a in KINDS for b in KINDS for c in KINDS]
    assert [chain for chain in chains if not counts[chain]] == []


def test_names_of_features_are_unique() -> None:
    names = list(features())
    assert len(names) == len(set(names)) and all(words for group in GROUPS.values() for words in group.values())


def test_a_model_depends_only_on_seed_and_index() -> None:
    first, again = generate(SEED, 17), generate(SEED, 17)
    assert first.model.SerializeToString(deterministic=True) == again.model.SerializeToString(deterministic=True)
    assert first.features == again.features


def test_a_scan_written_as_a_loop_slices_the_outer_value_of_a_name_that_its_body_hides() -> None:
    lowered = OnnxRuntime(without_scan(parse_model("""<ir_version: 8, opset_import: ["" : 11]>
        main (float[N] x) => (float[N] y) {
          [scan] y = Scan <num_scan_inputs = 1, body = step (float[N] x, float e) => (float[N] s) {
            s = Sub (x, e) }> (x, x)
        }"""), {"scan": []}))
    x = np.array([1, 2, 4], np.float32)
    assert dict(lowered.run({"x": x}))["y"].tolist() == (x - x.sum()).tolist()


def test_reasons_are_codes_of_unsupported_models() -> None:
    assert all(code.startswith("ML3") and why for code, why in REASONS.items())
