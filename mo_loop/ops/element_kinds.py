"""Element types that an operation takes at an input: the class keyword `types` of operations."""

from typing import NamedTuple

from mo_loop.graph.types import ALL, ElementType, bf16, f16, f32, f64, i8, i32, i64, u8


class Kind(NamedTuple):
    """Element types, and their name in a message."""

    text: str
    types: frozenset[ElementType]


FLOATS = Kind("of floating point", frozenset(each for each in ALL if each.is_float))
INTEGERS = Kind("integers", frozenset(each for each in ALL if each.is_integer))
NUMBERS = Kind("numbers", FLOATS.types | INTEGERS.types)
SMALL_FLOATS = Kind("f32, f16 or bf16", frozenset((f32, f16, bf16)))
WIDE_INTEGERS = Kind("i64 or i32", frozenset((i64, i32)))
RESIZED = Kind("f64, f32, f16, bf16, i64, i32, i8 or u8", frozenset((f64, f32, f16, bf16, i64, i32, i8, u8)))
