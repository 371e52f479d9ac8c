"""Conversions of element types that change no value."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.types import ElementType, bf16, boolean, f16, f32, f64
from mo_loop.ops.base import Identity
from mo_loop.transforms.elimination import Elimination, is_model_output
from mo_loop.transforms.pattern import Match, any_input, wrap_type
from mo_loop.transforms.predicates import Predicate

DIGITS = {f16: 11, bf16: 8, f32: 24, f64: 53}
"""Float type -> the number of bits of the integers that it holds exactly."""

WITHIN = {f16: (f32, f64), bf16: (f32, f64), f32: (f64,)}
"""Float type -> the float types that hold all its values."""


def _is_unmarked(value: Value) -> bool:
    return "decompression" not in value.node.rt_info


UNMARKED = Predicate("no mark as decompression", _is_unmarked)


class EliminateIdentity(Elimination):
    """Identity(x)  ->  x, unless the Identity has the name of a model output"""

    x = any_input()
    pattern = wrap_type(Identity, x, when=~Predicate("a model output", is_model_output))

    def matched(self, match: Match) -> bool:
        return self.bypass(match, match[self.x])


class EliminateConvert(Elimination):
    """convert(x) to the type of x  ->  x"""

    keeps = x = any_input()
    pattern = wrap_type(ops.Convert, x, when=UNMARKED)


class MergeConverts(Elimination):
    """convert(convert(x : a, b), c)  ->  convert(x, c), or x if c is a; b and c hold every value of a

    f32 -> f64 -> f32 disappears, u8 -> i32 -> i64 becomes one Convert. A Convert that may change a value stays.
    """

    x = any_input()
    inner = wrap_type(ops.Convert, x, when=UNMARKED)
    pattern = wrap_type(ops.Convert, inner, when=UNMARKED)

    def matched(self, match: Match) -> bool:
        x, middle, last = match[self.x], match[self.inner].dtype, match.root.output.dtype
        if not holds_all(middle, x.dtype):
            return False
        if last is x.dtype:
            return self.bypass(match, x)
        return holds_all(last, x.dtype) and self.replace(match, ops.Convert(x, destination_type=last))


def holds_all(wide: ElementType, narrow: ElementType) -> bool:
    """Whether every value of `narrow` is a value of `wide`, both of 8 bits or more."""
    if wide is narrow:
        return True
    if narrow.bits < 8 or wide.bits < 8:
        return False
    if narrow is boolean:
        return wide.is_integer or wide in DIGITS
    if narrow.is_float:
        return wide in WITHIN.get(narrow, ())
    if not narrow.is_integer:
        return False
    bits = narrow.bits - (narrow.kind == "int")
    if wide.is_integer:
        return wide.bits - (wide.kind == "int") >= bits and (wide.kind == "int" or narrow.kind == "uint")
    return DIGITS.get(wide, 0) >= bits
