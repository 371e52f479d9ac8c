"""From graph text to numbers: parse, emit, read with OpenVINO, run on one compiled model, compare with numpy.

    check('''
        %x = Parameter : f32[N]
        %y = Negative(%x)
        Result(%y)
    ''', lambda x: [-x], [f32(1, 2)], [f32()])

What is native runs in a worker process: a form that crashes the runtime is a failed test, not the end of all.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.graph.verifier import invariants
from mo_loop.ir.bin import Weights
from mo_loop.ir.xml import XmlWriter
from mo_loop.text import parse
from mo_loop.verify.compare import compare
from mo_loop.workers import Pool

Array = np.ndarray[Any, Any]


def f32(*items: float) -> Array:
    return np.array(items, np.float32)


def i64(item: Any) -> Array:
    return np.array(item, np.int64)


def boolean(item: Any) -> Array:
    return np.array(item, np.bool_)


def random(*shape: int, seed: int = 0) -> Array:
    """Normally distributed numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def check(text: str, oracle: Callable[..., Sequence[Any]], *feeds: Sequence[Any]) -> None:
    """Run the graph for every feed (arrays in the order of the Parameters), forwards, backwards and interleaved.

    `oracle` gets the arrays of one feed and returns what the Results must give. AssertionError when anything differs.
    """
    graph = parse(text)
    assert not invariants(graph)
    forwards = list(range(len(feeds)))
    order = [*forwards, *reversed(forwards), *forwards[::2], *forwards[1::2], *forwards]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "form.xml"
        with open(path, "w", encoding="utf-8", newline="\n") as xml, open(path.with_suffix(".bin"), "wb") as data:
            XmlWriter(xml, Weights(data)).write(graph)
        outcome = _pool().call((str(path), [list(feeds[number]) for number in order]))
    assert outcome.ok, f"{outcome.status}: {outcome.message}\n{outcome.detail}"
    wrong = []
    for place, (number, actual) in enumerate(zip(order, outcome.value, strict=True)):
        expected = [np.asarray(each) for each in oracle(*feeds[number])]
        for port, (want, got) in enumerate(zip(expected, actual, strict=True)):
            result = compare(want, got, f"inference {place} (feed {number}), output {port}", rtol=1e-5)
            wrong += [] if result else [str(result)]
    assert not wrong, "\n".join(wrong[:8])


def serve(task: tuple[str, list[list[Any]]]) -> list[list[Array]]:
    """What the worker runs: all feeds on one compiled model."""
    from mo_loop.verify.runtime import compile_ir

    path, feeds = task
    compiled = compile_ir(path)
    return [[array for _, array in compiled.run(feed)] for feed in feeds]


@functools.cache
def _pool() -> Pool:
    return Pool(f"{__name__}:serve", limit=120)
