"""The results of a batch: as JSON, as JUnit XML, as Markdown; and what an earlier batch reported.

The report as JSON:

    {"schema": "mo-loop batch report", "version": 1,
     "mo_loop": "0.2.0", "started": "2026-01-31T12:00:00Z", "seconds": 12.5, "exit_code": 1, "signal": null,
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
json` for the IR, of a model that is up to date the last one, null without a comparison. `conversion` is the cost of the
conversion of the existing files: seconds, and bytes of memory that a new worker process needs at least and at most;
null if that is not known. `signal` is the one that ended the batch. Times are in seconds, the start is UTC. The version
increases when a key is removed or changes its meaning; keys can be added at any time.

JUnit XML has the form that Ant writes and Jenkins, GitLab and others read. Each model is a test case: its folder is the
class, its file the name. A refused model, and one whose numbers differ, is a failure. A crash, a timeout, too much
memory or a bug is an error. A model that is up to date has passed. One that was cancelled, and a known failure, is
skipped.

Markdown is for the pages of CI jobs: numbers, failures with reasons, the rest folded. The tables of long batches are
shortened, because such pages are limited to a megabyte.

The failures of an earlier batch are known and do not change the exit code:

    earlier = earlier_report(Path("accepted.json"))     # the report of that batch
    known = known_failures(earlier)
    Results(..., known=known).new_failures              # how many fail now and did not fail then, or are new
"""

import json
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from typing import Any

from mo_loop.batching.batch_options import BatchOptions, read_bytes
from mo_loop.batching.estimates import earlier_of
from mo_loop.batching.result import BAD, CANCELLED, DIFFERS, FAILED, GOOD, STATUSES, ModelResult, Results
from mo_loop.batching.storage.locations import PathOrUrl
from mo_loop.errors import FileError
from mo_loop.printable import PLAIN, ShownResult, Style, cell, printable, xml_text
from mo_loop.revision import commit
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
        return f"{self.about.output}: {counted(self.results)}"


def as_json(about: About, results: Results, exit_code: int) -> Iterator[str]:
    """The whole report as pieces of text: that of 100,000 models is not held in memory."""
    totals = {"models": len(results.results), **{status: results.counts[status] for status in STATUSES}}
    totals["warnings"] = sum(len(each.warnings) for each in results.results)
    content = {
        "schema": SCHEMA,
        "version": VERSION,
        "mo_loop": __version__,
        "commit": commit(),
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
        yield comma + "\n  " + json.dumps(_model(each, results.is_known(each)), indent=1).replace("\n", "\n  ")
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


def earlier_report(place: PathOrUrl) -> dict[str, Any]:
    """The content of the report of an earlier batch.

    Raises:
        FileError: the file cannot be read, or is not a report of this version.
    """
    try:
        text = read_bytes(place).decode("utf-8")
    except FileNotFoundError:
        raise FileError(f"{place} does not exist", hint="give the report of an earlier batch") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{place} cannot be read: {error}", code="ML212") from None
    try:
        report = json.loads(text)
        if (report["schema"], report["version"]) != (SCHEMA, VERSION):
            raise KeyError
        for each in report["models"]:
            str(each["name"]), str(each["status"])
        earlier_of(report)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise FileError(
            f"{place} is not a report of a batch", code="ML214", hint="write one with --report and this version"
        ) from None
    content: dict[str, Any] = report
    return content


def earlier_if_written(place: PathOrUrl | None) -> dict[str, Any] | None:
    """The content of the report that --report names, if an earlier batch has written it."""
    if place is None:
        return None
    try:
        return earlier_report(place)
    except FileError:
        return None


def known_failures(report: Mapping[str, Any]) -> frozenset[str]:
    """The names of the models that failed, by a report."""
    return frozenset(each["name"] for each in report["models"] if each["status"] in BAD)


_SUITE = "mo-loop batch"


def as_junit(about: About, results: Results) -> Iterator[str]:
    """The whole file as pieces of text."""
    kinds = Counter(_outcome(each, results) for each in results.results)
    counts = {
        "tests": str(kinds.total()),
        "failures": str(kinds["failure"]),
        "errors": str(kinds["error"]),
        "skipped": str(kinds["skipped"]),
        "time": f"{results.seconds:.3f}",
    }
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield _opening_tag("testsuites", {"name": _SUITE, **counts}) + "\n "
    # Ant's format has no time zone: the time is UTC.
    yield _opening_tag("testsuite", {"name": _SUITE, **counts, "timestamp": about.started.removesuffix("Z")})
    for each in results.results:
        case = _case(each, _outcome(each, results))
        ET.indent(case, " ", level=2)
        yield "\n  " + ET.tostring(case, "unicode")
    yield "\n </testsuite>\n</testsuites>\n"


def _opening_tag(tag: str, attributes: dict[str, str]) -> str:
    return ET.tostring(ET.Element(tag, attributes), "unicode", short_empty_elements=False).removesuffix(f"</{tag}>")


def _outcome(result: ModelResult, results: Results) -> str:
    if result.status == CANCELLED or results.is_known(result):
        return "skipped"
    if result.status in GOOD:
        return ""
    return "failure" if result.status in (FAILED, DIFFERS) and result.exit_code != 4 else "error"


def _case(result: ModelResult, kind: str) -> ET.Element:
    folder, _, name = result.model.name.rpartition("/")
    facts = {"classname": xml_text(folder.replace("/", ".") or "models"), "name": xml_text(name)}
    case = ET.Element("testcase", {**facts, "time": f"{result.seconds:.3f}"})
    if kind == "skipped":
        why = "not reached" if result.status == CANCELLED else "known: " + result.said.partition("\n")[0]
        ET.SubElement(case, kind, {"message": xml_text(why)})
    elif kind:
        code = result.errors[0].code if result.errors else result.status
        failure = ET.SubElement(case, kind, {"type": code, "message": xml_text(result.said.partition("\n")[0])})
        failure.text = xml_text("\n".join(filter(None, (result.said, result.detail))))
    if result.warnings:
        ET.SubElement(case, "system-err").text = xml_text("\n".join(f"warning: {each}" for each in result.warnings))
    return case


FAILURES, OTHERS = 100, 300
"""Rows of either table."""


def as_markdown(results: Results) -> str:
    """The whole text."""
    return "\n".join(_markdown(results)) + "\n"


def counted(results: Results) -> str:
    """The results in numbers: `3 models: 2 converted, 1 failed`."""
    total = len(results.results)
    counts = ", ".join(f"{results.counts[status]} {status}" for status in STATUSES if results.counts[status])
    return f"{total} model{'s' if total != 1 else ''}: {counts}"


def _markdown(results: Results) -> Iterator[str]:
    yield "## mo-loop batch"
    yield ""
    ended = f" Ended by {results.signal}." if results.signal else ""
    yield f"{counted(results)}, {results.seconds:.1f} s.{ended}"
    if results.known:
        yield ""
        yield f"New failures: {results.new_failures}. Known failures: {results.failed - results.new_failures}."
    if results.failed:
        known = (each for each in results.results if results.is_known(each))
        new = (each for each in results.results if each.status in BAD and not results.is_known(each))
        rows = [
            (_code(each.model.name), each.status + (", known" if results.is_known(each) else ""), cell(each.said))
            for each in islice(chain(new, known), FAILURES)
        ]
        yield from _markdown_table(("model", "status", "why"), rows, results.failed)
    good = sum(results.counts[status] for status in GOOD)
    if good:
        shown = islice((each for each in results.results if each.status in GOOD), OTHERS)
        yield ""
        yield f"<details><summary>{good} converted or up to date</summary>"
        yield from _markdown_table(_COLUMNS, [_good_row(each) for each in shown], good)
        yield ""
        yield "</details>"


_COLUMNS = ("model", "status", "seconds", "layers", "control flow", "bytes", "warnings")


def _good_row(result: ModelResult) -> tuple[str, ...]:
    flow = result.facts.control_flow if result.facts else {}
    size = result.sizes.xml + result.sizes.bin if result.sizes else 0
    return (
        _code(result.model.name),
        result.status,
        f"{result.seconds:.2f}",
        str(result.facts.layers if result.facts else ""),
        ", ".join(f"{count} {kind}" for kind, count in flow.items()),
        f"{size:,}",
        cell("\n".join(result.warnings)),
    )


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> Iterator[str]:
    yield ""
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    if total > len(rows):
        yield ""
        yield f"and {total - len(rows)} more"


def _code(text: str) -> str:
    """A name as code, with any characters."""
    return f"<code>{cell(text)}</code>"
