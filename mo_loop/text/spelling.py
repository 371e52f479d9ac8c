"""Prints and parses types and dimensions: `f32[2,2N+1,1..5]`, `seq(i64[...], 3)`.

The Scanner takes tokens from a text by patterns, and keeps track of the line.
"""

import json
import re
from typing import Any

from mo_loop.errors import InputError
from mo_loop.graph.dimension import Dim, Dimension, Symbol, fresh, named
from mo_loop.graph.types import BY_NAME, UNKNOWN, ElementType, OptionalType, SequenceType, TensorType

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
    return json.loads(text)


def word_or_quoted(text: str) -> str:
    return text if WORD.fullmatch(text) else quoted(text)


def show_type(type_: Any) -> str:
    """Any type as text."""
    if isinstance(type_, SequenceType):
        length = "" if type_.length is None else f", {show_dim(type_.length)}"
        return f"seq({show_type(type_.element)}{length})"
    if isinstance(type_, OptionalType):
        present = "" if type_.present is None else ", here" if type_.present else ", absent"
        return f"optional({show_type(type_.element)}{present})"
    dims = "..." if type_.shape is None else ",".join(map(show_dim, type_.shape))
    return f"{type_.dtype or '?'}[{dims}]"


def show_dim(dim: Dimension) -> str:
    """A dimension as text; one with a fresh symbol shows its bounds, one that follows from declared sizes its size."""
    if isinstance(dim, int):
        return str(dim)
    if dim.now is not None or dim.has_fresh():
        return repr(dim)
    text = ""
    for symbol, factor in dim.terms:
        sign = "-" if factor < 0 else "+" if text else ""
        text += f"{sign}{'' if abs(factor) == 1 else abs(factor)}{_show_symbol(symbol)}"
    return text + (f"{dim.const:+d}" if dim.const else "")


def _show_symbol(symbol: Symbol) -> str:
    if not WORD.fullmatch(symbol.name) and _means(symbol.name, symbol):
        return symbol.name  # a product or quotient; the name is its expression
    shown = symbol.name if WORD.fullmatch(symbol.name) else quoted(symbol.name)
    if symbol.lo == 0 and symbol.hi is None:
        return shown
    return f"{shown}{{{symbol.lo}..{'' if symbol.hi is None else symbol.hi}}}"


def _means(text: str, symbol: Symbol) -> bool:
    scanner = Scanner(text)
    try:
        return parse_dim(scanner) == Dim(((symbol, 1),)) and scanner.at_end
    except InputError:
        return False


def parse_type(scanner: Scanner) -> Any:
    """Take a type."""
    if scanner.accept("seq"):
        scanner.expect("(")
        element = parse_type(scanner)
        length = parse_dim(scanner) if scanner.accept(",") else None
        scanner.expect(")")
        return SequenceType(element, length)
    if scanner.accept("optional"):
        scanner.expect("(")
        element = parse_type(scanner)
        present = None
        if scanner.accept(","):
            present = scanner.accept("here")
            if not present:
                scanner.expect("absent")
        scanner.expect(")")
        return OptionalType(element, present)
    dtype = None if scanner.accept("?") else parse_element_type(scanner)
    scanner.expect("[")
    if scanner.accept("..."):
        scanner.expect("]")
        return UNKNOWN if dtype is None else TensorType(dtype, None)
    dims: list[Dimension] = []
    while not scanner.accept("]"):
        if dims:
            scanner.expect(",")
        dims.append(parse_dim(scanner))
    return TensorType(dtype, tuple(dims))


def parse_element_type(scanner: Scanner) -> ElementType:
    """Take the name of an element type."""
    word = scanner.require(WORD, "a type")
    if word not in BY_NAME:
        raise scanner.fail(f"{word!r} is not an element type", hint=f"one of {', '.join(BY_NAME)}")
    return BY_NAME[word]


def parse_dim(scanner: Scanner) -> Dimension:
    """Take a dimension: `2`, `?`, `1..5`, `2..`, `..5` or an affine expression of symbols."""
    if scanner.accept("?"):
        return fresh()
    return fresh(*_range(scanner, 0)) if scanner.sees("..") else _sum(scanner)


def _sum(scanner: Scanner) -> Dimension:
    total = _term(scanner, -1 if scanner.accept("-") else 1)
    if isinstance(total, int) and scanner.sees(".."):
        return fresh(*_range(scanner, total))
    while True:
        if scanner.accept("+"):
            total = total + _term(scanner, 1)
        elif scanner.accept("-"):
            total = total + _term(scanner, -1)
        else:
            return total


def _range(scanner: Scanner, lo: int) -> tuple[int, int | None]:
    scanner.expect("..")
    hi = scanner.match(INTEGER)
    return lo, None if hi is None else int(hi)


def _term(scanner: Scanner, sign: int) -> Dimension:
    number = scanner.match(NATURAL)
    factor = sign * (1 if number is None else int(number))
    if number is not None and not (scanner.sees(WORD) or scanner.sees('"') or scanner.sees("(")):
        return factor
    product = _atom(scanner)
    while scanner.accept("*"):
        product = product * _atom(scanner)
    return product * factor


def _atom(scanner: Scanner) -> Dimension:
    if scanner.accept("("):
        inner = _sum(scanner)
        scanner.expect(")")
        return inner
    if scanner.accept("floor("):
        inner = _sum(scanner)
        scanner.expect("/")
        divisor = int(scanner.require(INTEGER, "a divisor"))
        scanner.expect(")")
        return inner // divisor
    name = scanner.word_or_string("a dimension")
    if not scanner.accept("{"):
        return named(name)
    bounds = _range(scanner, int(scanner.match(INTEGER) or 0))
    scanner.expect("}")
    return named(name, *bounds)
