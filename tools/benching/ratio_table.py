"""The results as a table, and as a JSON document."""

import math
import statistics
from collections.abc import Sequence
from typing import Any

from tools.benching.rounds import Result


def as_json(results: Sequence[Result], left_out: Sequence[str], clock: str) -> dict[str, Any]:
    """One object for each row: `ratio` is compared with `target`; limits that a row has not are null."""
    return {
        "clock": clock,
        "benches": [_fields(each) for each in results],
        "left_out": list(left_out),
        "met": not any(each.missed for each in results),
    }


def _fields(result: Result) -> dict[str, Any]:
    def rounded(numbers: Sequence[float]) -> list[float]:
        return [round(each, 4) for each in numbers]

    return {
        "bench": result.name,
        "what": result.what,
        "peer": result.peer,
        "ratio": round(result.ratio, 4),
        "target": round(result.target, 4),
        "ratios": rounded(result.ratios),
        "cpu_ratios": rounded(result.cpu_ratios),
        "mo_loop": {"seconds": rounded(result.ours_s), "peak_mib": rounded(result.ours_mib)},
        "of_peer": {"seconds": rounded(result.peer_s), "peak_mib": rounded(result.peer_mib)},
        "memory_ratio": round(result.memory_ratio, 4),
        "memory_target": result.memory if math.isfinite(result.memory) else None,
        "peak_target_mib": result.peak_mib if math.isfinite(result.peak_mib) else None,
        "missed": result.missed,
        "met": not result.missed,
    }


def print_table(results: Sequence[Result], left_out: Sequence[str], clock: str) -> None:
    """The rows, and the names of those that only `--full` measures."""
    from rich.console import Console
    from rich.table import Table

    title = f"ratio: median over the rounds, of {clock} times; seconds (wall) and MiB: medians"
    table = Table(title=title, title_justify="left")
    for column in ("bench", "what", "peer"):
        table.add_column(column)
    for column in ("s", "peer's", "ratio", "target", "CPU", "MiB", "of peer's", "limit", ""):
        table.add_column(column, justify="right", no_wrap=True)
    for result in results:
        table.add_row(*_cells(result))
    console = Console()
    if not console.is_terminal:
        console = Console(width=150)  # a log has no width of its own; 80 columns would break the table
    console.print(table)
    if left_out:
        console.print(f"with --full (make bench-full): {', '.join(left_out)}")


def _cells(result: Result) -> list[str]:
    median = statistics.median
    verdict = f"[bold red]missed: {', '.join(result.missed)}[/bold red]" if result.missed else "[green]met[/green]"
    return [
        result.name,
        result.what,
        result.peer,
        _seconds(median(result.ours_s)),
        _seconds(median(result.peer_s)),
        f"{result.ratio:.3f}" if result.ratio < 0.1 else f"{result.ratio:.2f}",
        f"{result.target:.3f}" if result.target < 0.1 else f"{result.target:.2f}",
        f"{median(result.cpu_ratios):.2f}",
        f"{median(result.ours_mib):.0f}",
        f"{result.memory_ratio:.2f}",
        _limit(result),
        verdict,
    ]


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds >= 1 else f"{seconds:.3f}"


def _limit(result: Result) -> str:
    if math.isfinite(result.memory):
        return f"{result.memory:.2f}"
    return f"{result.peak_mib:.0f} MiB" if math.isfinite(result.peak_mib) else ""
