"""Scanner: takes tokens from a text by patterns, and keeps track of the line."""

from __future__ import annotations

import json
import re

from mo_loop.errors import InputError

BLANK = re.compile(r"(?:\s|#[^\n]*)*")
PLAIN = re.compile(r"[\w./:-]*")  # what needs no escape in quotes
WORD = re.compile(r"[^\W\d]\w*")
INTEGER = re.compile(r"-?\d+")
NATURAL = re.compile(r"\d+")
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
VALUE = re.compile(r"%[\w.]+")
RESULT = re.compile(r"@[\w.]+(?::\d+)?")


class Scanner:
    """A position in `text`. Blanks and comments before a token are skipped."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.line = 1
        self._skip()

    def _skip(self) -> None:
        match = BLANK.match(self.text, self.position)
        assert match is not None  # the pattern matches the empty text
        self.line += self.text.count("\n", self.position, match.end())
        self.position = match.end()

    @property
    def at_end(self) -> bool:
        return self.position == len(self.text)

    def fail(self, message: str, line: int | None = None, hint: str = "") -> InputError:
        """The error to raise: `message` at the current line."""
        return InputError(f"line {line or self.line}: {message}", code="ML209", hint=hint)

    def sees(self, token: str | re.Pattern[str]) -> bool:
        """Whether `token` comes next; it is not taken."""
        if isinstance(token, str):
            return self.text.startswith(token, self.position)
        return token.match(self.text, self.position) is not None

    def accept(self, token: str) -> bool:
        """Take `token` if it comes next. One that consists of letters must end there."""
        if not self.sees(token):
            return False
        end = self.position + len(token)
        if token[-1].isalnum() and end < len(self.text) and (self.text[end].isalnum() or self.text[end] == "_"):
            return False
        self.position = end
        self._skip()
        return True

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.fail(f"expected {token!r}, found {self._ahead()}")

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Take the match of `pattern` here, None if there is none."""
        match = pattern.match(self.text, self.position)
        if match is None:
            return None
        self.position = match.end()
        self._skip()
        return match.group()

    def require(self, pattern: re.Pattern[str], what: str) -> str:
        found = self.match(pattern)
        if found is None:
            raise self.fail(f"expected {what}, found {self._ahead()}")
        return found

    def string(self) -> str | None:
        """Take a quoted string."""
        found = self.match(STRING)
        return None if found is None else unquoted(found)

    def word_or_string(self, what: str) -> str:
        text = self.string()
        return self.require(WORD, what) if text is None else text

    def _ahead(self) -> str:
        if self.at_end:
            return "the end of the text"
        found = re.match(r"[%@]?[\w.]+|\S", self.text[self.position : self.position + 80])
        return repr(found.group()) if found else "nothing"


def quoted(text: str) -> str:
    """`text` in double quotes; bytes that are not UTF-8 (lone surrogates) are escaped."""
    if PLAIN.fullmatch(text):
        return f'"{text}"'
    shown = json.dumps(text, ensure_ascii=False)
    return shown if shown.isprintable() else json.dumps(text)


def unquoted(text: str) -> str:
    result: str = json.loads(text)
    return result


def word_or_quoted(text: str) -> str:
    return text if WORD.fullmatch(text) else quoted(text)
