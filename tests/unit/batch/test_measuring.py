"""Time and memory of a conversion, measured in a process that has done other work before."""

import subprocess
import sys
from pathlib import Path

import pytest

from mo_loop.batching.estimates import Meter

SCRIPT = """
from mo_loop.batching.estimates import Meter

MB = 1 << 20
costs = []
for size in (200, 1, 100):
    meter = Meter()
    kept = bytearray(size * MB)
    kept[::4096] = b"x" * len(kept[::4096])
    del kept
    costs.append(meter.cost())
large, small, medium = costs
assert large.memory > 200 * MB and large.peak > 200 * MB, large
assert small.memory < 100 * MB and small.memory <= small.peak, small
assert 100 * MB < medium.memory < 200 * MB, medium
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a peak that begins anew")
def test_the_peak_of_an_earlier_model_is_not_that_of_the_next() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], cwd=Path(__file__).parents[3], check=True)


def test_where_the_peak_cannot_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a new peak nothing is known but the limit."""
    monkeypatch.setattr("mo_loop.batching.estimates.reset_peak", lambda: False)
    monkeypatch.setattr("mo_loop.batching.estimates.peak_memory", lambda: 900)
    monkeypatch.setattr("mo_loop.batching.estimates.memory_now", lambda: 300)
    monkeypatch.setattr("mo_loop.batching.estimates._NEW_PROCESS", 200)
    cost = Meter().cost()
    assert (cost.memory, cost.peak) == (200, 900) and cost.seconds >= 0
