"""The goal of a row of tools/bench_operators.py, and the rows that are above it, each with its reason."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.texts import texts
from tools.benching.loop_times import Row

OF_OVC, OF_ORT = 1.1, 2.0
START_OF_OVC, START_OF_ORT = 3.0, 30.0
"""Microseconds that an inference may take more: they are those of a node, and of the start of an inference."""


@dataclass(frozen=True)
class Slow:
    """Rows above their goal, by patterns of their names, and why; with `as_peer` those that take ovc's IR as long."""

    rows: str
    reason: str
    as_peer: bool = False

    def covers(self, row: Row) -> bool:
        is_named = any(fnmatchcase(row.name, each) for each in self.rows.split())
        return is_named and (not self.as_peer or ("ovc" in row.times and row.times["ours"] <= longest_of_ovc(row)))


SLOW: tuple[Slow, ...] = (
    Slow("*", "the IR of ovc takes as long: the plugin has no faster form of the operation", as_peer=True),
    *(
        Slow(" ".join(rows.split()), " ".join(why.split()))
        for rows, why in re.findall(r"((?:^\S.*\n)+)((?:^ .*\n)+)", texts(__file__)["reasons"], re.MULTILINE)
    ),
)


def goal(row: Row) -> float:
    """The time of ours divided by the longest that is allowed; 0 without times, infinite for wrong numbers."""
    if row.problem:
        return float("inf")
    return row.times["ours"] / min(OF_ORT * row.times["ort"] + START_OF_ORT, longest_of_ovc(row))


def longest_of_ovc(row: Row) -> float:
    """The longest time that is allowed, relative to ovc's IR."""
    return OF_OVC * row.times["ovc"] + START_OF_OVC if "ovc" in row.times else float("inf")


def reason(row: Row) -> str:
    """Why the row is above its goal; empty if nothing is known."""
    return next((each.reason for each in SLOW if each.covers(row)), "")


def stale(rows: Sequence[Row]) -> list[str]:
    """The entries whose rows were all measured and are within their goals."""
    found = []
    for each in SLOW:
        covered = [row for row in rows if each.covers(row)]
        if covered and all(goal(row) <= 1 for row in covered):
            found.append(f"no longer holds: {each.rows}: {each.reason}")
    return found
