"""Profile: an observer that makes a table of the time and the changes of each pass.

    profile = Profile()
    model = convert_model("model.onnx", observers=[profile])     # or of passes alone: Manager(passes, [profile])
    save_model(model, "model.xml", observers=[profile])
    print(profile.table())

                       ms  share  matches  nodes
    reading          1.12    10%
    translating      7.02    60%
    ConstantFolding  0.64     6%      yes  38 -> 35
    LoopToTI         0.12     1%        -  35
    checking         0.08     1%
    writing          2.58    22%
    passes           0.76     7%           38 -> 35
    all             11.56

The table does not include the time of observers.
"""

from typing import Any

from mo_loop.printable import aligned
from mo_loop.transforms.manager import Phase, Step

NUMBERS = (1, 2, 3)
"""The columns of the table that hold numbers."""


class Profile:
    """Collects the steps of a run, and the phases before and after them."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.phases: list[dict[str, Any]] = []
        self._before = 0  # the number of phases before the passes

    def __call__(self, event: Step | Phase) -> None:
        if isinstance(event, Step):
            self._add(event)
        elif event.name == "passes":
            self._before = len(self.phases) if event.seconds is None else self._before
        elif event.seconds is not None:
            self.phases.append({"phase": event.name, "seconds": event.seconds})

    def _add(self, step: Step) -> None:
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
        """The total time of all passes."""
        return sum(row["seconds"] for row in self.rows)

    def as_json(self) -> dict[str, Any]:
        """The rows and their sum, and the phases around them, as plain data. Times are in seconds."""
        rows = {"passes": self.rows, "seconds": self.seconds, "phases": self.phases}
        return {"schema": "mo-loop profile", "version": 1, **rows}

    def lines(self) -> list[tuple[str, ...]]:
        """The cells of the table, in the order of the run: name, milliseconds, share, matches, nodes of all scopes.

        `matches` is the number of places changed, `yes` where a pass changed something without counting.
        """
        everything = self.seconds + sum(row["seconds"] for row in self.phases)
        whole = everything or 1.0

        def timed(name: str, seconds: float, matches: str = "", nodes: str = "") -> tuple[str, ...]:
            return name, f"{1000 * seconds:.2f}", f"{100 * seconds / whole:.0f}%", matches, nodes

        rows = [timed(row["pass"], row["seconds"], *_counts(row)) for row in self.rows]
        inner = [[(f"  {name}", "", "", str(n), "") for name, n in row["matchers"].items() if n] for row in self.rows]
        phases = [timed(row["phase"], row["seconds"]) for row in self.phases]
        lines = [("", "ms", "share", "matches", "nodes"), *phases[: self._before]]
        lines += [line for row, under in zip(rows, inner, strict=True) for line in (row, *under)]
        lines += phases[self._before :]
        if self.rows:
            span = {"nodes_before": self.rows[0]["nodes_before"], "nodes_after": self.rows[-1]["nodes_after"]}
            lines.append(timed("passes", self.seconds, "", _nodes(span)))
        lines.append(timed("all", everything))
        return lines

    def table(self) -> str:
        """The lines as aligned text."""
        return aligned(self.lines(), NUMBERS)


def _counts(row: dict[str, Any]) -> tuple[str, str]:
    return str(row["matches"]) if row["matches"] else "yes" if row["changed"] else "-", _nodes(row)


def _nodes(row: dict[str, Any]) -> str:
    before, after = row["nodes_before"], row["nodes_after"]
    return str(before) if before == after else f"{before} -> {after}"
