"""The IR as users run it: once more with the defaults of its device, which may compute in another precision.

    run = default_run(plain, found, settings, Path("model.xml"), graph)
    print(run)          # with the device's defaults, y differs by 0.012 (0.4% of its largest number): ...

The verdict does not depend on it, unless `--precision default` asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.compare.execution.runtime import GROUP_SIZE, KNOWN
from mo_loop.compare.results.array_comparison import largest_number
from mo_loop.compare.results.output_rows import flat
from mo_loop.compare.results.report import DIFFERS, PASSED
from mo_loop.compare.results.verify_settings import DEFAULT, VerifyOptions
from mo_loop.compare.sides.expected_sets import ExpectedSets
from mo_loop.compare.sides.plain_side import PlainSide
from mo_loop.graph import Graph
from mo_loop.transforms.low_precision.rounded_activations import rounded_products


@dataclass(frozen=True)
class DefaultRun:
    """The output with the largest difference, relative to its largest number; `properties` are the values of those that
    differ from the run in f32, `error` is why the IR does not run."""

    output: str = ""
    largest_abs: float = 0.0
    relative: float = 0.0
    properties: Mapping[str, str] = field(default_factory=dict)
    error: str = ""

    def as_json(self) -> dict[str, Any]:
        """All fields; a difference that is not finite is text."""
        found = {key: value for key, value in asdict(self).items() if value or isinstance(value, float)}
        return {key: str(value) if value in (np.inf, -np.inf) else value for key, value in found.items()}

    def __str__(self) -> str:
        if self.error:
            return f"with the device's defaults the IR does not run: {self.error}"
        values = ", ".join(f"{name} is {value}" for name, value in self.properties.items())
        why = f": {values}" if values else ", whose properties are those of the run in f32"
        what = f"{self.output} differs by {self.largest_abs:.3g} ({self.relative:.2g} of its largest number)"
        return f"with the device's defaults, {what if self.output else 'nothing differs'}{why}"


def default_run(
    plain: PlainSide, found: ExpectedSets, settings: VerifyOptions, target: Path, graph: Graph
) -> DefaultRun:
    """Run each set once, but for those whose sizes the runtime does not take. `graph` is that of the IR, `plain` ran it
    in f32, in a process that may still be there."""
    order = [number for number in range(len(found.sets)) if number not in plain.refused]
    again = PlainSide(found.sets, found.expected, order, replace(settings, save=None, dump=None), [], plain.pool)
    side = again.ran(DEFAULT, target, shares=True)
    if side.status not in (PASSED, DIFFERS):
        return DefaultRun(error=side.message)
    worst = DefaultRun()
    for row in side.rows:
        largest = np.inf if row.result.kind == "shape" else row.result.largest_abs
        scale = largest_number(dict(flat(found.expected[row.set])).get(row.output, 0.0))
        if largest / (scale or 1.0) > worst.relative:
            worst = DefaultRun(row.output, largest, largest / (scale or 1.0))
    changed = {name: value for name, value in again.properties.items() if value != KNOWN[name]}
    if not rounded_products(graph):  # no layer whose activations the device would round
        changed.pop(GROUP_SIZE, None)
    return replace(worst, properties=changed)
