"""Converts one random quantised network, runs it, and compares the results. `measure` runs in a worker process."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.support.workers import report_stage
from mo_loop.target import ANY
from tests.fuzz.quantised import Case, draw
from tests.running.samples import CONVERTERS, OURS

LIMITS = {"fast": 0.03, "portable": 0.03, "exact": 0.01}
"""The largest differences in the modes. A number in the middle of two steps may be rounded to either if its sum is not
exact."""
OF_POWERS = 0.2
"""In fast mode if scales are powers of two: many numbers lie in the middle of two steps."""
OF_HALF = 0.1
"""If tensors are f16, in exact mode or with 8-bit floats: only the IR rounds numbers to f16 between layers. A step of
an 8-bit float is up to an eighth of the number."""
ROUNDING = 2e-6
"""If all sums and quotients are exact but the last ones, which may not be quantised."""


@dataclass(frozen=True)
class Task:
    """A network of a seed, the converter, the interpreter of another release that runs the IR, and the device for which
    it is converted."""

    seed: int
    index: int
    style: str | None = None
    converter: str = OURS
    quantization: str = "fast"
    python: str | None = None
    device: str = ANY


@dataclass
class Found:
    """The largest difference of a network, and its products: all, and those with 8 bits."""

    difference: float
    products: int = 0
    narrow: int = 0


def measure(task: Task) -> Found:
    """Convert a network, run the IR, and compare the results."""
    from mo_loop.compare.execution.runtime import compile_ir
    from mo_loop.compare.oracle.oracle import OnnxRuntime
    from tests.running.samples import CompiledElsewhere

    case = draw(task.seed, task.index, task.style)
    report_stage("oracle")
    oracle = OnnxRuntime(case.reference)
    kind = case.sets[0]["x"].dtype
    expected = [oracle.run({"x": feeds["x"].astype(np.float32)})[0][1].astype(kind) for feeds in case.sets]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "model.onnx"), Path(folder, "model.xml")
        source.write_bytes(case.model.SerializeToString())
        report_stage("convert")
        CONVERTERS[task.converter](source, target, {"quantization": task.quantization, "device": task.device})
        report_stage("compile")
        compiled = compile_ir(target) if task.python is None else CompiledElsewhere(target, task.python)
        report_stage("run")
        found = [compiled.run(feeds)[0][1] for feeds in case.sets]
    made = Found(max(difference(*each) for each in zip(expected, found, strict=True)))
    if task.python is None:
        made.products, made.narrow = _products(compiled.model.get_runtime_model())
    return made


def difference(expected: Any, found: Any) -> float:
    """The norm of the deviation as a share of that of the expected values around their mean."""
    if expected.shape != found.shape or expected.dtype != found.dtype or not np.all(np.isfinite(found)):
        return float("inf")
    wanted = expected.astype(np.float64)
    size = np.linalg.norm(wanted - wanted.mean()) or np.linalg.norm(wanted) or 1.0
    return float(np.linalg.norm(found.astype(np.float64) - wanted) / size)


def _products(model: Any) -> tuple[int, int]:
    kinds = ("Convolution", "Deconvolution", "FullyConnected", "MatMul")
    infos = [each.get_rt_info() for each in model.get_ops()]
    found = [info["runtimePrecision"].astype(str) for info in infos if info["layerType"].astype(str) in kinds]
    return len(found), sum(each in ("u8", "i8") for each in found)


def verdict_of(case: Case, outcome: Any) -> str:
    """The fault in the result of a network; empty if there is none."""
    if not outcome.ok:
        return f"{outcome.status} at {outcome.stage}: {outcome.message.strip().splitlines()[-1][:300]}"
    limit = limit_of(case, outcome.task.quantization)
    return "" if outcome.value.difference <= limit else f"wrong: {outcome.value.difference:.3g}"


def limit_of(case: Case, quantization: str) -> float:
    """The largest difference that a network may have."""
    if quantization == "exact" and case.is_exact:
        return ROUNDING
    is_half = case.reference is not case.model
    if is_half and (quantization == "exact" or "fp8" in case.facts["style"]):
        return OF_HALF
    if quantization == "exact":
        return LIMITS[quantization]
    return OF_POWERS if case.facts["powers"] else LIMITS[quantization]
