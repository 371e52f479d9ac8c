"""Difference: the differences between two models, as text and as JSON.

difference = diff("a.onnx", "b.onnx")
if not difference.equal:
    for change in difference.changes:
        print(change.scope, change.node, change.kind, change.details)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mo_loop.look.differences.change import Change, ChangeSide
from mo_loop.look.differences.listing import Paint, lines, plain
from mo_loop.support.shown_result import PLAIN, ShownResult, Style

SCHEMA, VERSION = "mo-loop diff", 1


@dataclass(frozen=True, repr=False)
class Difference(ShownResult):
    """The changes from the model `old` to the model `new`, by scope, outer ones first."""

    old: ChangeSide
    new: ChangeSide
    paired: int
    changes: tuple[Change, ...]

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.changes

    def __len__(self) -> int:
        return len(self.changes)

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.changes)

    @property
    def counts(self) -> Counter[str]:
        """The numbers of nodes that were added, removed and changed."""
        return Counter(each.kind for each in self.changes)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "old": {"source": self.old.source, "kind": self.old.kind, "nodes": self.old.nodes},
            "new": {"source": self.new.source, "kind": self.new.kind, "nodes": self.new.nodes},
            "equal": self.equal,
            "paired": self.paired,
            "changes": [each.as_json() for each in self.changes],
        }

    def lines(self, paint: Paint = plain, *, complete: bool = False) -> Iterator[str]:
        """The lines of the text: short, or `complete`; `paint` colours them."""
        return lines(self.old, self.new, self.paired, self.changes, paint, complete=complete)

    def text(self, style: Style = PLAIN) -> str:
        """The text that `mo-loop diff` prints."""
        return "\n".join(self.lines())

    def _brief(self) -> str:
        counts = ", ".join(f"{count} {kind}" for kind, count in self.counts.items())
        return f"{self.old.source} -> {self.new.source}: {counts or 'no difference'}"
