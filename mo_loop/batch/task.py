"""Task and Done: the messages to and from a worker. They are not in job.py, which loads the converter."""

from __future__ import annotations

from dataclasses import dataclass

from mo_loop.batch.result import Error
from mo_loop.batch.state import Entry
from mo_loop.options import ConvertOptions


@dataclass(frozen=True)
class Task:
    """A model, its draft .xml, its final .xml, the options of the conversion, and their hash."""

    source: str
    draft: str
    target: str
    options: ConvertOptions
    digest: str


@dataclass(frozen=True)
class Done:
    """The result of one conversion: an entry if it succeeded, else errors; `detail` is a traceback."""

    entry: Entry | None = None
    errors: tuple[Error, ...] = ()
    exit_code: int = 0
    detail: str = ""
    warnings: tuple[str, ...] = ()
