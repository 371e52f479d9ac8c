"""Names and values in the texts of options. A name in quotes can have commas, brackets and all else that separates
names. Values may be of any length: how a literal or a number is read, and how a value is shown in a message.

>>> parts('logits,"split,1[0]"')
['logits', '"split,1[0]"']
>>> unquoted('"split,1[0]"'), unquoted("logits")
('split,1[0]', 'logits')
>>> literal("{'h0': 'hN'}")
{'h0': 'hN'}
>>> shown(10 ** 5000), shown([1, 2])
('a value of type int', '[1, 2]')
>>> whole_number("12"), whole_number("9" * 5000)
(12, None)
"""

from __future__ import annotations

import ast
import re
from typing import Any

QUOTED = r"\"[^\"]*\"|'[^']*'"
"""A name in quotes; the other kind of quotes may be in it."""

_QUOTED = re.compile(rf"(?<![^,=\s])(?:{QUOTED})(?![^,=\s\[({{-])")
"""Quoted and unquoted parts of a text: an apostrophe within a name is not a quote."""

LARGEST = (1 << 63) - 1
"""The largest size in ONNX and in the IR."""

LONGEST = 200
"""Characters of a given text or value in a message: it may have any length."""


def masked(text: str) -> str:
    """The text with other characters instead of those in quotes, so that places in both texts are equal."""
    return _QUOTED.sub(lambda found: "_" * len(found[0]), text)


def parts(text: str) -> list[str]:
    """The parts between commas, stripped; empty parts are left out."""
    commas = [found.start() for found in re.finditer(",", masked(text))]
    ends = zip([0, *(place + 1 for place in commas)], [*commas, len(text)], strict=True)
    return [part for start, end in ends if (part := text[start:end].strip())]


def unquoted(text: str) -> str:
    """A name without its quotes, if it has some."""
    return text[1:-1] if re.fullmatch(QUOTED, text) else text


def literal(text: str) -> Any:
    """The value that a text spells; ValueError if it is not a Python literal, or one that is too long or too deep.

    A dict that maps a name twice is an error: one of the two would be lost.
    """
    try:
        found, tree = ast.literal_eval(text), ast.parse(text.strip(), mode="eval").body
    except (TypeError, SyntaxError, RecursionError, MemoryError) as error:  # TypeError: a list as the key of a dict
        raise ValueError(str(error)) from None
    if isinstance(tree, ast.Dict) and len(tree.keys) > len(found):
        raise ValueError("a key occurs twice")
    return found


def whole_number(text: str) -> int | None:
    """The number that decimal digits spell; None for any other text, and for a number beyond 64 bits.

    Python converts no text of more than 4300 digits.
    """
    digits = text.lstrip("0") or text
    if not text.isdecimal() or len(digits) > len(str(LARGEST)):
        return None
    found = int(digits)
    return found if found <= LARGEST else None


def shown(value: Any) -> str:
    """A value for a message: its spelling, shortened, or its type if its spelling is too long or too deep for Python.

    Integers of more than 4300 digits have no decimal spelling.
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
