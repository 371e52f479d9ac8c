"""Rows that are measured already, one JSON object a line, and the table of them for the documentation."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tools.real.targets import EACH, MEANS, Row, Size, Summary

HEAD = """| network | ours, ms | ovc, ms | ratio | spread | compile | .bin | memory | difference | ovc's |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"""


def read(path: Path) -> dict[str, Row]:
    """The rows of a file by name, the last one of each; none if there is no file."""
    rows = [Row(**each | {"ours": Size(**each["ours"]), "peer": Size(**each["peer"])}) for each in lines(path)]
    return {row.name: row for row in rows}


def lines(path: Path) -> list[Any]:
    """The objects of a file; none if there is no file."""
    return list(map(json.loads, path.read_text(encoding="utf-8").splitlines())) if path.exists() else []


def append(path: Path, row: Any) -> None:
    """Add a row to the end of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(row)) + "\n")


def markdown(rows: Sequence[Row], summary: Summary) -> str:
    """The rows as a table of Markdown, the means of the groups, and the rows slower than their target."""
    lines = [HEAD, *map(_cells, rows), ""]
    lines += ["| geometric mean | rows | ratio | target | compile time |", "|---|--:|--:|--:|--:|"]
    for group, (mean, count) in summary.means.items():
        lines.append(f"| {group} | {count} | {mean:.3f} | {MEANS[group]:.2f} | {summary.compile_means[group][0]:.3f} |")
    slow = [f"{row.name} {row.ratio:.2f}" for row in rows if not row.problem and row.ratio > EACH + row.spread]
    other = [f"{row.name} ({', '.join(row.missed)})" for row in rows if row.missed and row.missed != ["time"]]
    lines += ["", f"Above {EACH} beyond the spread: {', '.join(slow) or 'none'}."]
    lines += ["", f"Other targets that are missed: {', '.join(other) or 'none'}."]
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> str:
    if row.problem:
        return f"| {row.name} | {row.problem.replace('|', ' ')} |" + " |" * 8
    ours, peer = row.ours, row.peer
    parts = (row.part(each) for each in ("seconds_to_compile", "bin", "peak"))
    numbers = [f"{1e3 * ours.seconds:.2f}", f"{1e3 * peer.seconds:.2f}", f"{row.ratio:.2f}", f"{row.spread:.2f}"]
    numbers += [*(f"{each:.2f}" for each in parts), f"{ours.difference:.1e}", f"{peer.difference:.1e}"]
    return f"| {row.name} | {' | '.join(numbers)} |"
