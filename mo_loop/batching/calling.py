"""batch: converts many models, each in a worker process, as `mo-loop batch` does.

    report = batch("models", "ir", jobs=4, verify=True)
    for each in report.failures:
        print(each.model.name, each.said)
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import fields
from hashlib import sha256
from typing import Any

from mo_loop.batching.baseline import earlier_report, known_failures
from mo_loop.batching.comparison_options import Comparing
from mo_loop.batching.engine import WorkerLimits
from mo_loop.batching.finding import planned
from mo_loop.batching.fingerprint import of_options
from mo_loop.batching.outputs import Outputs
from mo_loop.batching.plan import Planned
from mo_loop.batching.report import About, BatchReport
from mo_loop.batching.report_places import Places
from mo_loop.batching.result import ModelResult
from mo_loop.batching.run import Batch
from mo_loop.batching.task import Work
from mo_loop.batching.weights_of_models import refuse_weights
from mo_loop.errors import UsageError
from mo_loop.options import ConvertOptions

Path = str | os.PathLike[str]


class _Silent:
    """A listener that ignores all events."""

    def started(self, model: Planned) -> None:
        """A worker begins."""

    def finished(self, result: ModelResult) -> None:
        """A model is done."""


def batch(
    models: Path | Iterable[Path], output: Path, *, jobs: int | None = None, timeout: float = 600.0,
    memory: int | None = None, force: bool = False, keep_going: bool = True, verify: bool = False,
    comparing: Comparing | None = None, baseline: Path | None = None,
    options: ConvertOptions | Mapping[str, Any] | None = None,
) -> BatchReport:  # fmt: skip
    """Convert many ONNX models; a crash or a hang fails one model. Models that are up to date are not converted again.

    Args:
        models: Files, folders (every .onnx below them), globs, URLs, or @FILE for a list of these; one or several.
        output: The folder of the .xml and .bin files, or the URL of one.
        jobs: Worker processes; by default one for each processor.
        timeout: Seconds that the conversion of one model may take.
        memory: Bytes that a worker may allocate; it has no effect on Windows and macOS.
        force: Convert models that are up to date as well.
        keep_going: Continue after a failure.
        verify: Compare each IR with ONNX Runtime; a model whose numbers differ fails.
        comparing: How they are compared.
        baseline: The report of an earlier batch, whose failures do not count in `passed`.
        options: The options of the conversions, as ConvertOptions or by name: {"target": "2026.4"}. Extensions are
            paths.

    Returns:
        The result of each model. `passed` is true if none failed, except those in `baseline`.

    Raises:
        UsageError: a path does not exist or has no model, two models have the same output, or an argument is not valid.
        FileError: the output folder cannot be written.
    """
    made = ConvertOptions.of(options)
    given = [models] if isinstance(models, str | os.PathLike) else list(models)
    work = _work(made, comparing or Comparing() if verify else None)
    places = Places.of(os.fspath(output), None, None, None, None if baseline is None else os.fspath(baseline))
    plan = planned([os.fspath(each) for each in given], places.folder)
    outputs = Outputs(places.folder, places.scratch(plan, None))
    refuse_weights(plan, outputs)
    if verify:
        from mo_loop.compare.packages import require_packages

        require_packages()
    limits = WorkerLimits(min(jobs or os.cpu_count() or 1, len(plan.models)), timeout, memory)
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    run = Batch(plan, outputs, lambda _: work, limits, force=force, fail_fast=not keep_going)
    results = run.run(_Silent())
    if places.baseline is not None:
        results.known = known_failures(earlier_report(places.baseline))
    about = About(started, str(plan.root), str(places.folder), limits.jobs, timeout, memory, _plain(made))
    return BatchReport(about, results)


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
