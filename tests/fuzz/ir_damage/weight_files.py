"""Damage of a .bin: other bytes and numbers in it, shorter, longer, missing, or no regular file."""

import os
import struct
from pathlib import Path
from random import Random

from tests.fuzz.damage.amounts import FLOATS, INTEGERS
from tests.fuzz.damage.octets import damaged_bytes

FILE, MISSING, FOLDER, LINK, DANGLING, CIRCLE, DEVICE, PIPE = FORMS = (
    "file", "missing", "folder", "link", "dangling", "circle", "device", "pipe"
)
"""The kinds of files in the place of the .bin."""


def damaged_weights(data: bytes, draw: Random, other: bytes) -> tuple[bytes, str]:
    """The bytes of a .bin with a damage, and what is in its place."""
    kind = draw.randrange(12)
    if kind == 0:
        return data[: draw.randrange(len(data) + 1)], FILE
    if kind == 1:
        return data + draw.choice((b"\0", other, bytes(100_000))), FILE
    if kind == 2:
        return other, FILE
    if kind == 3:
        return data, draw.choice(FORMS)
    if kind <= 5:
        return damaged_bytes(data, draw, other), FILE
    return _numbers(bytearray(data), draw), FILE


def _numbers(data: bytearray, draw: Random) -> bytes:
    """Extreme numbers in the place of others: axes, shapes, trip counts and bounds are constants of the .bin."""
    for _ in range(draw.choice((1, 2, 4))):
        form, values = draw.choice((("<q", INTEGERS), ("<q", INTEGERS), ("<i", INTEGERS), ("<f", FLOATS)))
        size = struct.calcsize(form)
        if len(data) >= size:
            value = draw.choice(values)
            value = value if form != "<i" else max(-(2**31), min(2**31 - 1, int(value)))
            struct.pack_into(form, data, draw.randrange(len(data) // size) * size, value)
    return bytes(data)


def place(data: bytes, form: str, path: Path) -> None:
    """Write a .bin, or what is in its place."""
    if form == FOLDER:
        path.mkdir()
    elif form == DANGLING:
        path.symlink_to("no-such-file")
    elif form == CIRCLE:
        path.symlink_to(path.name)
    elif form == DEVICE:
        path.symlink_to("/dev/zero")
    elif form == PIPE:
        os.mkfifo(path)
    elif form == LINK:
        path.with_suffix(".other").write_bytes(data)
        path.symlink_to(path.with_suffix(".other").name)
    elif form == FILE:
        path.write_bytes(data)
