"""Expected values of tests: those of ONNX Runtime, or of the reference evaluator where ONNX Runtime is not exact.

    expected = expected_values(model, [{"x": x}, {"x": y}])
    expected.values[1]                 # [("out", array)], in the order of the model's outputs
    expected.source, expected.reason   # who computed them, and why it was not ONNX Runtime

The values do not depend on the CPU: models with `EXACT_OPERATORS` go to the evaluator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mo_loop.compare.oracle.oracle import (
    EXACT_OPERATORS,
    ONNX_RUNTIME,
    REFERENCE,
    OnnxRuntime,
    not_implemented,
    operators_of,
    reference_for,
)
from mo_loop.compare.results.array_comparison import Named


@dataclass(frozen=True)
class Expected:
    """The outputs of a model for each set of inputs; `reason` is why `source` is not ONNX Runtime."""

    values: list[Named]
    source: str = ONNX_RUNTIME
    reason: str = ""


def expected_values(model: Any, sets: Sequence[Mapping[str, Any]]) -> Expected:
    """The values of ONNX Runtime, or of the reference evaluator where ONNX Runtime has no exact implementation.

    Every other error of ONNX Runtime is raised: a model that it refuses has no expected values. NotComparableError for
    operators that the evaluator does not have either.
    """
    exact = exact_operators(model)
    if exact:
        return _by_reference(model, sets, f"{', '.join(exact)}: exact integer arithmetic")
    try:
        runtime = OnnxRuntime(model)
        return Expected([runtime.run(feeds) for feeds in sets])
    except Exception as error:  # its errors share no base class
        text = not_implemented(error)
        if not text:
            raise
        return _by_reference(model, sets, text)


def exact_operators(model: Any) -> list[str]:
    """The operators of the model whose sums of products saturate in ONNX Runtime on some processors."""
    return sorted(EXACT_OPERATORS.intersection(operators_of(model)))


def _by_reference(model: Any, sets: Sequence[Mapping[str, Any]], reason: str) -> Expected:
    evaluator = reference_for(model, reason)
    return Expected([evaluator.run(feeds) for feeds in sets], REFERENCE, reason)
