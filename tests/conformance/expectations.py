"""The expected results of the cases that do not pass: groups of cases with one reason, in a TOML file.

[[group]]
result = "refused"
code = "ML322"
reason = "the IR has no element type i2"
cases = ["test_cast_FLOAT_to_INT2", "test_cast_INT2_to_FLOAT"]

A case that is not listed is expected to pass. A group with `runtime = "2024.6.0"` is about this release instead of the
installed one, and takes its cases out of the other groups there. `differences` lists where a run differs, in both
directions; `write` updates the file to the results of a run and keeps its reasons.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

from tests.running.samples import PASSED, Verdict

FILE = Path(__file__).with_name("expectations.toml")
UNEXPLAINED = "?"
"""Begins the reason of a group that `write` adds; the converter's message follows. Replace it by the actual reason."""

HEADER = """\
# The cases of the ONNX backend test suite that do not pass, each with its reason; all other cases pass.
# A listed case that passes is an error, and so is a case that fails and is not listed.
# `python tools/conformance.py --write` updates the lists and keeps the reasons.
"""


@dataclass(frozen=True)
class Group:
    """Cases with the same result (one of `CLASSES`), code ("" if there is none) and reason.

    `runtime` is the OpenVINO release; "" is every one whose own groups do not have the case.
    """

    result: str
    reason: str
    code: str = ""
    cases: frozenset[str] = field(default=frozenset())
    runtime: str = ""


@dataclass(frozen=True)
class Expectations:
    """The groups, and the versions of the packages they were recorded with."""

    versions: Mapping[str, str]
    groups: tuple[Group, ...]

    @property
    def by_case(self) -> dict[str, Group]:
        """Name of a case -> its group."""
        return {case: group for group in self.groups for case in group.cases}

    def on(self, runtime: str) -> Expectations:
        """The expectations on a release; of the installed one if `runtime` is empty."""
        own = [group for group in self.groups if runtime and group.runtime == runtime]
        listed = {case for group in own for case in group.cases}
        others = [replace(group, cases=group.cases - listed) for group in self.groups if not group.runtime]
        return Expectations(self.versions, (*others, *own))


def read(path: Path = FILE) -> Expectations:
    """Read the file. ValueError if a case is listed twice for a release."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    tables = content.get("group", [])
    count = Counter((case, each.get("runtime", "")) for each in tables for case in each["cases"])
    if twice := sorted(case for (case, _), times in count.items() if times > 1):
        raise ValueError(f"{path.name}: listed twice: {', '.join(twice)}")
    groups = [Group(**{"code": "", **each, "cases": frozenset(each["cases"])}) for each in tables]
    return Expectations(content["versions"], tuple(groups))


def versions() -> dict[str, str]:
    """The installed versions of the packages that contain the suite and compute the results."""
    return {name: version(name) for name in ("onnx", "openvino")}


def differences(expected: Expectations, verdicts: Mapping[str, Verdict]) -> Iterator[str]:
    """Where verdicts differ from the expected results, one line each."""
    groups = expected.by_case
    for name, verdict in sorted(verdicts.items()):
        group = groups.get(name)
        if group is not None and verdict.result == PASSED:
            yield f"{name}: passes, but is listed as {_class(group.result, group.code)}: {group.reason}"
        elif group is None and verdict.result != PASSED:
            yield f"{name}: {_class(verdict.result, verdict.code)}, but is not listed: {verdict.message}"
        elif group is not None and not _is_as_listed(group, verdict):
            found = _class(verdict.result, verdict.code)
            yield f"{name}: {found}, but is listed as {_class(group.result, group.code)}: {verdict.message}"


def faults(expected: Expectations, names: Collection[str]) -> Iterator[str]:
    """Errors in the file itself, given the names of all existing cases, one line each."""
    for name in sorted(set(expected.by_case) - set(names)):
        yield f"{name}: is listed, but there is no such case"
    for group in expected.groups:
        if group.reason.startswith(UNEXPLAINED):
            first, more = min(group.cases), len(group.cases) - 1
            yield f"{first}{f' and {more} more' if more else ''}: listed without a reason: {group.reason}"


def write(expected: Expectations, verdicts: Mapping[str, Verdict], path: Path = FILE, runtime: str = "") -> None:
    """Update the lists to the verdicts on a release. Cases without a verdict stay. Empty groups are removed."""
    listed = expected.on(runtime).by_case
    stay = {name for name, group in listed.items() if name not in verdicts or _is_as_listed(group, verdicts[name])}
    groups = [replace(g, cases=g.cases & stay) if g.runtime == runtime else g for g in expected.groups]
    added: dict[tuple[str, str, str], set[str]] = {}
    for name, verdict in verdicts.items():
        if verdict.result != PASSED and name not in stay:
            message = f"{UNEXPLAINED} {verdict.message}"[:200]
            added.setdefault((verdict.result, verdict.code, message), set()).add(name)
    groups += [
        Group(result, reason, code, frozenset(names), runtime)
        for (result, code, reason), names in sorted(added.items())
    ]
    path.write_text(_text([group for group in groups if group.cases]), encoding="utf-8")


def _is_as_listed(group: Group, verdict: Verdict) -> bool:
    return (verdict.result, verdict.code) == (group.result, group.code)


def _class(result: str, code: str) -> str:
    return f"{result} ({code})" if code else result


def _text(groups: Collection[Group]) -> str:
    lines = [HEADER, "[versions]", *(f'{name} = "{number}"' for name, number in versions().items())]
    for group in groups:
        lines += ["", "[[group]]", f'result = "{group.result}"']
        lines += [f'code = "{group.code}"'] if group.code else []
        lines += [f'runtime = "{group.runtime}"'] if group.runtime else []
        lines += [f"reason = {_quoted(group.reason)}", "cases = ["]
        lines += [*(f'    "{case}",' for case in sorted(group.cases)), "]"]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
