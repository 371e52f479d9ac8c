"""Parses `--input`: names, shapes, element types and values, in the syntax of ovc and of the Model Optimizer.

>>> entry, frozen = parse_inputs("x[1,3,?,224..512]{f16},sr->16000")
>>> entry.name, entry.shape, entry.dtype
('x', (1, 3, ?, 224..512), f16)
>>> frozen.name, frozen.value
('sr', 16000)

An entry is `name[shape]{type}->value`, or `name{type}[shape]->value` as in older scripts. Each part except the name
is optional, and a shape alone means the input at its position. Dimensions are separated by commas or spaces: a
number, `?` or -1, a range `a..b`, `a..`, `..b`, or the name of a symbol. The ports of a node are `node:0` (an output)
and `0:node` (an input). A name in quotes can have any character.
"""

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from mo_loop.errors import UnsupportedError, UsageError
from mo_loop.graph.dimension import Dimension, fresh, named
from mo_loop.graph.types import ALL, BY_NAME, BY_PRECISION, ElementType, from_numpy, string
from mo_loop.preprocessing import split
from mo_loop.support.flags import QUOTED, literal, shown, unquoted, whole_number

KEEP: Any = ...
"""The shape of an entry that keeps the declared one."""

_SHAPE, _TYPE = r"[\[(][^\])]*[\])]", r"\{[^}]*\}"
_ENTRY = re.compile(
    rf"(?P<name>{QUOTED}|.*?)(?P<first>{_TYPE})?(?P<shape>{_SHAPE})?(?P<type>{_TYPE})?(?P<value>->.*)?", re.DOTALL
)
_SYNTAX = "an entry is name[shape]{type}->value, as in x[1,3,?,224..512]{f32} or rate->16000"


@dataclass(frozen=True)
class InputEntry:
    """The entry of one input: `shape` KEEP and `dtype`, `value` None keep the declarations of the model."""

    name: str = ""
    shape: Any = KEEP
    dtype: ElementType | None = None
    value: Any = None


def parse_inputs(text: str, known: Container[str] = ()) -> list[InputEntry]:
    """The entries of `text`. A name in `known` is read whole, with any characters.

    Raises:
        UsageError: the text does not have this syntax.
    """
    return [_entry(item, known) for item in split(text, hint=_SYNTAX)]


def _entry(text: str, known: Container[str]) -> InputEntry:
    if text in known:
        return InputEntry(text)
    found = _ENTRY.fullmatch(text)
    if found is None or (found["first"] and found["type"]):
        raise UsageError(f"{text!r} cannot be understood", hint=_SYNTAX)
    shape, type_, value = found["shape"], found["type"] or found["first"], found["value"]
    return InputEntry(
        unquoted(found["name"].strip()),
        KEEP if shape is None else shape_of(re.split(r"[,\s]+", shape[1:-1].strip()) if shape[1:-1].strip() else ()),
        None if type_ is None else dtype_of(type_[1:-1].strip()),
        None if value is None else value_of(value[2:].strip()),
    )


def shape_of(dims: Any) -> Any:
    """A shape from numbers, None, -1, `?`, ranges `a..b` and names of symbols."""
    return tuple(_dimension(dim) for dim in dims)


def _dimension(given: Any) -> Dimension:
    if isinstance(given, tuple) and len(given) == 2:  # as a range in Python
        given = "..".join("" if bound in (None, -1) else str(bound) for bound in given)
    text = "?" if given is None else str(given).strip()
    if text in ("?", "-1"):
        return fresh()
    if text.isdecimal():
        return _size(text)
    low, dots, high = text.partition("..")
    if dots and all(bound == "" or bound.isdecimal() for bound in (low, high)):
        least, most = _size(low or "0"), _size(high) if high else None
        if most is not None and least > most:
            raise UsageError(f"the range {text!r} is empty", hint="write the smaller bound first")
        return fresh(least, most)
    if text.isidentifier():
        return named(text)
    raise UsageError(f"{shown(text)} is not a dimension", hint="use a number, ?, a range such as 1..8, or a name")


def _size(digits: str) -> int:
    found = whole_number(digits)
    if found is None:
        raise UsageError(
            f"{shown(digits)} is not a dimension", why="it does not fit 64 bits", hint="use a smaller number"
        )
    return found


_ALIASES = {
    "bool": "boolean", "half": "f16", "float": "f32", "double": "f64", "int": "i32", "long": "i64", "str": "string",
    "float8e8m0": "f8e8m0", "float4e2m1": "f4e2m1",
    **{each.numpy_name.removeprefix("ml_dtypes.").replace("_", ""): each.name for each in ALL if each is not string},
}


def dtype_of(given: Any) -> ElementType:
    """An element type from its name in the IR, numpy or ONNX, as the precision of a port, or an `openvino.Type`."""
    if isinstance(given, ElementType):
        return given
    if hasattr(given, "get_type_name"):
        given = given.get_type_name()
    if isinstance(given, str):
        name = given.lower().removeprefix("tensor(").removesuffix(")").replace("_", "")
        name = _ALIASES.get(name, name)
        if name in BY_NAME:
            return BY_NAME[name]
        if given.upper() in BY_PRECISION:
            return BY_PRECISION[given.upper()]
    try:
        return from_numpy(given)
    except (TypeError, UnsupportedError):
        names = ", ".join(sorted(BY_NAME))
        raise UsageError(f"{given!r} is not an element type", hint=f"the element types are {names}") from None


def value_of(text: str) -> Any:
    """A number, a truth value, or a list of them in brackets, nested or not, with commas or spaces."""
    spaced = re.sub(r"\s+", ",", re.sub(r"\s*([\[\],])\s*", r"\1", text)) if text.startswith("[") else text
    words = {"true": "True", "false": "False", "inf": "1e999"}
    plain = re.sub(r"[A-Za-z]+", lambda word: words.get(word[0].lower(), word[0]), spaced)
    try:
        return literal(plain)
    except ValueError:
        raise UsageError(
            f"{shown(text)} is not a value", hint="write a number, true, false, or a list: [1,2]"
        ) from None
