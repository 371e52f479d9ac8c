"""Numbers at the limits of their types, and names that are hard to write."""

from random import Random

INTEGERS = (0, 1, -1, 2, 3, -2, 4, 5, 7, 8, 16, 17, 64, 127, 128, 255, 1000, 65_536, 2**31 - 1, 2**31, -(2**31), 2**32,
            2**53, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1)
SIZES = (0, 1, -1, 2, 3, 5, 1000, 65_536, 2**24, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-45, 1e-30, 3.4e38, -3.4e38, float("inf"), float("-inf"), float("nan"))
TEXTS = ("", "x", "linear", "cubic", "nearest", "constant", "reflect", "edge", "wrap", "SAME_UPPER", "SAME_LOWER",
         "VALID", "NOTSET", "forward", "reverse", "bidirectional", "add", "mul", "max", "none", "mean", "sum", "tanh",
         "Tanh", "Relu", "Affine", "i,j->", "...ij,jk", "->", "ij,jk->ik,", "bilinear", "NCHW", "BNSH", "a" * 3000,
         "\u202e\u2066", "\x1b[2J", "a/b/../c", "\n", "\0", "<&>\"'", "]]>", "\ud7ff\ufffd", "%s{0}")
RAW_TEXTS = (b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\0", b"")
"""Bytes that are not UTF-8, for fields of bytes."""

ELEMENT_TYPES = (*range(28), 99, -1, 2**31 - 1)


def integer(draw: Random, near: int | None = None) -> int:
    """An integer of 64 bits; often one beside `near`."""
    if near is not None and draw.random() < 0.4:
        return max(-(2**63), min(2**63 - 1, draw.choice((near + 1, near - 1, -near, 2 * near, near // 2))))
    return draw.choice(INTEGERS)


def size(draw: Random, near: int | None = None) -> int:
    """A dimension, which may be negative."""
    if near is not None and draw.random() < 0.4:
        return max(-(2**63), min(2**63 - 1, draw.choice((near + 1, near - 1, 2 * near, near // 2, 1))))
    return draw.choice(SIZES)
