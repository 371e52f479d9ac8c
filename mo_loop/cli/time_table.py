"""The table of --verbose: where the time of a conversion went. On stderr, also after an error.

                       s  share             nodes    memory
    start-up       0.171     5%                     58.1 MB
    reading        0.058     2%                     87.7 MB
    translating    1.271    40%             50003  169.8 MB
    passes         0.941    30%    50003 -> 50002  187.1 MB
      LocalRules   0.210     7%             50002  187.1 MB
      60 others    0.123     4%
    checking       0.135     4%             50002  187.1 MB
    writing        0.418    13%             50002  201.5 MB
    other          0.062     2%
    all            3.164   100%                    201.5 MB

`start-up` is the time of the process until reading begins, `other` is the time between the parts. Nodes are those of
all scopes, `memory` is the most that the process had by then; it is left out where the system does not report it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from mo_loop.cli.output import table, tell
from mo_loop.printable import sized
from mo_loop.support.process_memory import peak_memory

if TYPE_CHECKING:
    from mo_loop.graph import Graph
    from mo_loop.transforms.manager import Phase, Step

SLOWEST = 5
"""The number of passes with a row of their own."""


class TimeRow(NamedTuple):
    """A part of the conversion, or a pass."""

    name: str
    seconds: float
    nodes: str = ""
    memory: int = 0


class TimeTable:
    """An observer that prints the table when the block ends."""

    def __init__(self) -> None:
        self._parts: list[TimeRow] = []
        self._passes: list[TimeRow] = []
        self._before = 0  # the nodes at the beginning of the present part
        self._first = 0.0  # the time of the first event

    def __call__(self, event: Step | Phase) -> None:
        from mo_loop.transforms.manager import Step

        if isinstance(event, Step):
            nodes = _nodes(event.nodes_before, event.nodes_after)
            self._passes.append(TimeRow(f"  {event.name}", event.seconds, nodes, peak_memory()))
        elif event.seconds is not None:
            nodes = _nodes(self._before, _count(event.graph))
            self._parts.append(TimeRow(event.name, event.seconds, nodes, peak_memory()))
        else:
            self._before = _count(event.graph)
            if not self._parts:
                self._first = time.perf_counter()
                self._parts.append(TimeRow("start-up", time.process_time(), memory=peak_memory()))

    def __enter__(self) -> TimeTable:
        return self

    def __exit__(self, *_: object) -> None:
        if self._parts:
            tell(table(self.lines(time.perf_counter() - self._first), (1, 2, 3, 4), err=True))

    def lines(self, seconds: float) -> list[tuple[str, ...]]:
        """The cells of the table; `seconds` is the time from the first event on."""
        whole = self._parts[0].seconds + seconds
        rows = []
        for part in self._parts:
            rows += [part, *self._slowest()] if part.name == "passes" else [part]
        rows.append(TimeRow("other", max(0.0, whole - sum(part.seconds for part in self._parts))))
        rows.append(TimeRow("all", whole, memory=peak_memory()))
        lines: list[tuple[str, ...]] = [("", "s", "share", "nodes", "memory")]
        for name, time_, nodes, memory in rows:
            lines.append((name, f"{time_:.3f}", f"{time_ / whole:.0%}", nodes, sized(memory) if memory else ""))
        return lines if peak_memory() else [line[:-1] for line in lines]

    def _slowest(self) -> list[TimeRow]:
        """The slowest passes in the order of the run, and the others as one row."""
        slowest = sorted(self._passes, key=lambda row: row.seconds, reverse=True)[:SLOWEST]
        shown = [row for row in self._passes if row in slowest]
        others = [row.seconds for row in self._passes if row not in slowest]
        return [*shown, TimeRow(f"  {len(others)} others", sum(others))] if others else shown


def _count(graph: Graph | None) -> int:
    return 0 if graph is None else sum(map(len, graph.scopes()))


def _nodes(before: int, after: int) -> str:
    return f"{before} -> {after}" if before and before != after else str(after or "")
