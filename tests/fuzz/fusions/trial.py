"""Converts many chains as one model, runs it and judges each chain; in a worker process."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.compare.execution.isolated import brief
from mo_loop.support.workers import report_stage
from mo_loop.target import ANY
from mo_loop.transforms.config import PassConfig
from tests.fuzz import SKIPPED
from tests.fuzz.fusions.drawing import F16, F32, INT8, Cell, Chain, model_of
from tests.fuzz.fusions.followers import drawn
from tests.running.samples import BUG, CONVERTERS, CRASH, FAILED, NOT_COMPILABLE, OURS, PASSED, WRONG, Verdict

TOLERANCES = {F32: 1e-3, F16: 0.02, INT8: 0.03}
"""The largest difference, as a part of the largest number; that of 8 bits is more than two steps."""
ORDER = (0, 1, 0)
UNSETTLED = "unsettled"


@dataclass(frozen=True)
class Task:
    """Cells that become one model; `without` are passes that do not run, `python` runs the IR, which is written for
    `device`. Chains of other element types than `kinds` are left out."""

    cells: tuple[Cell, ...]
    seed: int
    converter: str = OURS
    without: tuple[str, ...] = ()
    python: str | None = None
    kinds: tuple[str, ...] = (F32, F16, INT8)
    device: str = ANY


Row = tuple[Cell, str, Verdict]


def judge(task: Task) -> list[Row]:
    """For each cell the facts of its chain and a verdict. UNSETTLED are those of a model of which one is not right."""
    rows: list[Row] = []
    chains: list[tuple[Cell, Chain]] = []
    report_stage("draw")
    for number, cell in enumerate(task.cells):
        try:
            chain = drawn(cell, task.seed, f"c{number}_")
        except Exception as error:  # ONNX Runtime's errors share no base class
            rows.append((cell, "", Verdict(SKIPPED, brief(error))))
            continue
        if chain.kind in task.kinds:
            chains.append((cell, chain))
    if chains:
        verdicts = _judged([chain for _, chain in chains], task)
        rows += [(cell, chain.facts, verdict) for (cell, chain), verdict in zip(chains, verdicts, strict=True)]
    return rows


def _judged(chains: Sequence[Chain], task: Task) -> list[Verdict]:
    from mo_loop.compare.execution.runtime import compile_ir
    from tests.running.samples import CompiledElsewhere

    stage, is_alone = BUG, len(chains) == 1
    try:
        with tempfile.TemporaryDirectory() as folder:
            report_stage("convert")
            target = _written(model_of(chains).SerializeToString(), task, Path(folder))
            report_stage(stage := NOT_COMPILABLE)
            compiled = compile_ir(target) if task.python is None else CompiledElsewhere(target, task.python)
            report_stage(stage := FAILED)
            verdicts = [Verdict(PASSED) for _ in chains]
            for number in ORDER:
                found = compiled.run({name: each for chain in chains for name, each in chain.feeds[number].items()})
                verdicts = [verdict if verdict.bad else _compared(chain, number, result)
                            for chain, verdict, (_, result) in zip(chains, verdicts, found, strict=True)]
    except Exception as error:  # those of the runtime share no base class
        ended = CRASH if getattr(error, "status", "") == "crash" else stage
        return [Verdict(ended if is_alone else UNSETTLED, brief(error))] * len(chains)
    return [Verdict(UNSETTLED) if each.bad and not is_alone else each for each in verdicts]


def _written(model: bytes, task: Task, folder: Path) -> Path:
    source, target = folder / "model.onnx", folder / "model.xml"
    source.write_bytes(model)
    config = PassConfig()
    config.disable(*task.without)
    CONVERTERS[task.converter](source, target, {"config": config, "check_passes": False, "device": task.device})
    return target


def _compared(chain: Chain, number: int, found: Any) -> Verdict:
    expected = chain.expected[number]
    if found.shape != expected.shape:
        return Verdict(WRONG, f"inputs {number}: shape {found.shape} instead of {expected.shape}")
    wanted, got = expected.astype(np.float64), found.astype(np.float64)
    if not np.isfinite(wanted).all():
        return Verdict(PASSED)
    with np.errstate(all="ignore"):
        most = max(float(np.abs(wanted).max()), 1e-3)
        difference = float(np.abs(got - wanted).max()) / most
    if not difference <= TOLERANCES[chain.kind]:
        return Verdict(WRONG, f"inputs {number}: {difference:.2g} of the largest number")
    return Verdict(PASSED, difference=difference)
