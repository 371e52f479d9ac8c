"""Reports as SARIF 2.1.0, the format in which code scanning services take findings.

    run.tool.driver.rules           one rule for each code that occurs, with why and help
    result.locations                the model (a relative URI where it lies below the current folder), and the
                                    scope path as a logical location
    result.partialFingerprints      the same for the same finding in the next version of a model
    invocation.toolExecutionNotifications   models that cannot be read

Spec: OASIS, Static Analysis Results Interchange Format version 2.1.0.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mo_loop import __version__
from mo_loop.diagnostics.codes import CODES, Code
from mo_loop.diagnostics.diagnostic import Finding, Place, Report, exit_code

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def as_sarif(reports: Sequence[Report], folder: str | os.PathLike[str] = ".") -> dict[str, Any]:
    """One log with one run. URIs are relative to `folder` for the models below it."""
    codes = sorted({each.code for report in reports for each in report.shown})
    rules = {code: place for place, code in enumerate(codes)}
    uris = [_uri(report.file, folder) for report in reports]
    results = [
        _result(each, rules, uri, place)
        for place, (report, uri) in enumerate(zip(reports, uris, strict=True))
        for each in report.shown
    ]
    code = exit_code(reports)
    notifications = [
        {
            "level": "error",
            "descriptor": {"id": report.refused.code},
            "message": {"text": report.refused.message},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri, "index": place}}}],
        }
        for place, (report, uri) in enumerate(zip(reports, uris, strict=True))
        if report.refused is not None
    ]
    invocation: dict[str, Any] = {"executionSuccessful": code in (0, 1), "exitCode": code}
    if notifications:
        invocation["toolExecutionNotifications"] = notifications
    driver = {"name": "mo-loop", "version": __version__, "rules": [_rule(code) for code in codes]}
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "artifacts": [{"location": {"uri": uri, "index": place}} for place, uri in enumerate(uris)],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str) -> dict[str, Any]:
    meaning = CODES.get(code) or Code(code)
    title = meaning.title[:1].upper() + meaning.title[1:] + "."
    text = meaning.help or "What to do is said with each finding."
    return {
        "id": code,
        "shortDescription": {"text": title},
        "fullDescription": {"text": f"{title} {_sentence(meaning.why)}".strip()},
        "help": {"text": _sentence(text)},
        "defaultConfiguration": {"level": meaning.level},
    }


def _result(finding: Finding, rules: dict[str, int], uri: str, artifact: int) -> dict[str, Any]:
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": uri, "index": artifact}}}
    if finding.place.path:
        location["logicalLocations"] = _logical(finding.place)
    parts = (
        finding.message,
        f"Why: {finding.why}" if finding.why else "",
        f"Help: {finding.help}" if finding.help else "",
    )
    return {
        "ruleId": finding.code,
        "ruleIndex": rules[finding.code],
        "level": finding.level,
        "message": {"text": "\n".join(each for each in parts if each)},
        "locations": [location],
        "partialFingerprints": {"placeAndMessage/v1": _fingerprint(finding, uri)},
        "properties": {"operator": finding.place.operator, "scope": finding.place.scope},
    }


def _logical(place: Place) -> list[dict[str, Any]]:
    """The node, in its scope if that is a body."""
    name = place.node or place.path
    return [{"name": name, "fullyQualifiedName": place.path, "kind": "element" if place.node else "namespace"}]


def _fingerprint(finding: Finding, uri: str) -> str:
    parts = (uri, finding.code, finding.place.path, finding.place.operator, finding.message)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _uri(file: str, folder: str | os.PathLike[str]) -> str:
    """Relative to `folder` for a file below it; else one that says where it lies on this machine."""
    path, root = Path(os.path.abspath(file)), Path(os.path.abspath(folder))
    if path.is_relative_to(root):
        return quote(path.relative_to(root).as_posix())
    return path.as_uri()


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""
