"""Random control-flow models: a fixed part of them, and their generator; tools/fuzz_controlflow.py runs any number."""

import atexit
from collections import Counter
from functools import cache

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

from mo_loop.compare.oracle.oracle import OnnxRuntime
from mo_loop.support.workers import Pool
from tests.fuzz.control_flow.features import GROUPS, KINDS, features, rare
from tests.fuzz.control_flow.generator import Case, generate
from tests.fuzz.control_flow.lowering import without_scan
from tests.fuzz.control_flow.oracle import REASONS, oracle
from tests.running.processor import fail_or_skip
from tests.running.samples import EXCUSED, Sample, settle

# -- A fixed part of the random control-flow models; tools/fuzz_controlflow.py runs any number of them.
#
# Each model is converted and run on one compiled model with several input sets in changing order, and compared with
# ONNX Runtime in a process of its own. Seed and index name a model:
# `python tools/fuzz_controlflow.py --seed 2026 --only 17`.


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


@pytest.mark.sweep(16)
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


# -- The generator of random control-flow models: repeatable, valid, and with all of its features


GENERATED = 150

FEATURES = """
Loop  Scan  If
Loop in Loop  Loop in Scan  Loop in If  Scan in Loop  Scan in Scan  Scan in If  If in Loop  If in Scan  If in If
depth 1  depth 2  depth 3  capture  capture through levels  captured initializer  initializer in body  shadowed name
opset 11  opset 13  opset 16  opset 17  opset 19  opset 21  function call in body
trip constant  trip input  trip computed  trip omitted  trip huge  trip -1  trip 0  trip 1
condition true  condition input  condition computed  condition omitted
body condition same  body condition counter  body condition computed  body condition or iteration [1]
state update  state same  state swapped  state captured  state constant  state grown  state shrunk  state other
scan output of a body input  scan output of the iteration  scan output of a capture  scan output of a constant
one value to several outputs  unused control-flow output
Scan static  Scan dynamic  Scan without state  Scan K != M  Scan axis > 0  length 0
scan_input_axes negative  scan_output_axes negative  scan_input_directions reverse  scan_output_directions reverse
If condition input  If condition computed  If condition constant  If condition iteration
If shapes differ  If branch a constant  If branch without captures  If capture returned
declared full  declared rank  declared type  declared nothing
"""

WHIMS = ("nodes out of order", "body without nodes", "body returns a capture directly", "invalid branch never taken")
"""Forms that exporters write, ONNX Runtime runs and onnx.checker refuses."""


@cache
def cases() -> list[Case]:
    return [generate(5, index) for index in range(GENERATED)]


def test_a_case_depends_only_on_seed_and_index() -> None:
    for case in cases()[:10]:
        again = generate(5, case.index)
        assert again.model.SerializeToString(deterministic=True) == case.model.SerializeToString(deterministic=True)
        for left, right in zip(case.feeds, again.feeds, strict=True):
            assert left.keys() == right.keys()
            assert all(np.array_equal(left[name], right[name]) for name in left)
    assert generate(6, 0).model != generate(5, 0).model


def test_the_checker_accepts_the_models() -> None:
    for case in cases():
        if not any(case.features[whim] for whim in WHIMS):
            onnx.checker.check_model(case.model)


def test_input_sets_fit_the_declared_inputs() -> None:
    for case in cases():
        assert case.order == (0, 1, 2, 0)
        for feeds in case.feeds:
            assert [port.name for port in case.model.graph.input] == list(feeds)
            for port in case.model.graph.input:
                dims = port.type.tensor_type.shape.dim
                array = feeds[port.name]
                assert array.ndim == len(dims)
                fixed = [
                    (d.dim_value, size) for d, size in zip(dims, array.shape, strict=True) if d.HasField("dim_value")
                ]
                assert all(declared == size for declared, size in fixed)


@pytest.mark.parametrize("feature", [name for line in FEATURES.splitlines() for name in line.split("  ") if name])
def test_every_feature_occurs(feature: str) -> None:
    assert Counter(name for case in cases() for name in case.features)[feature]


def test_half_of_the_models_nest() -> None:
    """A third would be enough; lists, which are read in loops of their own, give more."""
    deep = sum(case.features["depth 2"] + case.features["depth 3"] > 0 for case in cases())
    assert 0.4 < deep / GENERATED < 0.65


def test_onnx_runtime_runs_the_models() -> None:
    pytest.importorskip("onnxruntime")
    samples = [oracle((5, index)) for index in range(12)]
    ready = [sample for sample in samples if isinstance(sample, Sample)]
    assert len(ready) >= 10
    for sample in ready:
        assert len(sample.feeds) == len(sample.expected) >= 2
