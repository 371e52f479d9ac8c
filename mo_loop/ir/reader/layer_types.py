"""Maps layer types and versions to operation classes, and parses their attributes.

The attributes in a file must be exactly those of the class. An attribute that the class lacks would be lost. One that
the file lacks has the default of the specification, which the class may not have.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, get_args, get_origin

from mo_loop import ops
from mo_loop.graph.shape import Shape
from mo_loop.graph.types import BY_IR_NAME, ElementType, TensorType
from mo_loop.ir.reader.layer_records import Layer
from mo_loop.ir.reader.numbers import integer, parse_shape, shown
from mo_loop.ir.xml import nearest_single
from mo_loop.ops.base import Constant, Identity, Op, Parameter, Result
from mo_loop.ops.control import Control
from mo_loop.ops.front import Opaque, element_type

_OWN_WAY = (Parameter, Result, Constant, Control, Opaque)  # the reader makes these itself
_SHADOWED = (Identity,)  # written as a Convert to the same type, and read as that


@cache
def classes() -> dict[tuple[str, str], type[Op]]:
    """(type, version) -> class."""
    found: dict[tuple[str, str], type[Op]] = {}
    for name in dir(ops):
        cls = getattr(ops, name)
        if not isinstance(cls, type) or not issubclass(cls, Op) or cls.abstract or not cls.opset:
            continue
        if not issubclass(cls, (*_OWN_WAY, *_SHADOWED)):
            found[cls.type, f"opset{cls.opset}"] = cls
    return found


def attributes_of(cls: type[Op], raw: dict[str, str]) -> dict[str, Any]:
    """The attributes of `cls` from their text. Raises ValueError if the class cannot represent them."""
    texts = cls.from_xml(raw)
    if texts.keys() != cls.attributes.keys():
        raise ValueError(f"attributes {sorted(texts)} for {cls.__name__}")
    return {key: parsed(text, cls._kinds[key]) for key, text in texts.items()}


def declared_type(layer: Layer, symbol: str = "") -> TensorType:
    """The type that a Parameter declares; its unknown dimensions are named with the prefix `symbol`, if it is given."""
    text, name = layer.data.get("shape"), layer.data.get("element_type", "")
    if text is None or not name:
        raise layer.wrong("a Parameter needs the attributes shape and element_type")
    try:
        shape: Shape = parse_shape(text, symbol)
    except ValueError as error:
        raise layer.wrong(f"the attribute shape is {shown(text)}, which is not a shape: {error}") from None
    dtype = BY_IR_NAME.get(name) or element_type(layer.outputs[0].precision if layer.outputs else name.upper(), name)
    return TensorType(dtype, shape)


def parsed(text: str, kind: Any) -> Any:
    """The inverse of the writer's `spelled`, for an attribute of that kind. Raises ValueError for other text."""
    if kind is bool:
        return _truth(text)
    if kind is int:
        return integer(text)
    if kind is float:
        return _number(text)
    if kind is str:
        return text
    if kind is ElementType:
        if text not in BY_IR_NAME:
            raise ValueError(f"element type {shown(text)}")
        return BY_IR_NAME[text]
    if get_origin(kind) is Literal:
        choices = {choice.casefold(): choice for choice in get_args(kind)}
        if text.casefold() not in choices:
            raise ValueError(f"{text!r} is not one of {get_args(kind)}")
        return choices[text.casefold()]
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        return tuple(parsed(each.strip(), item) for each in text.split(",")) if text.strip() else ()
    if kind is tuple and (shape := parse_shape(text)) is not None:
        return shape
    raise ValueError(f"no text is of the kind {kind}")


def _number(text: str) -> float:
    """A number of up to nine digits means the nearest f32."""
    value = float(text)
    single = nearest_single(value)
    return single if f"{single:.9g}" == text else value


def _truth(text: str) -> bool:
    word = text.casefold()
    if word not in ("true", "false", "1", "0"):
        raise ValueError(f"{text!r} is neither true nor false")
    return word in ("true", "1")
