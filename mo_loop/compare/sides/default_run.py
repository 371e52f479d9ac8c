"""The IR as users run it: once more with the defaults of its device, which may compute in another precision.

    run = default_run(found, {2}, settings, Path("model.xml"), graph, pool)     # set 2 is refused
    print(run)          # with the device's defaults, y differs by 0.012 (0.4% of its largest number): ...

The verdict does not depend on it, unless `--precision default` asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.compare.execution.isolated import IsolatedError, brief
from mo_loop.compare.execution.runtime import Compiled, compile_ir
from mo_loop.compare.results.array_comparison import Named
from mo_loop.compare.results.output_rows import by_wanted_name
from mo_loop.compare.results.sequence_values import flat, packed, unpacked
from mo_loop.compare.results.verify_settings import DEFAULT, Sizes, VerifyOptions
from mo_loop.compare.sides.expected_sets import ExpectedSets
from mo_loop.compare.sides.side_run import compiled
from mo_loop.graph import Graph
from mo_loop.support.workers import Pool
from mo_loop.transforms.low_precision.rounded_activations import rounded_products

GROUP_SIZE = "DYNAMIC_QUANTIZATION_GROUP_SIZE"
KNOWN = {"INFERENCE_PRECISION_HINT": "f32", GROUP_SIZE: "0"}
"""The properties that change numbers, with their values in the run in f32."""


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


class _WithProperties:
    """A compiled IR whose facts also have the values of the properties."""

    def __init__(self, path: str, properties: Mapping[str, Any], device: str, sizes: Sizes | None = None) -> None:
        self._compiled: Compiled = compile_ir(path, properties, device, sizes)
        self.facts = (*self._compiled.facts, self._compiled.values_of(KNOWN))

    def run(self, feeds: Mapping[str, Any]) -> Named:
        return self._compiled.run(feeds)


def default_run(
    found: ExpectedSets, refused: set[int], settings: VerifyOptions, target: Path, graph: Graph, pool: Pool | None
) -> DefaultRun:
    """Run each set once, but for those in `refused`, whose sizes the runtime does not take. `graph` is that of the IR,
    `pool` the process in which it ran, None if that has ended."""
    try:
        worker = compiled(settings, target, DEFAULT, _WithProperties, pool)
    except IsolatedError as error:
        return DefaultRun(error=brief(error))
    worst = DefaultRun()
    try:
        known = {name for names in worker.facts[0] for name in names}
        for number, (_, feeds) in enumerate(found.sets):
            if number in refused:
                continue
            wanted = flat(found.expected[number])
            outputs = unpacked(worker.run(packed(feeds, known)), found.expected[number])
            have = by_wanted_name(wanted, flat(outputs))
            for name, value in wanted:
                largest, relative = _apart(value, have.get(name))
                if relative > worst.relative:
                    worst = DefaultRun(name, largest, relative)
    except IsolatedError as error:
        return DefaultRun(error=brief(error))
    finally:
        worker.release()
    changed = {name: value for name, value in worker.facts[2].items() if value != KNOWN[name]}
    if not rounded_products(graph):  # no layer whose activations the device would round
        changed.pop(GROUP_SIZE, None)
    return DefaultRun(worst.output, worst.largest_abs, worst.relative, changed)


def _apart(expected: Any, found: Any) -> tuple[float, float]:
    """The largest difference of two arrays, and relative to the largest number; infinite for another shape."""
    left, right = np.asarray(expected), np.asarray(found)
    if left.dtype.kind in "OSUc" or found is None:
        return 0.0, 0.0
    if left.shape != right.shape:
        return (0.0, 0.0) if left.size == right.size == 0 else (np.inf, np.inf)
    a, b = left.astype(np.float64), right.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    with np.errstate(invalid="ignore"):
        largest = float(np.abs(a - b).max(where=finite, initial=0.0))
    scale = float(np.abs(a).max(where=np.isfinite(a), initial=0.0))
    return largest, largest / scale if scale else largest
