"""BatchOptions: the options of a batch, which `mo_loop.batch` and `mo-loop batch` share.

    options = BatchOptions(jobs=2, timeout=60)

A field is all that there is of an option: `batch` has an argument of its name, the command has its flag, the file of
`--config` has its key, and a report has the recorded ones. The module loads nothing else of a batch.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import Any

from mo_loop.support.flags import FILES, REPORTS, RUN, described, flag


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """The options of a batch.

    Args:
    """

    # fmt: off
    jobs: int | None = flag(
        None, "Worker processes.  [default: one for each processor]", RUN, "-j", "--jobs", least=1, metavar="N",
        place=2,
    )
    timeout: float = flag(
        600.0, "Stop the conversion of a model that takes longer.", RUN, kind="number", above=0, most=1e6,
        show_default=True, metavar="SECONDS", place=2,
    )
    memory: int | None = flag(
        None, "Memory that a worker may allocate, for example 4G. Has no effect on Windows and macOS.", RUN,
        kind="size", metavar="SIZE", place=2, note="In bytes.",
    )
    scratch: int | None = flag(
        None, "Local disk for models and outputs at URLs, for example 20G.  [default: no limit]", RUN, kind="size",
        metavar="SIZE", place=2, note="In bytes.", recorded=False,
    )
    keep_going: bool = flag(
        True, "After a failure, continue (default), or do not start other models.", RUN, "--keep-going/--fail-fast",
        place=2, recorded=False,
    )
    force: bool = flag(False, "Convert models that are up to date as well.", RUN, place=2, recorded=False)
    durable: bool = flag(
        False, "Wait until the .xml and the .bin are on the disk, so that a power failure cannot damage them.", FILES,
        place=1, recorded=False,
    )
    baseline: str | os.PathLike[str] | None = flag(
        None, "The report of an earlier batch. Models that failed there do not count for the exit code.", REPORTS,
        kind="file", metavar="FILE", note="Nor do they in `passed`.", recorded=False,
    )
    # fmt: on

    @property
    def workers(self) -> int:
        """The number of worker processes."""
        return self.jobs or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)

    def facts(self) -> dict[str, Any]:
        """The recorded options, as plain data."""
        return {each.name: getattr(self, each.name) for each in fields(BatchOptions) if each.metadata["recorded"]}


BatchOptions.__doc__ = f"{(BatchOptions.__doc__ or '').rstrip()}\n{described(BatchOptions, indent=8)}    "
