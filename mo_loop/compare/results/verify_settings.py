"""VerifyOptions: the arguments of `verify`, and the resulting properties of the runtime."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Feeds = dict[str, Any]

Size = int | tuple[int, int | None]
"""A size of an input, or its least and its greatest (None: no limit)."""

Sizes = Mapping[str, Sequence[Size]]
"""The sizes of inputs, by any of their names."""

SETS, STEPS, LIMIT = 3, 4, 600.0
"""The number of generated sets, of the steps of each sequence, and the seconds that one call of a runtime may take."""

F32, DEFAULT = "f32", "default"
PRECISIONS = (F32, "f16", "bf16", DEFAULT)
"""The values of `precision`."""


@dataclass(frozen=True)
class VerifyOptions:
    """The arguments of `verify`, without the model."""

    inputs: Sequence[Any] = ()
    sets: int = SETS
    seed: int = 0
    rtol: float | None = None
    atol: float | None = None
    device: str = "CPU"
    precision: str = F32
    against: Sequence[str] = ()
    save: Path | None = None
    limit: float = LIMIT
    layers: bool = False
    passes: bool = False
    memory: int | None = None
    dump: Path | None = None
    steps: int = STEPS
    expected: Sequence[Any] = ()
    custom_ops: tuple[str, ...] = ()
    tolerances: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    python: str | None = None
    sizes: Sizes = field(default_factory=dict)

    @property
    def has_tolerance(self) -> bool:
        """Whether tolerances were given, which no other rule widens."""
        return self.rtol is not None or self.atol is not None or bool(self.tolerances)


def properties_of(precision: str, device: str) -> dict[str, Any]:
    """All processors, at least two threads, and the precision; `default` leaves it to the device."""
    threads = 0 if (os.cpu_count() or 1) > 1 else 2
    found: dict[str, Any] = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": precision}
    if precision == DEFAULT:
        found |= {"INFERENCE_PRECISION_HINT": None, "DYNAMIC_QUANTIZATION_GROUP_SIZE": None}
    if not device.startswith("CPU"):  # they are properties of the CPU device
        found |= {"INFERENCE_NUM_THREADS": None, "NUM_STREAMS": None, "DYNAMIC_QUANTIZATION_GROUP_SIZE": None}
    return found
