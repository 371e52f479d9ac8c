"""A fixed part of the random control-flow models (tools/fuzz_controlflow.py); the tool runs as many more as wanted.

Each model is converted and run on one compiled model with several input sets in changing order, against ONNX Runtime in
a process of its own. A model is named by seed and index: `python tools/fuzz_controlflow.py --seed 2026 --only 17`.
"""

from __future__ import annotations

import atexit
from functools import cache

import pytest

from mo_loop.verify.workers import Pool
from tools.fuzzing.check import settle

SEED = 2026
COUNT = 120
KNOWN: dict[int, str] = {
    11: "If returns a scalar in one branch and [1] in the other",
    20: "the runtime drops a constant without elements that is joined along another axis",
    54: "the runtime drops a constant without elements that is joined along another axis",
    57: "If returns different ranks",
}
"""Index -> why the model fails for now. One that passes all the same fails the test."""


@cache
def pool(target: str) -> Pool:
    made = Pool(f"tools.fuzzing.check:{target}", limit=60)
    atexit.register(made.close)
    return made


@pytest.mark.parametrize("index", range(COUNT))
def test_model(index: int) -> None:
    sample = pool("oracle").call((SEED, index)).value
    if sample is None or isinstance(sample, str):
        pytest.skip(f"ONNX Runtime cannot run it: {sample}")  # it refuses or crashes on some valid models
    judge = pool("judge")
    verdict = settle(judge.call(("mo_loop", sample)), judge.call)
    if index in KNOWN:
        assert verdict.bad, f"{SEED}-{index} passes now: take it off the list ({KNOWN[index]})"
    else:
        assert not verdict.bad, f"{SEED}-{index}: {verdict.result}, {verdict.message}"
