"""How long passes took and what they did: an observer that a table is made of.

profile = Profile()
Manager(passes, [profile]).run(graph)
print(profile.table())
"""

from __future__ import annotations

from typing import Any

from transforms.manager import Step


class Profile:
    """Collects the steps of a run."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def __call__(self, step: Step) -> None:
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

    @property
    def seconds(self) -> float:
        """What all passes took together."""
        return sum(row["seconds"] for row in self.rows)

    def as_json(self) -> dict[str, Any]:
        """The rows and their sum, as plain data."""
        return {"passes": self.rows, "seconds": self.seconds}

    def table(self) -> str:
        """The rows as aligned text, in the order of the run."""
        cells = [("pass", "ms", "share", "matches", "before", "after")]
        total = self.seconds or 1.0
        for row in self.rows:
            counts = (str(row["nodes_before"]), str(row["nodes_after"]))
            matches = str(row["matches"]) if row["matches"] else "yes" if row["changed"] else "-"
            share = f"{100 * row['seconds'] / total:.0f}%"
            cells.append((row["pass"], f"{1000 * row['seconds']:.2f}", share, matches, *counts))
            cells += [(f"  {name}", "", "", str(n), "", "") for name, n in row["matchers"].items() if n]
        cells.append(("all", f"{1000 * self.seconds:.2f}", "", "", "", ""))
        widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
        lines = []
        for name, *numbers in cells:
            columns = [name.ljust(widths[0]), *(n.rjust(w) for n, w in zip(numbers, widths[1:], strict=True))]
            lines.append("  ".join(columns).rstrip())
        return "\n".join(lines)
