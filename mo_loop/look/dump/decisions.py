"""The decisions of passes while a graph is dumped: for each candidate that one changed, refused or had to leave.

    decisions = Decisions()
    config.listener = decisions
    ...                                  # a pass runs
    reasons, left_out = decisions.take(describer.known)

`take` ends a step. At most LIMIT changes and LIMIT refusals of a pass are kept in a step; and a pass says why a pattern
does not match of at most TRIED nodes in a step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from mo_loop.graph import Node

LIMIT = 100
"""Changes, and refusals, of one pass or matcher in one step."""

TRIED = 200
"""Nodes of which one matcher says in one step why its pattern does not match."""

Reason = list[Any]
"""[id of the node or None, its path, the pass or matcher, outcome, index of the text]"""


class Decisions:
    """A Listener (transforms/config.py). `texts` has every reason once."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {"": 0}
        self._heard: list[tuple[Node, str, str, str, str]] = []
        self._tried: Counter[str] = Counter()
        self._kept: Counter[tuple[str, bool]] = Counter()
        self._left_out = 0

    def wants(self, each: Any) -> bool:
        """Whether the pass determines why its pattern does not match one more node."""
        self._tried[each.name] += 1
        return self._tried[each.name] <= TRIED

    def hear(self, each: Any, node: Node, outcome: str, reason: str) -> None:
        """Keep a decision, or count it."""
        name = each.name
        kind = name, outcome == "changed"
        self._kept[kind] += 1
        if self._kept[kind] > LIMIT:
            self._left_out += 1
            return
        self._heard.append((node, node.path, name, outcome, reason))

    def take(self, known: Callable[[Node], int | None]) -> tuple[list[Reason], int]:
        """The decisions since the last call, each once, and the number of those that were left out.

        A node has an id if it was in the graph before the step: nodes that are made and removed within a step have
        none.
        """
        found: dict[tuple[Any, ...], None] = {}
        for node, path, name, outcome, reason in self._heard:
            found[known(node), path, name, outcome, self.texts.setdefault(reason, len(self.texts))] = None
        left_out = self._left_out
        self._heard, self._left_out = [], 0
        self._tried.clear()
        self._kept.clear()
        return [list(each) for each in found], left_out
