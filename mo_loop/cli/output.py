"""Prints results on stdout: tables and colours on a terminal, plain text in a pipe, whose reader may end early."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, TextIO

import click

from mo_loop.tables import aligned

BLOCK = 1000
"""The number of lines that are written at once."""


def show(text: str) -> None:
    """Print a result. A reader that ends early, as in `| head`, is not an error."""
    show_lines([text])


def show_lines(lines: Iterable[str]) -> None:
    """Print the lines of a result while they are made."""
    if sys.stdout is None:  # closed by the caller
        return
    encoding = stdout_encoding()
    left = iter(lines)
    try:
        while block := list(islice(left, BLOCK)):
            click.echo("\n".join(block).encode(encoding, "backslashreplace").decode(encoding))
            sys.stdout.flush()
    except BrokenPipeError:
        # Python would try to write the rest of the buffer at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def stdout_encoding() -> str:
    """The encoding of stdout."""
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def terminal_width() -> int | None:
    """The columns of the terminal; None if stdout is none."""
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None


def is_terminal(stream: TextIO | None) -> bool:
    """Whether stdout is a terminal."""
    return stream is not None and stream.isatty()


def is_coloured(stream: TextIO | None) -> bool:
    """Whether `stream` is a terminal that shows colours, and NO_COLOR does not switch them off."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, **style: Any) -> str:
    """`text` in the colours of `click.style`, if stdout shows colours."""
    return click.style(text, **style) if is_coloured(sys.stdout) else text


def table(
    rows: Sequence[Sequence[str]], right: Sequence[int] = (), indent: str = "", *, heads: bool = True, err: bool = False
) -> str:
    """Rows of cells for stdout, or for stderr with `err`; with `heads` the first row has the titles.

    On a terminal the cells are wrapped to its width. Elsewhere each row is one complete line, which can be searched
    and compared.
    """
    stream = sys.stderr if err else sys.stdout
    if not is_terminal(stream):
        return aligned(rows, right, indent)
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    titles, *cells = rows if heads else ([""] * len(rows[0]), *rows)
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=heads, header_style="bold")
    for place, title in enumerate(titles):
        shown.add_column(Text(title), justify="right" if place in right else "left", overflow="fold")
    for row in cells:
        shown.add_row(*map(Text, row))
    console = Console(stderr=err, color_system="auto" if is_coloured(stream) else None)
    with console.capture() as captured:
        console.print(Padding(shown, (0, 0, 0, len(indent))))
    return "\n".join(line.rstrip() for line in captured.get().splitlines())
