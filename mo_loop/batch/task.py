"""What a worker is told, and what it answers. Apart from job.py, which loads the converter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mo_loop.batch.result import Error
from mo_loop.batch.state import Entry


@dataclass(frozen=True)
class Task:
    """A model, where its pair is drafted and where it will be; the hash of all options, and those of convert_model and
    save_model as keyword arguments."""

    source: str
    draft: str
    target: str
    options: str
    arguments: Mapping[str, Any]
    saving: Mapping[str, Any]


@dataclass(frozen=True)
class Done:
    """What there is to tell of one conversion. An entry if it succeeded, otherwise errors; `detail` is a traceback."""

    entry: Entry | None = None
    errors: tuple[Error, ...] = ()
    exit_code: int = 0
    detail: str = ""
    warnings: tuple[str, ...] = ()
