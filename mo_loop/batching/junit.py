"""The results of a batch as JUnit XML, in the form that Ant writes and Jenkins, GitLab and others read.

Each model is a test case: its folder is the class, its file the name. A refused model, and one whose numbers differ, is
a failure. A crash, a timeout, too much memory or a bug is an error. A model that is up to date has passed. One that was
cancelled, and a known failure, is skipped.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator

from mo_loop.batching.report import About
from mo_loop.batching.result import CANCELLED, DIFFERS, FAILED, GOOD, ModelResult, Results
from mo_loop.printable import xml_text

_SUITE = "mo-loop batch"


def as_junit(about: About, results: Results) -> Iterator[str]:
    """The whole file as pieces of text."""
    kinds = Counter(_kind(each, results) for each in results.results)
    counts = {
        "tests": str(kinds.total()),
        "failures": str(kinds["failure"]),
        "errors": str(kinds["error"]),
        "skipped": str(kinds["skipped"]),
        "time": f"{results.seconds:.3f}",
    }
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield _opening("testsuites", {"name": _SUITE, **counts}) + "\n "
    # Ant's format has no time zone: the time is UTC.
    yield _opening("testsuite", {"name": _SUITE, **counts, "timestamp": about.started.removesuffix("Z")})
    for each in results.results:
        case = _case(each, _kind(each, results))
        ET.indent(case, " ", level=2)
        yield "\n  " + ET.tostring(case, "unicode")
    yield "\n </testsuite>\n</testsuites>\n"


def _opening(tag: str, attributes: dict[str, str]) -> str:
    return ET.tostring(ET.Element(tag, attributes), "unicode", short_empty_elements=False).removesuffix(f"</{tag}>")


def _kind(result: ModelResult, results: Results) -> str:
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
        ET.SubElement(case, kind, {"message": xml_text(_why_skipped(result))})
    elif kind:
        code = result.errors[0].code if result.errors else result.status
        failure = ET.SubElement(case, kind, {"type": code, "message": xml_text(result.said.partition("\n")[0])})
        failure.text = xml_text("\n".join(filter(None, (result.said, result.detail))))
    if result.warnings:
        ET.SubElement(case, "system-err").text = xml_text("\n".join(f"warning: {each}" for each in result.warnings))
    return case


def _why_skipped(result: ModelResult) -> str:
    if result.status == CANCELLED:
        return "not reached"
    return "known: " + result.said.partition("\n")[0]
