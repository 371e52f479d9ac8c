"""The failures of an earlier batch, which are known and do not change the exit code.

earlier = earlier_report(Path("accepted.json"))     # the report of that batch
known = known_failures(earlier)
Results(..., known=known).new_failures              # how many fail now and did not fail then, or are new
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mo_loop.batching.estimates import earlier_of
from mo_loop.batching.places import read_bytes
from mo_loop.batching.report import SCHEMA, VERSION
from mo_loop.batching.result import BAD
from mo_loop.batching.storage.locations import Location
from mo_loop.errors import FileError


def earlier_report(place: Path | Location) -> dict[str, Any]:
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


def known_failures(report: Mapping[str, Any]) -> frozenset[str]:
    """The names of the models that failed, by a report."""
    return frozenset(each["name"] for each in report["models"] if each["status"] in BAD)
