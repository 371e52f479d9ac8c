"""batch: converts many models, each in a worker process, as `mo-loop batch` does.

    report = batch("models", "ir", jobs=4, verify=True)
    for each in report.failures:
        print(each.model.name, each.said)
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import Any

from mo_loop.batching.batch_options import BatchOptions
from mo_loop.batching.fingerprint import of_options
from mo_loop.batching.places import Places
from mo_loop.batching.report import BatchReport
from mo_loop.batching.run import BatchListener, PreparedBatch
from mo_loop.batching.task import Work
from mo_loop.compare.batch_comparison import Comparing
from mo_loop.errors import UsageError
from mo_loop.options import ConvertOptions
from mo_loop.support.flags import made_of, takes

Path = str | os.PathLike[str]


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
    comparing = asked.comparing or Comparing() if asked.verify else None
    work = _work(options, comparing)
    places = Places.of(folder=output, baseline=asked.baseline)
    ready = PreparedBatch.of(paths, places, asked, lambda _: work, _plain(options), comparing)
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
