"""Prints results: tables and colours on a terminal, plain text in a pipe, whose reader may end early.

    show(f"{painted('Loop', fg='cyan')} {name}")

Names in models are untrusted: `show` and `tell` write control characters, except line breaks, as in JSON, and no
command of a CI system. Only the colours of `painted` and `table` reach a terminal, because these mark them with a text
that no name can have. The line breaks in their texts are those of the program: code that puts a name into a text of
several lines makes it `printable` first, as errors, tables and `painted` do.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, TextIO

import click

from mo_loop.errors import FileError
from mo_loop.printable import aligned, printable, without_commands
from mo_loop.support.shown_result import Style

BLOCK = 1000
"""The number of lines that are written at once."""

ESCAPE = "\x1b"

MARK = f"\udc1b{os.urandom(8).hex()} "
"""Stands for ESCAPE in the texts of `painted` and `table` until they are written. It differs from run to run."""


def show(text: str) -> None:
    """Print a result. A reader that ends early, as in `| head`, is not an error."""
    show_lines([text])


def show_lines(lines: Iterable[str]) -> None:
    """Print the lines of a result while they are made."""
    left = iter(lines)
    while (block := list(islice(left, BLOCK))) and write(safe("\n".join(block))):
        pass


def write(text: str) -> bool:
    """Write a text on stdout as it is, with a line break; False if the reader has closed the stream.

    If it cannot be written for another reason, such as a full disk, the process ends with a message.
    """
    if sys.stdout is None:  # closed by the caller
        return False
    encoding = stdout_encoding()
    try:
        click.echo(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
        return True
    except OSError as error:
        # Python would try to write the rest of the buffer at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return False
        failed = FileError("standard output cannot be written", why=error.strerror or str(error), code="ML219")
        click.echo(f"error: {safe(str(failed))}", err=True)
        sys.exit(failed.exit_code)


def tell(text: str) -> None:
    """Print lines on stderr."""
    click.echo(safe(text), err=True)


def safe(text: str) -> str:
    """Lines without control characters, except for the colours of `painted` and `table`, and without commands."""
    if MARK not in text and text.replace("\n", "").isprintable():
        return without_commands(text)
    return "\n".join(ESCAPE.join(map(printable, line.split(MARK))) for line in text.split("\n"))


def stdout_encoding() -> str:
    """The encoding of stdout."""
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def terminal_width() -> int | None:
    """The columns of the terminal; None if stdout is not a terminal."""
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None


def is_terminal(stream: TextIO | None) -> bool:
    """Whether stdout is a terminal."""
    return stream is not None and stream.isatty()


def is_coloured(stream: TextIO | None) -> bool:
    """Whether `stream` is a terminal that shows colours, and NO_COLOR does not switch them off."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, **style: Any) -> str:
    """A line of printable characters, in the colours of `click.style` if stdout shows colours."""
    text = printable(text)
    return click.style(text, **style).replace(ESCAPE, MARK) if is_coloured(sys.stdout) else text


def table(
    rows: Sequence[Sequence[str]], right: Sequence[int] = (), indent: str = "", *, heads: bool = True, err: bool = False
) -> str:
    """Rows of cells for stdout, or for stderr with `err`; with `heads` the first row has the titles.

    On a terminal the cells are wrapped to its width. Elsewhere each row is one complete line, which can be searched
    and compared.
    """
    stream = sys.stderr if err else sys.stdout
    rows = [list(map(printable, row)) for row in rows]
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
    return "\n".join(line.rstrip() for line in captured.get().split("\n")).rstrip("\n").replace(ESCAPE, MARK)


class _Terminal(Style):
    """Colours and tables of the terminal, if stdout is one."""

    paint = staticmethod(painted)
    table = staticmethod(table)


TERMINAL = _Terminal()
