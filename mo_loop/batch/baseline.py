"""The failures of an earlier batch, which are known and do not change the exit code.

known = known_failures(Path("accepted.json"))       # the report of that batch
Results(..., known=known).regressions               # models that fail now and did not fail then, or are new
"""

from __future__ import annotations

import json
from pathlib import Path

from mo_loop.batch.report import SCHEMA, VERSION
from mo_loop.batch.result import BAD
from mo_loop.errors import FileError


def known_failures(path: Path) -> frozenset[str]:
    """The names of the models that failed, by its report.

    Raises:
        FileError: the file cannot be read, or is not a report of this version.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise FileError(f"{path} does not exist", hint="give the report of an earlier batch") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path} cannot be read: {error}", code="ML212") from None
    try:
        report = json.loads(text)
        if (report["schema"], report["version"]) != (SCHEMA, VERSION):
            raise KeyError
        return frozenset(each["name"] for each in report["models"] if each["status"] in BAD)
    except (ValueError, KeyError, TypeError):
        raise FileError(
            f"{path} is not a report of a batch", code="ML214", hint="write one with --report and this version"
        ) from None
