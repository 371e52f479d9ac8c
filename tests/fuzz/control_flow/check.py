"""What a worker does with one model: ask the oracle, or convert and compare. Functions here run in child processes.

`oracle` answers a dict with `skip` (a reason) or the bytes of the model and the expected values. `judge` converts with
one converter, saves IR, reads it back, compiles it once, runs all input sets in order, and answers a `Verdict`.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.workers import Outcome, report_stage

PASSED, REFUSED, BUG, NOT_COMPILABLE, FAILED, WRONG = "passed", "refused", "bug", "not compilable", "fails", "wrong"
CRASH, HANG, EXCUSED = "crash", "hang", "excused"
DISABLED = "MO_LOOP_FUZZ_DISABLED"
"""Environment variable of a worker: names of passes that are not to run, with commas between."""

CLASSES = (PASSED, EXCUSED, REFUSED, BUG, NOT_COMPILABLE, FAILED, WRONG, CRASH, HANG)
REASONS: dict[str, str] = {
    "ML315": "a value whose rank depends on a condition leaves the graph, or is carried by a loop",
}
"""Codes with which mo_loop may refuse a model, and why: the runtime has no form for what they say."""


Arrays = dict[str, Any]


@dataclass
class Verdict:
    """One model through one converter: a class of `CLASSES` and what was said."""

    result: str
    message: str = ""
    code: str = ""
    seconds: float = 0.0

    @property
    def bad(self) -> bool:
        """Whether it did not pass."""
        return self.result not in (PASSED, EXCUSED)


@dataclass
class Sample:
    """A model with expected values, ready for converters.

    `rtol` and `atol` replace the usual tolerances; `values=False` compares shapes and element types only. `arguments`
    are more arguments of mo_loop's convert_model.
    """

    name: str
    model: bytes
    feeds: list[Arrays]
    expected: list[list[tuple[str, Any]]]
    order: tuple[int, ...]
    features: dict[str, int] = field(default_factory=dict)
    dropped_sets: int = 0
    rtol: float | None = None
    atol: float | None = None
    values: bool = True
    arguments: Arrays = field(default_factory=dict)


def oracle(task: tuple[int, int] | tuple[int, int, bool]) -> Sample | str:
    """Generate the model of (seed, index, whether full of lists) and its expected values; or the reason to skip it.

    Expected values come from ONNX Runtime without optimisation; from the model with Loop for Scan where ONNX Runtime
    cannot run the Scan. Input sets it refuses, or that are ill-conditioned, are dropped.
    """
    from .generator import generate

    case = generate(*task)
    report_stage("checker")
    refused = _checker_says(case.declared)
    if refused:
        return f"checker: {refused}"
    report_stage("session")
    try:
        answers = _Answers(case)
    except Exception as error:
        return f"session: {_first_line(error)}"
    sample = Sample(case.name, case.model.SerializeToString(), [], [], (), dict(case.features))
    reason = ""
    for number, feeds in enumerate(case.feeds):
        report_stage(f"run {number}")
        try:
            found, again = answers.of(number, feeds), answers.of(number, _nudged(feeds))
        except Exception as error:
            reason = f"run: {_first_line(error)}"
            continue
        if not _finite(found):
            reason = "not finite: a result is missing, infinite or NaN"
            continue
        if _differing(found, again):
            reason = "unstable: a relative change of 1e-6 in the inputs changes the result"
            continue
        sample.feeds.append(feeds)
        sample.expected.append(found)
    if len(sample.feeds) < 2:
        return reason
    sample.dropped_sets = len(case.feeds) - len(sample.feeds)
    sample.order = tuple(number for number in case.order if number < len(sample.feeds))
    return sample


class Disagreement(Exception):
    """Two ways to the expected values lead to different ones."""


class _Answers:
    """ONNX Runtime on the model, and on the model with Loop for Scan."""

    def __init__(self, case: Any) -> None:
        from mo_loop.verify.oracle import OnnxRuntime

        from .lowering import with_copies, without_scan

        self.case = case
        self.lowered: Any = None
        self.plain: Any = None
        model = with_copies(case.declared)
        if case.scan_ranks:
            # Where names are hidden, the Loop written for a Scan is refused.
            with contextlib.suppress(Exception):
                self.lowered = OnnxRuntime(without_scan(model, case.scan_ranks))
        try:
            self.plain = OnnxRuntime(model)
        except Exception:
            if self.lowered is None:
                raise

    def of(self, number: int, feeds: Arrays) -> list[tuple[str, Any]]:
        """Expected values of one input set; raises what ONNX Runtime raises, and `Disagreement`."""
        if self.lowered is None:
            if self.case.scan_ranks and number in self.case.empty:
                raise RuntimeError("a Scan of length 0 without a Loop written for it")
            found: list[tuple[str, Any]] = self.plain.run(feeds)
            return found
        found = self.lowered.run(feeds)
        # A Scan of length 0 ends in a division by zero in ONNX Runtime.
        if self.plain is None or number in self.case.empty:
            return found
        try:
            plain = self.plain.run(feeds)
        except Exception:
            return found
        if not all(_empty_alike(name, found, plain) for name in _differing(found, plain)):
            raise Disagreement("Scan and the Loop written for it give different results")
        return found


def judge(task: tuple[str, Sample]) -> Verdict:
    """Convert, save, read back, compile once, run every input set, compare."""
    converter, sample = task
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "model.onnx"), Path(folder, "ir.xml")
        source.write_bytes(sample.model)
        report_stage("convert")
        verdict = convert(converter, source, target, sample.arguments)
        return verdict if verdict is not None else run_ir(target, sample)


def convert(converter: str, source: Path, target: Path, arguments: Arrays | None = None) -> Verdict | None:
    """Write IR to `target`; a verdict only if that fails."""
    try:
        CONVERTERS[converter](source, target, arguments)
    except Exception as error:
        code = getattr(error, "code", "")
        if converter == "mo_loop" and code in REASONS:
            return Verdict(EXCUSED, brief(error), code)
        # The models are valid: to call one bad is as much a bug as to stumble over it.
        ours_is_bug = converter == "mo_loop" and getattr(error, "exit_code", None) != 3
        return Verdict(BUG if ours_is_bug else REFUSED, brief(error), code if isinstance(code, str) else "")
    return None


Doubt = Callable[[Mapping[str, Any], Sequence[tuple[str, Any]]], str]


def run_ir(target: Path, sample: Sample, doubt: Doubt | None = None, *, exact: bool = False) -> Verdict:
    """Compile an IR file once and run the input sets of a sample in their order.

    `doubt` says what else is wrong about inputs and the results that fit them, as a bug of ours. With `exact` a result
    without elements has to have the expected shape as well.
    """
    from mo_loop.verify.compare import compare_all
    from mo_loop.verify.runtime import compile_ir

    report_stage("compile")
    try:
        compiled = compile_ir(target)
    except Exception as error:
        return Verdict(NOT_COMPILABLE, brief(error))
    for position, number in enumerate(sample.order):
        report_stage(f"infer {position}")
        try:
            found = compiled.run(sample.feeds[number])
        except Exception as error:
            return Verdict(FAILED, f"inference {position}: {brief(error)}")
        for result in compare_all(sample.expected[number], found, rtol=sample.rtol, atol=sample.atol):
            if result.kind == "values" and not sample.values:
                continue
            if not result and (exact or not _empty_alike(result.name, sample.expected[number], found)):
                return Verdict(WRONG, f"inference {position}, {result.kind}: {result}")
        said = doubt(sample.feeds[number], found) if doubt else ""
        if said:
            return Verdict(BUG, f"inference {position}: {said}")
    return Verdict(PASSED)


def _empty_alike(name: str, expected: list[tuple[str, Any]], found: list[tuple[str, Any]]) -> bool:
    """Two empty results that differ only where no iteration has told ONNX Runtime a dimension, or the rank.

    It writes 0 for such a dimension, and [0] where it does not know the rank.
    """
    left, right = dict(expected).get(name), dict(found).get(name)
    if left is None or right is None or left.size or right.size or left.dtype != right.dtype:
        return False
    if left.shape == (0,):
        return True
    return left.ndim == right.ndim and all(a in (0, b) for a, b in zip(left.shape, right.shape, strict=True))


def settle(outcome: Outcome, again: Callable[[Any], Outcome]) -> Verdict:
    """The verdict of a worker's outcome; a crash is tried once more, in a fresh process.

    Native code that writes where it should not may bring down the process in a later task, so the model at hand is not
    always to blame.
    """
    verdict = verdict_of(outcome)
    if verdict.result != CRASH:
        return verdict
    second = verdict_of(again(outcome.task))
    if second.result == PASSED:
        second.message = f"crashed in a used process, not in a fresh one: {verdict.message}"
    return second


def verdict_of(outcome: Outcome) -> Verdict:
    """The verdict of a worker's outcome, crashes and hangs included."""
    if outcome.ok:
        verdict: Verdict = outcome.value
        verdict.seconds = outcome.seconds
        return verdict
    if outcome.status == "timeout":
        return Verdict(HANG, f"{outcome.stage}: {outcome.message}", seconds=outcome.seconds)
    if outcome.status == "crash":
        return Verdict(CRASH, f"{outcome.stage}: {outcome.message} {_last_line(outcome.detail)}".strip())
    return Verdict(BUG, f"{outcome.stage}: {outcome.message}", outcome.code)


def _with_mo_loop(source: Path, target: Path, arguments: Arrays | None = None) -> None:
    import mo_loop
    from transforms.config import PassConfig

    config = PassConfig()
    config.disable(*filter(None, os.environ.get(DISABLED, "").split(",")))
    converted = mo_loop.convert_model(str(source), check_passes=True, config=config, **(arguments or {}))
    mo_loop.save_model(converted, str(target), compress_to_fp16=False)


def _with_ovc(source: Path, target: Path, _: Arrays | None = None) -> None:
    import openvino

    openvino.save_model(openvino.convert_model(str(source)), str(target), compress_to_fp16=False)


CONVERTERS: dict[str, Callable[..., None]] = {"mo_loop": _with_mo_loop, "ovc": _with_ovc}


def brief(error: BaseException) -> str:
    """The telling part of a message: native exceptions bury it under their call sites.

    Of a group of errors, the parts with their codes.
    """
    parts = getattr(error, "errors", [error] if hasattr(error, "exit_code") else None)
    if parts:
        return " | ".join(dict.fromkeys(f"{part.code}: {part.message}" for part in parts))
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("Exception from src", "Check '", "While validating"))]
    text = " | ".join((telling or lines)[:1] + (telling or lines)[1:][-2:])
    return f"{type(error).__name__}: {text}"[:400]


def _checker_says(model: Any) -> str:
    import onnx

    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        return _first_line(error)
    return ""


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:200]


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")[:200]


def _nudged(arrays: Arrays) -> Arrays:
    """The floats a little larger: a model whose result jumps with that is no measure of a converter."""
    return {k: v * np.float32(1 + 1e-6) if v.dtype == np.float32 else v for k, v in arrays.items()}


def _differing(found: list[tuple[str, Any]], again: list[tuple[str, Any]]) -> list[str]:
    """Names of results that differ by more than a fraction of the tolerance."""
    from mo_loop.verify.compare import compare_all

    return [result.name for result in compare_all(found, again, rtol=2e-4, atol=5e-6) if not result]


def _finite(found: list[tuple[str, Any]]) -> bool:
    return all(v is not None and (v.dtype.kind != "f" or np.isfinite(v).all()) for _, v in found)
