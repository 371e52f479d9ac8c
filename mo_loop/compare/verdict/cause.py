"""Why outputs differ, in one sentence with its numbers: rounding, saturation, an error of the runtime, or a fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mo_loop.compare.execution.processor import has_vnni, instruction_set
from mo_loop.compare.results.array_comparison import AMPLIFIED
from mo_loop.compare.results.report import DIFFERS, Side
from mo_loop.compare.verdict.explaining import VANISHES
from mo_loop.graph import Graph
from mo_loop.transforms.low_precision.saturation import integer_layers
from mo_loop.transforms.pipelines import avoided_gaps


def cause_of(side: Side, layers: Any, graph: Graph, disabled: set[str], exact: Callable[[], Side | None]) -> str:
    """The cause of the difference of a side; empty if it has none, or fails.

    `layers` is the answer of `--layers`, `disabled` are the names of passes that did not run. `exact` runs the model
    converted with `--quantization exact` on the same sets; None if that is the conversion already.
    """
    rounded = [row for row in side.worst if row.result.kind == AMPLIFIED]
    if side.passed:
        return f"rounding: {rounded[0].result}" if rounded else ""
    if side.status != DIFFERS:
        return ""
    return _of_quantisation(side, graph, exact) or _of_runtime(layers, disabled) or _fault(side, layers)


def _of_quantisation(side: Side, graph: Graph, exact: Callable[[], Side | None]) -> str:
    found = list(integer_layers(graph))
    if not found:
        return ""
    other = exact()
    if other is None or not other.passed:
        return ""
    many = sum(each.saturates for each in found)
    numbers = f"{_largest(side)} by default, {_largest(other)} with --quantization exact"
    if many and not has_vnni():
        return (
            f"saturation on this processor: {instruction_set()} adds products of 8 bits in 16 bits, which {many} of "
            f"{len(found)} layers may exceed (ML508); the largest relative difference is {numbers}"
        )
    return f"steps of the quantisation in {len(found)} layers: the largest relative difference is {numbers}"


def _of_runtime(layers: Any, disabled: set[str]) -> str:
    if layers != VANISHES and not getattr(layers, "vanishes", False):
        return ""
    avoided = ", ".join(gap.id for gap in avoided_gaps() if gap.rule in disabled)
    known = f"one of {avoided}, whose rules are disabled" if avoided else "docs/runtime.md does not have it"
    return f"an error of the runtime: the tensors agree when each is computed alone; {known}"


def _fault(side: Side, layers: Any) -> str:
    where = getattr(layers, "brief", "")
    return f"a fault in {where}" if where else f"a fault: the largest relative difference is {_largest(side)}"


def _largest(side: Side) -> str:
    return f"{max((row.result.largest_rel for row in side.rows), default=0.0):.3g}"
