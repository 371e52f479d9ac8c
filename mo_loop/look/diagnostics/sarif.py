"""Reports of checks as SARIF 2.1.0, the format in which code scanning services take diagnostics:

    run.tool.driver.rules           one rule for each code that occurs, with why and help
    result.locations                the model (a relative URI where it lies below the current folder), and the
                                    scope path as a logical location
    result.partialFingerprints      the same for the same diagnostic in the next version of a model
    invocation.toolExecutionNotifications   models that cannot be read

Spec: OASIS, Static Analysis Results Interchange Format version 2.1.0.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mo_loop.look.diagnostics.codes import CODES, Code
from mo_loop.look.diagnostics.diagnostic import CheckReport, Diagnostic, exit_code
from mo_loop.version import __version__

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def as_sarif(reports: Sequence[CheckReport], folder: str | os.PathLike[str] = ".") -> dict[str, Any]:
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
            "locations": [_location(uri, place)],
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
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str) -> dict[str, Any]:
    meaning = CODES.get(code) or Code(code)
    title = meaning.title[:1].upper() + meaning.title[1:] + "."
    text = meaning.help or "Each diagnostic describes what to do."
    return {
        "id": code,
        "shortDescription": {"text": title},
        "fullDescription": {"text": f"{title} {_sentence(meaning.why)}".strip()},
        "help": {"text": _sentence(text)},
        "defaultConfiguration": {"level": meaning.level},
    }


def _result(diagnostic: Diagnostic, rules: dict[str, int], uri: str, artifact: int) -> dict[str, Any]:
    location, place = _location(uri, artifact), diagnostic.place
    if place.path:
        kind = "element" if place.node else "namespace"
        location["logicalLocations"] = [
            {"name": place.node or place.path, "fullyQualifiedName": place.path, "kind": kind}
        ]
    known = (uri, diagnostic.code, place.path, place.operator, diagnostic.message)
    fingerprint = hashlib.sha256("\0".join(known).encode("utf-8", "backslashreplace"))
    more = [f"{name}: {text}" for name, text in (("Why", diagnostic.why), ("Help", diagnostic.help)) if text]
    return {
        "ruleId": diagnostic.code,
        "ruleIndex": rules[diagnostic.code],
        "level": diagnostic.level,
        "message": {"text": "\n".join(filter(None, (diagnostic.message, *more)))},
        "locations": [location],
        "partialFingerprints": {"placeAndMessage/v1": fingerprint.hexdigest()[:32]},
        "properties": {"operator": place.operator, "scope": place.scope},
    }


def _location(uri: str, artifact: int) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": {"uri": uri, "index": artifact}}}


def _uri(file: str, folder: str | os.PathLike[str]) -> str:
    """A URI relative to `folder` for a file below it, else an absolute one."""
    path, root = Path(os.path.abspath(file)), Path(os.path.abspath(folder))
    return quote(path.relative_to(root).as_posix()) if path.is_relative_to(root) else path.as_uri()


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""
