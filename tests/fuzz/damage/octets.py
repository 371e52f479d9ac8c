"""Damage of the bytes of a file."""

from random import Random

MARKS = (b"\x00", b"\xff", b"\x80", b"\x7f", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x0a\x00", b"\x12\x7f")
"""Bytes that mean a length, a field or the largest number in the format of protobuf."""


def damaged_bytes(data: bytes, draw: Random, other: bytes) -> bytes:
    """`data` with one to four damages; `other` is a file that pieces are taken from."""
    for _ in range(draw.choice((1, 1, 1, 2, 3, 4))):
        data = draw.choice(_DAMAGES)(bytearray(data or b"\0"), draw, other)
    return data


def _flip(data: bytearray, draw: Random, other: bytes) -> bytes:
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(data)


def _set(data: bytearray, draw: Random, other: bytes) -> bytes:
    data[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(data)


def _remove(data: bytearray, draw: Random, other: bytes) -> bytes:
    start = draw.randrange(len(data))
    del data[start : start + draw.choice((1, 1, 2, 4, 16, 64))]
    return bytes(data)


def _repeat(data: bytearray, draw: Random, other: bytes) -> bytes:
    start = draw.randrange(len(data))
    return bytes(data[:start] + data[start : start + draw.choice((1, 2, 4, 16, 64))] * 2 + data[start:])


def _insert(data: bytearray, draw: Random, other: bytes) -> bytes:
    place = draw.randrange(len(data))
    return bytes(data[:place] + draw.choice(MARKS) + data[place:])


def _truncate(data: bytearray, draw: Random, other: bytes) -> bytes:
    return bytes(data[: draw.randrange(len(data))])


def _splice(data: bytearray, draw: Random, other: bytes) -> bytes:
    if not other:
        return bytes(data)
    start, place = draw.randrange(len(other)), draw.randrange(len(data))
    return bytes(data[:place] + other[start : start + draw.choice((4, 16, 64, 256))] + data[place:])


_DAMAGES = (_flip, _flip, _flip, _set, _set, _remove, _repeat, _insert, _truncate, _splice)
