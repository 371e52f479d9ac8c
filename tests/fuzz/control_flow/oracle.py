"""Expected values of random models with control flow. Runs in a worker process.

`oracle` returns a `Sample` for tests/running/samples.py, or the reason to skip the model.
"""

import contextlib
from typing import Any

import numpy as np

from mo_loop.compare.results.array_comparison import Named
from mo_loop.support.workers import report_stage
from tests.running.samples import Arrays, Sample, empty_alike

REASONS: dict[str, str] = {
    "ML315": "a value whose rank depends on a condition leaves the graph, or is carried by a loop",
}
"""Codes with which mo_loop may refuse a model: the runtime has no form for what it computes."""


def oracle(task: tuple[int, int] | tuple[int, int, bool]) -> Sample | str:
    """Generate the model of (seed, index, whether mostly lists) and its expected values; or the reason to skip it.

    Expected values come from ONNX Runtime without optimisation; from the model with Loop for Scan where ONNX Runtime
    cannot run the Scan. Input sets are dropped that ONNX Runtime refuses, or that are ill-conditioned.
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
    kept: list[Arrays] = []
    expected: list[Named] = []
    reason = ""
    for number, feeds in enumerate(case.feeds):
        report_stage(f"run {number}")
        try:
            found, again = answers.of(number, feeds), answers.of(number, nudged(feeds))
        except Exception as error:
            reason = f"run: {_first_line(error)}"
            continue
        if not _finite(found):
            reason = "not finite: a result is missing, infinite or NaN"
            continue
        if _differing(found, again):
            reason = "unstable: a relative change of 1e-6 in the inputs changes the result"
            continue
        kept.append(feeds)
        expected.append(found)
    if len(kept) < 2:
        return reason
    return Sample(case.name, case.model.SerializeToString(), kept, expected,
                  tuple(number for number in case.order if number < len(kept)), dict(case.features),
                  dropped_sets=len(case.feeds) - len(kept), excuses=tuple(REASONS))


class Disagreement(Exception):
    """Raised if two ways to compute the expected values give different ones."""


class _Answers:
    """ONNX Runtime with the model, and with the model that has Loop for Scan."""

    def __init__(self, case: Any) -> None:
        from mo_loop.compare.oracle.oracle import OnnxRuntime, with_copies

        from .lowering import without_scan

        self.case = case
        self.lowered: Any = None
        self.plain: Any = None
        model = with_copies(case.declared)
        if case.scan_ranks:
            # If inner names hide outer ones, ONNX Runtime refuses the Loop written for a Scan.
            with contextlib.suppress(Exception):
                self.lowered = OnnxRuntime(without_scan(model, case.scan_ranks))
        try:
            self.plain = OnnxRuntime(model)
        except Exception:
            if self.lowered is None:
                raise

    def of(self, number: int, feeds: Arrays) -> Named:
        """The expected values of one input set; raises what ONNX Runtime raises, and `Disagreement`."""
        if self.lowered is None:
            if self.case.scan_ranks and number in self.case.empty:
                raise RuntimeError("a Scan of length 0 without a Loop written for it")
            found: Named = self.plain.run(feeds)
            return found
        found = self.lowered.run(feeds)
        # A Scan of length 0 divides by zero in ONNX Runtime.
        if self.plain is None or number in self.case.empty:
            return found
        try:
            plain = self.plain.run(feeds)
        except Exception:
            return found
        if not all(empty_alike(name, found, plain) for name in _differing(found, plain)):
            raise Disagreement("Scan and the Loop written for it give different results")
        return found


def _checker_says(model: Any) -> str:
    import onnx

    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        return _first_line(error)
    return ""


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:200]


def nudged(arrays: Arrays) -> Arrays:
    """The floats slightly larger: a model whose result jumps for them cannot test a converter."""
    return {k: v * np.float32(1 + 1e-6) if v.dtype == np.float32 else v for k, v in arrays.items()}


def _differing(found: Named, again: Named) -> list[str]:
    """Names of results that differ by more than a fraction of the tolerance."""
    from mo_loop.compare.results.array_comparison import compare_all

    return [result.name for result in compare_all(found, again, rtol=2e-4, atol=5e-6) if not result]


def _finite(found: Named) -> bool:
    return all(v is not None and (v.dtype.kind != "f" or np.isfinite(v).all()) for _, v in found)
