"""The texts of the page about a pass: its counts, its purpose, and the errors of the runtime that it avoids."""

from __future__ import annotations

import inspect
from typing import Any

from mo_loop.look.records.node_records import Record
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.manager import Step


def described(step: Step, place: int) -> Record:
    """A pass that ran; `place` is its number in the run."""
    matchers = [[name, count] for name, count in step.matchers if count]
    found: Record = {
        "name": step.name, "place": place, "seconds": round(step.seconds, 6), "matches": step.matches,
        "matchers": matchers, "nodes": [step.nodes_before, step.nodes_after], "doc": _doc(type(step.each)),
    }  # fmt: skip
    active = {name for name, _ in matchers}
    rules = [step.each, *(each for each in step.each.passes if each.name in active)]
    gaps = [gap for rule in rules for gap in _gaps(rule)]
    if gaps and step.changed:
        found["gaps"] = gaps
    return found


def described_off(each: FunctionPass) -> Record:
    """A pass that did not run."""
    return {
        "name": each.name, "place": 0, "seconds": 0, "matches": 0, "matchers": [], "nodes": [0, 0],
        "doc": _doc(type(each)), "off": True,
    }  # fmt: skip


def described_change(name: str, place: int, seconds: float, before: int, after: int) -> Record:
    """A part of the conversion that is not a pass."""
    return {
        "name": name, "place": place, "seconds": round(seconds, 6), "matches": 0, "matchers": [],
        "nodes": [before, after], "doc": "",
    }  # fmt: skip


def _doc(cls: type[Any]) -> str:
    """The first paragraph of the docstring: the old and the new form."""
    return (inspect.getdoc(cls) or "").partition("\n\n")[0]


def _gaps(rule: FunctionPass) -> list[Record]:
    return [
        {"id": gap.id, "sentence": gap.sentence, "severity": gap.severity, "form": gap.form, "since": gap.since,
         "until": gap.until}
        for gap in rule.gaps()
    ]  # fmt: skip
