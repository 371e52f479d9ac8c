"""The models of an audit: the conformance suites, the models of the tests, random control flow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from mo_loop.support.workers import Pool
from tests.models.sources.exporting.inputs import read_cases
from tools.auditing.ports import Task

MODELS = Path(__file__).resolve().parents[2] / "tests" / "models"
FOLDERS = "models"
RANDOM = "fuzz"


def exported() -> Iterator[Task]:
    """The models on disk, each with the inputs its cases.toml lists."""
    for listed in sorted(MODELS.glob("*/cases.toml")):
        for name, model in sorted(read_cases(listed).items()):
            yield Task(FOLDERS, f"{listed.parent.name}/{name}", str(listed.parent / f"{name}.onnx"), model.sets)


def suites(kinds: Sequence[str]) -> Iterator[Task]:
    """The cases of the conformance suites whose inputs and outputs are tensors."""
    from tests.conformance.cases import collect

    for entry in collect(kinds):
        if not entry.sample.arguments:
            yield Task(entry.kind, entry.name, entry.sample.model, entry.sample.feeds)


def random(count: int, seed: int, jobs: int) -> Iterator[Task]:
    """Random control-flow models, without those that ONNX Runtime refuses, as in the fuzzer."""
    with Pool("tests.fuzz.control_flow.oracle:oracle", jobs=jobs, limit=30, memory=6 << 30) as oracle:
        for outcome in oracle.map((seed, index) for index in range(count)):
            if outcome.ok and not isinstance(outcome.value, str):
                yield Task(RANDOM, outcome.value.name, outcome.value.model, outcome.value.feeds)
