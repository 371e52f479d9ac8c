"""Results on stdout: colours where a person reads along, an early end where the reader has gone away."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import click


def show(text: str) -> None:
    """Print a result. That nobody reads any further, as in `| head`, is no error."""
    if sys.stdout is None:  # closed by the caller
        return
    try:
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        click.echo(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still in the buffer would be tried again at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def is_coloured() -> bool:
    """Whether stdout is a terminal that shows colours, and nobody has asked for none (NO_COLOR)."""
    return (
        sys.stdout is not None
        and sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def painted(text: str, **style: Any) -> str:
    """`text` in the colours of `click.style`, where there are any."""
    return click.style(text, **style) if is_coloured() else text


def columns(rows: Sequence[tuple[str, ...]], right: tuple[int, ...] = (), indent: str = "") -> str:
    """Rows of cells as aligned lines; the columns numbered in `right` end in line."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)
