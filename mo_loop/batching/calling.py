"""batch: converts many models, each in a worker process, as `mo-loop batch` does.

    report = batch("models", "ir", jobs=4, verify=True)
    for each in report.failures:
        print(each.model.name, each.said)

The function and the command share PreparedBatch.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from typing import Any

from mo_loop.batching.baseline import earlier_report, known_failures
from mo_loop.batching.batch_options import BatchOptions
from mo_loop.batching.comparison_options import Comparing
from mo_loop.batching.engine import Engine
from mo_loop.batching.estimates import earlier_of
from mo_loop.batching.finding import planned
from mo_loop.batching.fingerprint import of_options
from mo_loop.batching.outputs import Outputs
from mo_loop.batching.plan import BatchPlan, Planned
from mo_loop.batching.report import About, BatchReport
from mo_loop.batching.report_places import Places
from mo_loop.batching.run import Batch, BatchListener
from mo_loop.batching.task import Work
from mo_loop.batching.weights_of_models import refuse_weights
from mo_loop.errors import UsageError
from mo_loop.options import ConvertOptions
from mo_loop.support.signatures import made_of, takes

Path = str | os.PathLike[str]


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
        facts: Mapping[str, Any], *, compares: bool = False,
    ) -> PreparedBatch:  # fmt: skip
        """Find the models, and read the earlier report; `facts` are the options of the conversions for the report.

        Raises:
            UsageError: a path does not exist or has no model, or two models have the same output.
            FileError: a file cannot be read.
            InputError: a package for comparisons is not installed.
        """
        earlier = None if places.baseline is None else earlier_report(places.baseline)
        plan = planned(paths, places.folder)
        outputs = Outputs(places.folder, places.scratch(plan, asked.scratch))
        refuse_weights(plan, outputs)
        if compares:
            from mo_loop.compare.packages import require_packages

            require_packages()
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


@dataclass(frozen=True, kw_only=True)
class BatchArguments(BatchOptions):
    """The arguments of `batch` besides the models: the options, and these."""

    output: Path = field(kw_only=False)
    verify: bool = field(default=False, metadata={
        "text": "Compare each IR with ONNX Runtime; a model whose numbers differ fails.",
    })  # fmt: skip
    comparing: Comparing | None = field(default=None, metadata={"text": "How they are compared."})
    options: ConvertOptions | Mapping[str, Any] | None = field(default=None, metadata={
        "text": 'The options of the conversions, as ConvertOptions or by name: {"target": "2026.4"}. Extensions are '
        "paths.",
    })  # fmt: skip


@takes(BatchArguments)
def batch(models: Path | Iterable[Path], output: Path, **arguments: Any) -> BatchReport:
    """Convert many ONNX models; a crash or a hang fails one model. Models that are up to date are not converted again.

    Args:
        models: Files, folders (every .onnx below them), globs, URLs, or @FILE for a list of these; one or several.
        output: The folder of the .xml and .bin files, or the URL of one.
        arguments: The options, which follow.

    Returns:
        The result of each model. `passed` is true if none failed, except those in `baseline`.

    Raises:
        UsageError: a path does not exist or has no model, two models have the same output, or an argument is not valid.
        FileError: the output folder cannot be written.
    """
    asked = made_of(BatchArguments, {"output": output, **arguments}, "batch")
    options = ConvertOptions.of(asked.options)
    paths = [os.fspath(each) for each in ([models] if isinstance(models, str | os.PathLike) else models)]
    work = _work(options, asked.comparing or Comparing() if asked.verify else None)
    places = Places.of(folder=output, baseline=asked.baseline)
    ready = PreparedBatch.of(paths, places, asked, lambda _: work, _plain(options), compares=asked.verify)
    return ready.run(ready.batch(), BatchListener())


def _work(options: ConvertOptions, comparing: Comparing | None) -> Work:
    extensions = [options.extensions] if isinstance(options.extensions, str | os.PathLike) else options.extensions
    if options.config is not None or not all(isinstance(each, str | os.PathLike) for each in extensions):
        raise UsageError(
            "a batch takes no config, and extensions as paths", why="workers are other processes",
            hint="convert the models one by one with convert_model",
        )  # fmt: skip
    facts = {"options": _plain(options), "comparing": None if comparing is None else _plain(comparing)}
    digest = of_options(facts, list(map(os.fspath, extensions)), plugins=options.plugins)
    return Work(options, digest, comparing)


def _plain(record: Any) -> dict[str, Any]:
    """The fields that are not the default, as plain data."""
    given = {each.name: getattr(record, each.name) for each in fields(record) if each.name != "extensions"}
    defaults = {each.name: each.default for each in fields(record)}
    # The default of options that take arrays is None.
    changed = {name: value for name, value in given.items()
               if value is not None and (defaults[name] is None or value != defaults[name])}  # fmt: skip
    found: dict[str, Any] = json.loads(json.dumps(changed, default=_text))
    return found


def _text(value: Any) -> str:
    """A value as text, different for different values: numpy leaves elements and digits of an array out."""
    if not hasattr(value, "tobytes"):
        return str(value)
    return f"{value.dtype}{list(value.shape)} sha256:{sha256(value.tobytes()).hexdigest()}"
