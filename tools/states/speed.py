"""Measures one decoder: its numbers and its speed, with states and without.

`measure` takes a `Task` and returns a `Row`. It runs in a worker process, which may crash; `report_stage` names the
side that is at work.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.support.workers import report_stage
from tools.states import ovc_stateful
from tools.states.decoders import Explicit, OnnxRuntime, OpenVino, Stateful, Steps

EXPLICIT, OURS, AGAIN, BEAMS = "explicit", "states", "states again", "beam_idx"
PEER, PEER_BEAMS, SMALL = "ovc", "ovc, Gather", "u8 cache"
PROPERTIES = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "NUM_STREAMS": 1}
"""The plugin stores caches in u8 otherwise, also with the hint f32."""
FUSED = "ScaledDotProductAttention"
PROMPT, TOKENS, WITH_ONNX_RUNTIME = 16, 64, 8
VOCABULARY = 8000


@dataclass(frozen=True)
class Task:
    """A model file, the keys and values of its encoder, and how long it runs."""

    name: str
    model: Path
    cross: Mapping[str, np.ndarray]
    context: int
    steps: int
    rounds: int
    threads: int


@dataclass
class Row:
    """The result of one decoder. `seconds` are those of one step by side; `faster` is the gain of ours over a side."""

    name: str
    problem: str = ""
    fused: int = 0
    difference: float = float("inf")
    difference_from_onnx: float = float("inf")
    difference_small: float = float("inf")
    seconds: dict[str, float] = field(default_factory=dict)
    faster: dict[str, float] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)


def measure(task: Task) -> Row:
    """Convert on all sides, compare the numbers of the first tokens, then time all sides in turn."""
    row = Row(task.name)
    with tempfile.TemporaryDirectory() as folder:
        sides = _sides(row, task, Path(folder))
    report_stage("numbers")
    _compare(row, sides, OnnxRuntime(task.model, task.cross))
    report_stage("timing")
    times = _timed(task, sides)
    row.seconds = {side: statistics.median(taken) for side, taken in times.items()}
    ours = times[OURS]
    row.faster = {
        side: statistics.median(theirs / own for theirs, own in zip(taken, ours, strict=True))
        for side, taken in times.items()
        if side != OURS
    }
    return row


def _sides(row: Row, task: Task, folder: Path) -> dict[str, OpenVino]:
    from openvino import Core

    core, properties = Core(), PROPERTIES | {"INFERENCE_NUM_THREADS": task.threads}
    explicit, states, beams = (folder / f"{name}.xml" for name in ("explicit", "states", "beams"))
    _save(task.model, explicit)
    _save(task.model, states, stateful=True)
    _save(task.model, beams, stateful=True, beam_idx=True)
    made: dict[str, Callable[[], OpenVino]] = {
        EXPLICIT: lambda: Explicit(core.compile_model(explicit, "CPU", properties), task.cross),
        OURS: lambda: Stateful(core.compile_model(states, "CPU", properties), task.cross),
        AGAIN: lambda: Stateful(core.compile_model(states, "CPU", properties), task.cross),
        BEAMS: lambda: Stateful(core.compile_model(beams, "CPU", properties), task.cross),
        SMALL: lambda: Stateful(
            core.compile_model(states, "CPU", properties | {"KV_CACHE_PRECISION": "u8"}), task.cross
        ),
        PEER: lambda: _peer(core, task, properties, beams=False),
        PEER_BEAMS: lambda: _peer(core, task, properties, beams=True),
    }
    sides: dict[str, OpenVino] = {}
    for side, make in made.items():
        report_stage(side)
        try:
            sides[side] = make()
        except Exception as error:
            if side not in (PEER, PEER_BEAMS):
                raise
            row.refused[side] = str(error).strip().splitlines()[0][:120]
    row.fused = fused(sides[OURS].compiled)
    return sides


def _save(source: Path, target: Path, **options: Any) -> None:
    from mo_loop import convert_model, save_model

    save_model(convert_model(source, **options), target)


def _peer(core: Any, task: Task, properties: Mapping[str, Any], *, beams: bool) -> Stateful:
    model = ovc_stateful.convert(task.model, beams=beams)
    return Stateful(core.compile_model(model, "CPU", properties), task.cross)


def fused(compiled: Any) -> int:
    """How many layers of the compiled model are attention with its cache inside."""
    layers = compiled.get_runtime_model().get_ops()
    return sum(str(each.get_rt_info()["layerType"].value) == FUSED for each in layers)


# -- numbers


def _compare(row: Row, sides: Mapping[str, OpenVino], reference: OnnxRuntime) -> None:
    """Greedy tokens of the explicit caches after a prompt; all other sides read the same tokens."""
    prompt = np.random.default_rng(0).integers(3, VOCABULARY, (1, PROMPT))
    explicit = sides[EXPLICIT]
    explicit.start(1)
    expected = [explicit.step(prompt)]
    for _ in range(TOKENS - 1):
        expected.append(explicit.step(_best(expected[-1])))
    given = [prompt, *map(_best, expected[:-1])]
    row.difference = _largest(sides[OURS], given, expected)
    row.difference_small = _largest(sides[SMALL], given, expected)
    first = slice(WITH_ONNX_RUNTIME)
    reference.start(1)
    wanted = [reference.step(each) for each in given[first]]
    row.difference_from_onnx = max(map(difference, wanted, _run(sides[OURS], given[first])))
    for side in (BEAMS, PEER, PEER_BEAMS):
        if side in sides and (found := _largest(sides[side], given, expected)) > 1e-3:
            row.refused[side] = f"other numbers, {found:.1e}"


def _largest(side: Steps, given: list[np.ndarray], expected: list[np.ndarray]) -> float:
    return max(map(difference, expected, _run(side, given)))


def _run(side: Any, given: list[np.ndarray]) -> list[np.ndarray]:
    side.start(1)
    return [side.step(each) for each in given]


def _best(logits: np.ndarray) -> np.ndarray:
    return logits[:, -1:].argmax(-1)


def difference(expected: np.ndarray, found: np.ndarray) -> float:
    """The largest difference as a part of the largest magnitude; infinite if one is NaN."""
    if expected.shape != found.shape or not np.isfinite(found).all():
        return float("inf")
    return float(np.abs(expected - found).max() / np.abs(expected).max())


# -- speed


def _timed(task: Task, sides: Mapping[str, OpenVino]) -> dict[str, list[float]]:
    """Seconds of single steps after a filled cache, the sides in turn, in another order for each step.

    A side that follows one which reads much memory is slower.
    """
    random = np.random.default_rng(1)
    tokens = random.integers(3, VOCABULARY, (1, task.context + task.steps))
    names = list(sides)
    times: dict[str, list[float]] = {side: [] for side in names}
    for _ in range(task.rounds):
        for each in sides.values():
            each.start(1)
            each.advance(tokens[:, : task.context])
        for number in range(task.steps):
            token = tokens[:, task.context + number :][:, :1]
            for side in map(names.__getitem__, random.permutation(len(names))):
                started = time.perf_counter()
                sides[side].advance(token)
                times[side].append(time.perf_counter() - started)
    return times
