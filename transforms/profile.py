"""How long passes took and what they did: an observer that a table is made of.

    profile = Profile(before="translation")     # the time until the first pass is a row as well
    Manager(passes, [profile]).run(graph)
    with profile.phase("writing"):
        ...
    print(profile.table())

                       ms  share  matches  nodes
    translation      8.21    71%
    ConstantFolding  0.64     6%      yes  38 -> 35
    LoopToTI         0.12     1%        -  35
    writing          2.58    22%
    passes           0.76     7%           38 -> 35
    all             11.55

What observers take belongs to no row.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from transforms.manager import Step


class Profile:
    """Collects the steps of a run, and the phases around it."""

    def __init__(self, before: str = "") -> None:
        self.rows: list[dict[str, Any]] = []
        self.phases: list[dict[str, Any]] = []
        self._before = before
        self._start = time.perf_counter()

    def __call__(self, step: Step) -> None:
        if self._before and not self.rows:
            seconds = time.perf_counter() - self._start - step.seconds
            self.phases.append({"phase": self._before, "seconds": seconds})
        self.rows.append(
            {
                "pass": step.name,
                "seconds": step.seconds,
                "changed": step.changed,
                "matches": step.matches,
                "matchers": dict(step.matchers),
                "nodes_before": step.nodes_before,
                "nodes_after": step.nodes_after,
            }
        )

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """What happens inside is a row of its own."""
        start = time.perf_counter()
        yield
        self.phases.append({"phase": name, "seconds": time.perf_counter() - start})

    @property
    def seconds(self) -> float:
        """What all passes took together."""
        return sum(row["seconds"] for row in self.rows)

    def as_json(self) -> dict[str, Any]:
        """The rows and their sum, and the phases around them, as plain data. Times are in seconds."""
        return {"passes": self.rows, "seconds": self.seconds, "phases": self.phases}

    def table(self) -> str:
        """The rows as aligned text, in the order of the run; times in milliseconds, nodes of all scopes.

        `matches` is the number of places changed, `yes` where a pass changed something without counting.
        """
        everything = self.seconds + sum(row["seconds"] for row in self.phases)
        whole = everything or 1.0

        def timed(name: str, seconds: float, matches: str = "", nodes: str = "") -> tuple[str, ...]:
            return name, f"{1000 * seconds:.2f}", f"{100 * seconds / whole:.0f}%", matches, nodes

        rows = [timed(row["pass"], row["seconds"], *_counts(row)) for row in self.rows]
        inner = [[(f"  {name}", "", "", str(n), "") for name, n in row["matchers"].items() if n] for row in self.rows]
        phases = [timed(row["phase"], row["seconds"]) for row in self.phases]
        ahead = 1 if self._before and phases else 0
        lines = [("", "ms", "share", "matches", "nodes"), *phases[:ahead]]
        lines += [line for row, under in zip(rows, inner, strict=True) for line in (row, *under)]
        lines += phases[ahead:]
        if self.rows:
            span = {"nodes_before": self.rows[0]["nodes_before"], "nodes_after": self.rows[-1]["nodes_after"]}
            lines.append(timed("passes", self.seconds, "", _nodes(span)))
        lines.append(timed("all", everything))
        return _aligned(lines)


def _counts(row: dict[str, Any]) -> tuple[str, str]:
    return str(row["matches"]) if row["matches"] else "yes" if row["changed"] else "-", _nodes(row)


def _nodes(row: dict[str, Any]) -> str:
    before, after = row["nodes_before"], row["nodes_after"]
    return str(before) if before == after else f"{before} -> {after}"


def _aligned(lines: list[tuple[str, ...]]) -> str:
    """Columns as wide as they must be: names and nodes to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join((name.ljust(widths[0]), *map(str.rjust, numbers, widths[1:]), nodes)).rstrip()
        for name, *numbers, nodes in lines
    )
