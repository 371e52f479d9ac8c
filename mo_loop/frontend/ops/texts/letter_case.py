"""Upper and lower case, and other changes of single characters, as a table for CharsMapNormalization.

    table("LOWER")                   # the bytes of the table
    table_of({"Ä": "A"})             # that of any changes
    changed("LOWER", "Ärger")        # "ärger"

ONNX leaves the letters to the locale. ONNX Runtime uses the functions of the C library for single characters, which are
the simple mappings of Unicode: "ß" has no upper case, and "Σ" becomes "σ" at the end of a word, too. The table has the
letters of Unicode 14, so that it is the same with each version of Python.

The table is a precompiled character map of SentencePiece: the number of bytes of a trie, the trie, and the new
characters, each with a byte of 0 after it. The trie is a double array of Darts, where a unit is an integer of 32 bits:

    the unit of a node     offset << 10 | is the node an end << 8 | the last byte
    the unit of a value    1 << 31 | the place of the new character

The children of the node at a place are at `place ^ offset ^ byte`, and its value is at `place ^ offset`.
"""

from collections.abc import Mapping
from functools import cache
from itertools import count

import numpy as np

_LATER = (
    (0x1C89, 0x1C8B), (0xA7CB, 0xA7D0), (0xA7D2, 0xA7D6), (0xA7DA, 0xA7DD), (0x10D50, 0x10D86), (0x16EA0, 0x16ED4),
)
"""Ranges of the letters that Unicode has had since version 15."""

_PAIRED_LATER = frozenset((0x19B, 0x264))
"""Letters that have had an upper case since then."""

_BLOCK = 256
"""The trie has a multiple of this number of units."""

_NO_BYTE = 1 << 31
"""A unit that no byte is equal to: a value, or one that is not used."""


def changed(action: str, text: str) -> str:
    """A text in upper or lower case; unchanged for the action NONE."""
    return text if action == "NONE" else "".join(_one(action, each) for each in text)


def _one(action: str, letter: str) -> str:
    code = ord(letter)
    if code in _PAIRED_LATER or any(first <= code < end for first, end in _LATER):
        return letter
    if action == "LOWER":
        return letter.lower()[0]  # one letter has a longer form: the İ of Turkish
    return next((each for each in (letter.upper(), letter.title()) if len(each) == 1), letter)


@cache
def table(action: str) -> bytes:
    """The precompiled map of all letters that the action, LOWER or UPPER, changes."""
    return table_of({each: _one(action, each) for each in map(chr, range(0x20000)) if not "\ud800" <= each < "\ue000"})


def table_of(new: Mapping[str, str]) -> bytes:
    """The precompiled map of characters to others; those that stay are left out."""
    values, text = {}, bytearray()
    for old, letter in new.items():
        if letter != old:
            values[old.encode()] = len(text)
            text += letter.encode() + b"\0"
    units = np.array(_double_array(values), "<u4").tobytes()
    return len(units).to_bytes(4, "little") + units + bytes(text)


def _double_array(values: dict[bytes, int]) -> list[int]:
    nodes: dict[bytes, set[int]] = {}
    for key in values:
        for length, byte in enumerate(key):
            nodes.setdefault(key[:length], set()).add(byte)
    used, bases, pending, start = {0: 0}, {0}, [(b"", 0)], 1
    for prefix, place in pending:
        wanted = [0, *sorted(nodes.get(prefix, ()))]
        # Each node has a base of its own: with that of another one it would have the children of that one, too.
        start = next(each for each in count(start) if each not in bases and each not in used)
        base = next(
            each for each in count(start) if each not in bases and all(each ^ byte not in used for byte in wanted)
        )
        bases.add(base)
        used[place] |= (place ^ base) << 10 | (prefix in values) << 8
        used[base] = _NO_BYTE | values.get(prefix, 0)
        for byte in wanted[1:]:
            used[base ^ byte] = byte
            pending.append((prefix + bytes((byte,)), base ^ byte))
    size = -(-(max(used) + 1) // _BLOCK) * _BLOCK
    return [used.get(place, _NO_BYTE) for place in range(size)]
