"""Tables: whole lines in a pipe, the width of the terminal on a terminal."""

import io
import re
import subprocess
import sys

import pytest

from mo_loop.cli.output import safe, table
from mo_loop.printable import aligned

LONG = "some words that are longer than the terminal is wide"
ROWS = [("name", "count", "text"), ("first", "7", LONG), ("b", "12", "")]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert aligned(ROWS, right=(1,), indent="  ").splitlines() == [
        "  name   count  text", "  first      7  some words that are longer than the terminal is wide",
        "  b         12",
    ]


def test_a_pipe_gets_one_whole_line_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setenv("COLUMNS", "30")
    assert table(ROWS, right=(1,)) == aligned(ROWS, right=(1,))


@pytest.mark.parametrize("no_colour", ["", "1"])
def test_a_terminal_gets_its_width_and_every_word(monkeypatch: pytest.MonkeyPatch, no_colour: str) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    for name, value in (("COLUMNS", "30"), ("TERM", "xterm"), ("NO_COLOR", no_colour)):
        monkeypatch.setenv(name, value)
    shown = safe(table(ROWS, right=(1,), indent="  "))
    assert ("\x1b[" in shown) is not bool(no_colour)
    plain = [line.rstrip() for line in re.sub(r"\x1b\[\d*m", "", shown).splitlines()]
    assert plain[0] == "  name   count  text" and plain[1].startswith("  first      7  some words")
    assert all(len(line) <= 30 for line in plain)
    assert " ".join(" ".join(line[16:] for line in plain[1:-1]).split()) == LONG


def test_a_terminal_gets_a_table_without_titles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert table([("x", "f32[3]")], indent="  ", heads=False) == "  x  f32[3]"


@pytest.mark.parametrize("arguments", [("convert", "--help"), ("check", "--codes"), ("ops", "Relu")])
def test_a_pipe_needs_no_rich(arguments: tuple[str, ...]) -> None:
    program = (
        "import sys; from mo_loop.cli import main; main(sys.argv[1:], standalone_mode=False); "
        "sys.exit(3 if 'rich' in sys.modules else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
