"""The models, outputs and options of a batch before its first conversion, from the command and from Python."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mo_loop.batching.baseline import earlier_report, known_failures
from mo_loop.batching.batch_options import BatchOptions
from mo_loop.batching.engine import Engine
from mo_loop.batching.estimates import earlier_of
from mo_loop.batching.finding import planned
from mo_loop.batching.outputs import Outputs
from mo_loop.batching.plan import BatchPlan, Planned
from mo_loop.batching.report import About, BatchReport
from mo_loop.batching.report_places import Places
from mo_loop.batching.run import Batch, BatchListener
from mo_loop.batching.task import IrComparison, Work
from mo_loop.batching.weights_of_models import refuse_weights


@dataclass(frozen=True)
class PreparedBatch:
    """A batch whose models are found. `about.asked` has the number of its workers; `earlier` is the report of
    `places.baseline`."""

    about: About
    plan: BatchPlan
    outputs: Outputs
    work: Callable[[Planned], Work]
    places: Places
    earlier: Mapping[str, Any] | None

    @classmethod
    def of(
        cls, paths: Iterable[str], places: Places, asked: BatchOptions, work: Callable[[Planned], Work],
        facts: Mapping[str, Any], comparing: IrComparison | None = None,
    ) -> PreparedBatch:  # fmt: skip
        """Find the models, and read the earlier report; `facts` are the options of the conversions for the report, and
        `comparing` is a comparison that this machine must be able to make.

        Raises:
            UsageError: a path does not exist or has no model, or two models have the same output.
            FileError: a file cannot be read.
            InputError: a package for comparisons is not installed.
        """
        earlier = None if places.baseline is None else earlier_report(places.baseline)
        plan = planned(paths, places.folder)
        outputs = Outputs(places.folder, places.scratch(plan, asked.scratch))
        refuse_weights(plan, outputs)
        if comparing is not None:
            comparing.require()
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        asked = replace(asked, jobs=min(asked.workers, len(plan.models)))
        about = About(started, str(plan.root), str(places.folder), asked, facts)
        return cls(about, plan, outputs, work, places, earlier)

    def batch(self, engine: Engine | None = None) -> Batch:
        """The batch, with worker processes of this machine or an engine."""
        earlier = earlier_of(self.earlier) if self.earlier and engine is not None else None
        return Batch(self.plan, self.outputs, self.work, self.about.asked, engine=engine, earlier=earlier)

    def run(self, batch: Batch, listener: BatchListener) -> BatchReport:
        """Convert the models."""
        results = batch.run(listener)
        results.known = known_failures(self.earlier) if self.earlier else frozenset()
        return BatchReport(replace(self.about, asked=batch.engine.options), results)
