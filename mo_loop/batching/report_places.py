"""The places that `mo-loop batch` reads and writes: local paths or URLs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mo_loop.batching.storage.locations import Location, PathOrUrl, place_of
from mo_loop.errors import FileError, UsageError

if TYPE_CHECKING:
    from mo_loop.batching.plan import BatchPlan
    from mo_loop.batching.storage.scratch import Scratch


@dataclass(frozen=True)
class Places:
    """The folder of the outputs, the reports, and the report of an earlier batch."""

    folder: PathOrUrl
    report: PathOrUrl | None = None
    junit: PathOrUrl | None = None
    summary: PathOrUrl | None = None
    baseline: PathOrUrl | None = None

    @classmethod
    def of(cls, **given: str | os.PathLike[str] | None) -> Places:
        """The places of these texts. UsageError for a URL that is not valid."""
        return cls(**{name: place_of(os.fspath(each)) for name, each in given.items() if each is not None})

    def scratch(self, plan: BatchPlan, limit: int | None) -> Scratch | None:
        """Room for models and outputs at URLs; None if there are none.

        Raises:
            UsageError: they are in the memory of this process, which no worker can read.
        """
        urls = [each for each in (self.folder, plan.root) if isinstance(each, Location)]
        if not urls:
            return None
        memory = next((each for each in urls if each.scheme == "memory"), None)
        if memory is not None:
            raise UsageError(
                f"{memory} is in the memory of one process", why="other processes convert the models", code="ML287",
                hint="give a folder, or the URL of a store",
            )  # fmt: skip
        from mo_loop.batching.storage.scratch import Scratch

        return Scratch(limit=limit).resolved()

    def earlier_results(self) -> dict[str, Any] | None:
        """The report that --report names, if an earlier batch has written it."""
        from mo_loop.batching.baseline import earlier_report

        if self.report is None:
            return None
        try:
            return earlier_report(self.report)
        except FileError:
            return None
