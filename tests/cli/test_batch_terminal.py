"""`mo-loop batch` on a terminal: the progress bar, the lines above it, and terminals without colours or cursor."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .batches import command, environment, good, refused, trouble

if sys.platform == "win32":
    pytest.skip("pseudo-terminals", allow_module_level=True)

import fcntl
import pty
import struct
import termios

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9][0-9;]*m")
CURSOR_OFF, CURSOR_ON = "\x1b[?25l", "\x1b[?25h"


class Terminal:
    """The command with stderr on a terminal of 100 columns; stdout is a pipe."""

    def __init__(self, folder: Path, *arguments: str, env: dict[str, str] | None = None) -> None:
        self.end, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.seen = ""
        self.process = subprocess.Popen(
            [*command(), "batch", "in", "-o", "out", "--extension", "trouble.py", *arguments],
            cwd=folder, env=environment(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=inside,
        )
        os.close(inside)

    def read(self, until: str | None = None, seconds: float = 120) -> str:
        """The output so far, read to its end or until it contains a text."""
        limit = time.monotonic() + seconds
        while until is None or until not in self.text:
            assert time.monotonic() < limit, self.seen
            if not select.select([self.end], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(self.end, 65536)
            except OSError:  # Linux reports the end of the output so
                break
            if not data:
                break
            self.seen += data.decode()
        return self.seen

    @property
    def text(self) -> str:
        """The text on the screen, without colours and cursor movements."""
        return ANSI.sub("", self.seen)

    def finish(self) -> tuple[int, str]:
        """Exit code and stdout."""
        assert self.process.stdout is not None
        stdout = self.process.stdout.read().decode()
        self.process.stdout.close()
        code = self.process.wait(timeout=60)
        os.close(self.end)
        return code, stdout


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Five models that take a short time, and one that fails."""
    for number in range(5):
        good(tmp_path / "in" / f"sub/model{number}.onnx", number, name="slow12")
    refused(tmp_path / "in" / "odd.onnx")
    trouble(tmp_path)
    return tmp_path


def test_the_bar(models: Path) -> None:
    terminal = Terminal(models, "-j", "2")
    seen = terminal.read()
    code, stdout = terminal.finish()
    assert code == 1 and stdout.startswith("out: 6 models: 5 converted, 1 failed, ")
    text = terminal.text
    assert "━" in text
    done = [int(each) for each in re.findall(r"(\d)/6", text)]
    assert done == sorted(done) and done[0] == 0 and len(set(done)) >= 4
    assert "1 failed" in text
    assert re.search(r"\d:\d\d:\d\d +(\d|-):(\d\d|--):(\d\d|--) left", text), "elapsed and left"
    assert re.search(r"sub/model\d\.onnx 1 s, sub/model\d\.onnx", text), "the models at work, with their seconds"
    assert "failed odd.onnx: ML302: " in text and text.count("ML302") == 1 and COLOUR.search(seen)
    assert seen.count(CURSOR_OFF) == seen.count(CURSOR_ON) == 1


def test_no_color(models: Path) -> None:
    terminal = Terminal(models, env={"NO_COLOR": "1"})
    seen = terminal.read()
    assert terminal.finish()[0] == 1 and "/6" in terminal.text and "failed odd.onnx" in terminal.text
    assert not COLOUR.search(seen)


def test_a_terminal_without_a_cursor_gets_lines(models: Path) -> None:
    terminal = Terminal(models, env={"TERM": "dumb"})
    seen = terminal.read()
    assert terminal.finish()[0] == 1 and "\x1b" not in seen
    assert seen.count("converted sub/model") == 5 and "[6/6]" in seen


def test_quiet_shows_failures_alone(models: Path) -> None:
    terminal = Terminal(models, "--quiet")
    terminal.read()
    assert terminal.finish() == (1, "")
    lines = terminal.text.replace("\r", "").splitlines()
    assert (
        lines[0].startswith("failed odd.onnx: ML302: ") and "model0" not in terminal.text and "━" not in terminal.text
    )


def test_an_interrupted_bar_leaves_the_terminal_as_it_was(models: Path) -> None:
    terminal = Terminal(models)
    terminal.read(until="1/6")
    terminal.process.send_signal(signal.SIGINT)
    seen = terminal.read()
    assert terminal.finish()[0] == 130 and seen.rindex(CURSOR_ON) > seen.rindex(CURSOR_OFF)
    assert "ended by SIGINT" in terminal.text and "Traceback" not in terminal.text
