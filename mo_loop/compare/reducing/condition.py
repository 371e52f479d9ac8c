"""The condition that a reduced model must still meet.

    Condition.parse("differs")              # the IR gives other numbers than ONNX Runtime
    Condition.parse("fails ML302")          # the conversion ends with this code; `fails` alone: with any error
    Condition.parse("crashes")              # the IR crashes or hangs the process that runs it
    Condition.parse("unreadable")           # OpenVINO does not read the IR
    Condition.parse("uncompilable")         # OpenVINO reads the IR, and does not compile it
    Condition.parse("grep -q Loop {}")      # a command exits with 0; {} is the path of the model
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from mo_loop.errors import UsageError

DIFFERS, FAILS, CRASHES, COMMAND = "differs", "fails", "crashes", "command"
UNREADABLE, UNCOMPILABLE = "unreadable", "uncompilable"

_TEXTS = {
    DIFFERS: "the numbers differ", CRASHES: "the IR crashes or hangs",
    UNREADABLE: "OpenVINO does not read the IR", UNCOMPILABLE: "OpenVINO does not compile the IR",
}  # fmt: skip


@dataclass(frozen=True)
class Condition:
    """One of the kinds; `detail` is the code or the command."""

    kind: str
    detail: str = ""

    @classmethod
    def parse(cls, text: str) -> Condition:
        """From the text of `--if`. UsageError if it cannot be understood."""
        word, _, rest = text.strip().partition(" ")
        if word in _TEXTS and not rest:
            return cls(word)
        if word == FAILS and re.fullmatch(r"(ML\d{3})?", rest.strip()):
            return cls(FAILS, rest.strip())
        try:
            parts = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"--if {text!r} cannot be understood", why=str(error), hint=_HINT) from None
        if not any("{}" in part for part in parts):
            raise UsageError(f"--if {text!r} cannot be understood", why="a command contains {}", hint=_HINT)
        return cls(COMMAND, text)

    @property
    def runs_ir(self) -> bool:
        """Whether the IR is run, so that inputs are needed."""
        return self.kind in (DIFFERS, CRASHES)

    def __str__(self) -> str:
        if self.kind == FAILS:
            return f"the conversion fails with {self.detail}" if self.detail else "the conversion fails"
        return _TEXTS.get(self.kind, self.detail)


_HINT = 'write differs, crashes, unreadable, uncompilable, fails, fails ML302, or a command with {} for the model'
