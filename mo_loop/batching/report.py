"""The results of a batch as JSON.

    {"schema": "mo-loop batch report", "version": 1,
     "mo_loop": "0.1.0", "started": "2026-01-31T12:00:00Z", "seconds": 12.5, "exit_code": 1, "signal": null,
     "root": "models", "output": "out", "jobs": 2, "timeout": 600.0, "memory": null, "options": {...},
     "totals": {"models": 3, "converted": 1, "skipped": 1, "failed": 1, "differs": 0, "crash": 0, "timeout": 0,
                "memory": 0, "cancelled": 0, "warnings": 0},
     "models": [{"name": "a/b.onnx", "source": "models/a/b.onnx", "output": "out/a/b.xml", "status": "converted",
                 "exit_code": 0, "seconds": 0.12, "errors": [], "warnings": [], "message": "", "detail": "",
                 "sizes": {"model": 300, "external": 0, "xml": 2000, "bin": 40},
                 "layers": 12, "control_flow": {"Loop": 1}, "known": false, "comparison": null,
                 "conversion": {"seconds": 0.11, "memory": 98000000, "peak": 98000000}}]}

An error is {"code", "message", "where": [scope paths], "why", "hint", "exit_code"}. `sizes` are bytes; without output
files they and `layers` are null. `exit_code` of a model is that of `mo-loop convert`, null if its process was ended;
`known` is true if the model failed here and in the baseline. `comparison` is the report of `mo-loop verify --format
json` for the IR, null without a comparison. `conversion` is the cost of the conversion of the existing files: seconds,
and bytes of memory that a new worker process needs at least and at most; null if that is not known. `signal` is the one
that ended the batch. Times are in seconds, the start is UTC. The version increases when a key is removed or changes its
meaning; keys can be added at any time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mo_loop.batching.batch_options import BatchOptions
from mo_loop.batching.result import BAD, STATUSES, ModelResult, Results
from mo_loop.printable import printable
from mo_loop.support.shown_result import PLAIN, ShownResult, Style
from mo_loop.version import __version__

SCHEMA, VERSION = "mo-loop batch report", 1
LINE = "\n"


@dataclass(frozen=True)
class About:
    """The facts of a batch that are not results: `started` as in the example above, the options of the batch with its
    number of workers, and those of the conversions."""

    started: str
    root: str
    output: str
    asked: BatchOptions
    options: Mapping[str, Any]


@dataclass(frozen=True, repr=False)
class BatchReport(ShownResult):
    """The result of a batch: its facts, and the result of each model in the order of their names."""

    about: About
    results: Results

    @property
    def passed(self) -> bool:
        """Whether no model failed, but for those of the baseline."""
        return not self.results.new_failures and not self.results.lost and not self.results.signal

    @property
    def failures(self) -> list[ModelResult]:
        """The models that failed."""
        return [each for each in self.results.results if each.status in BAD]

    def __bool__(self) -> bool:
        return self.passed

    def text(self, style: Style = PLAIN) -> str:
        """One line for each failure, and the numbers."""
        lines = [f"{each.status} {each.model.name}: {each.said.partition(LINE)[0]}" for each in self.failures]
        return "\n".join([*map(printable, lines), f"{self._brief()}, {self.results.seconds:.2f} s"])

    def to_dict(self) -> dict[str, Any]:
        """The document that `mo-loop batch --report` writes."""
        found: dict[str, Any] = json.loads("".join(as_json(self.about, self.results, int(not self.passed))))
        return found

    def _brief(self) -> str:
        from mo_loop.batching.markdown import counted

        return f"{self.about.output}: {counted(self.results)}"


def as_json(about: About, results: Results, exit_code: int) -> Iterator[str]:
    """The whole report as pieces of text: that of 100,000 models is not held in memory."""
    totals = {"models": len(results.results), **{status: results.counts[status] for status in STATUSES}}
    totals["warnings"] = sum(len(each.warnings) for each in results.results)
    content = {
        "schema": SCHEMA,
        "version": VERSION,
        "mo_loop": __version__,
        "started": about.started,
        "root": about.root,
        "output": about.output,
        **about.asked.facts(),
        "options": about.options,
        "seconds": round(results.seconds, 3),
        "exit_code": exit_code,
        "signal": results.signal or None,
        "totals": totals,
        "models": [],
    }
    yield json.dumps(content, indent=1).removesuffix("]\n}")
    comma = ""
    for each in results.results:
        text = json.dumps(_model(each, results.is_known(each)), indent=1)
        yield comma + "\n  " + text.replace("\n", "\n  ")
        comma = ","
    yield "\n ]\n}\n"


def _model(result: ModelResult, is_known: bool) -> dict[str, Any]:
    return {
        "name": result.model.name,
        "source": str(result.model.source),
        "output": str(result.model.target),
        "status": result.status,
        "exit_code": result.exit_code,
        "seconds": round(result.seconds, 3),
        "errors": [asdict(each) for each in result.errors],
        "warnings": list(result.warnings),
        "message": result.message,
        "detail": result.detail,
        "sizes": asdict(result.sizes) if result.sizes else None,
        "layers": result.facts.layers if result.facts else None,
        "control_flow": dict(result.facts.control_flow) if result.facts else {},
        "known": is_known,
        "comparison": result.comparison,
        "conversion": result.facts.cost.as_json() if result.facts and result.facts.cost else None,
    }
