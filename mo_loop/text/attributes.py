"""Prints and parses attributes and rt_info: `{axis: 1, mode: bidirectional, pads: [0, 1], output_type: i64}`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, get_args, get_origin

from mo_loop.errors import (
    ConversionErrors,
    FileError,
    InputError,
    InternalError,
    ModelError,
    MoLoopError,
    TypeError_,
    UnsupportedError,
    UsageError,
)
from mo_loop.graph.dimension import Dim
from mo_loop.graph.types import BY_NAME, ElementType
from mo_loop.text.literals import parse_scalar
from mo_loop.text.scanner import WORD, Scanner, quoted, word_or_quoted
from mo_loop.text.spelling import parse_dim, parse_element_type, show_dim

CODE = re.compile(r"ML\d{3}")
_ERRORS: dict[str, type[MoLoopError]] = {
    "ML200": InputError, "ML20": UsageError, "ML21": FileError, "ML22": ModelError, "ML23": TypeError_,
    "ML24": TypeError_, "ML2": InputError, "ML3": UnsupportedError, "ML4": InternalError,
}  # fmt: skip


def show_attribute(value: Any, kind: Any) -> str:
    """A value as text. A string needs no quotes if the declared `kind` of the attribute is a string."""
    if isinstance(value, str) and kind is not Any and WORD.fullmatch(value):
        return value
    if isinstance(value, tuple | list):
        return f"[{', '.join(show_attribute(each, _item_kind(kind)) for each in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{word_or_quoted(k)}: {show_attribute(v, Any)}' for k, v in value.items())}}}"
    if isinstance(value, ConversionErrors):
        return f"[{', '.join(show_attribute(each, Any) for each in value.errors)}]"
    if isinstance(value, MoLoopError):
        more = "".join(f", {key}: {quoted(getattr(value, key))}" for key in ("where", "hint") if getattr(value, key))
        return f"{value.code}({quoted(value.message)}{more})"
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "none"
    if isinstance(value, Dim):
        return show_dim(value)
    return repr(value) if isinstance(value, int | float | ElementType) else quoted(str(value))


def parse_attribute(scanner: Scanner, kind: Any) -> Any:
    """Take a value of the declared `kind`."""
    if kind is ElementType:
        return parse_element_type(scanner)
    if scanner.sees("["):
        items: list[Any] = []
        # A plain tuple is a shape; one of numbers or strings declares its items.
        item = parse_dim if kind is tuple else lambda scanner: parse_attribute(scanner, _item_kind(kind))
        parse_list(scanner, "[", "]", lambda: items.append(item(scanner)))
        errors = [item for item in items if isinstance(item, MoLoopError)]
        return ConversionErrors(errors) if errors else tuple(items)
    text = scanner.string()
    if text is not None:
        return text
    if kind is Any:
        return _anything(scanner)
    if scanner.sees(WORD) and kind not in (bool, int, float):
        return scanner.match(WORD)
    return parse_scalar(scanner)


def _anything(scanner: Scanner) -> Any:
    if scanner.sees("{"):
        return parse_info(scanner)
    if scanner.sees(CODE):
        return _error(scanner)
    if scanner.accept("none"):
        return None
    word = WORD.match(scanner.text, scanner.position)
    return parse_element_type(scanner) if word is not None and word.group() in BY_NAME else parse_scalar(scanner)


def parse_info(scanner: Scanner) -> dict[str, Any]:
    """Take a dictionary of anything."""
    found: dict[str, Any] = {}

    def entry() -> None:
        key = scanner.word_or_string("a key")
        scanner.expect(":")
        found[key] = parse_attribute(scanner, Any)

    parse_list(scanner, "{", "}", entry)
    return found


def parse_list(scanner: Scanner, opening: str, closing: str, item: Callable[[], Any]) -> None:
    """Take `opening`, items, `closing`; `item` takes one. A last comma is optional, in braces every comma."""
    scanner.expect(opening)
    while not scanner.accept(closing):
        item()
        if not scanner.accept(",") and not scanner.sees(closing) and opening != "{":
            scanner.expect(",")


def _error(scanner: Scanner) -> MoLoopError:
    code = scanner.require(CODE, "an error code")
    cls = next(cls for prefix, cls in _ERRORS.items() if code.startswith(prefix))
    error = cls("", code=code)

    def part() -> None:
        key = "message"
        if not scanner.sees('"'):
            key = scanner.require(re.compile("where|hint"), "where or hint")
            scanner.expect(":")
        text = scanner.string()
        if text is None:
            raise scanner.fail("expected a string")
        setattr(error, key, text)

    parse_list(scanner, "(", ")", part)
    error.args = (error.message,)
    return error


def _item_kind(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is tuple else Any
