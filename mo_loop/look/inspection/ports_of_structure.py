"""Values of a Structure as names, types and shapes: the same for ONNX, IR and dumps."""

from __future__ import annotations

import re

from mo_loop.look.differences.structure import Item, Output, Ref
from mo_loop.look.inspection.description import Port, Shape
from mo_loop.text.scanner import unquoted

_DIM = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^",])+')
"""A dimension in a shape: a quoted symbol can hold commas."""


def is_constant(item: Item) -> bool:
    """Whether an item is a constant; its data can be in a missing file, or an attribute of a function."""
    return item.is_constant or item.operator == "Constant"


def tensor_name(ref: Ref | None) -> str:
    """The name of a tensor; of one without a name that of its node, with the number of the output where there are
    several."""
    if ref is None:
        return ""
    item, place = ref
    names = item.outputs[place].names if place < len(item.outputs) else ()
    return names[0] if names else f"{item.label}:{place}" if len(item.outputs) > 1 else item.label


def tensor_port(ref: Ref) -> Port:
    """A tensor with its type."""
    known = ref.item.outputs[ref.output] if ref.output < len(ref.item.outputs) else Output()
    return port_of(tensor_name(ref), known.dtype, known.shape)


def port_of(name: str, dtype: str, shape: str) -> Port:
    """A value of an element type and of dimensions in brackets, both as a Structure has them; "" is not known."""
    return Port(name, dtype or "?", _dims(shape) if shape else None)


def _dims(shape: str) -> Shape:
    """The dimensions in a text such as `[2,"N, M",4]`; None for an unknown rank."""
    inner = shape[1:-1]
    return None if inner == "..." else list(map(_dim, _DIM.findall(inner)))


def _dim(text: str) -> int | str:
    if text.isascii() and text.isdecimal():
        return int(text)
    return unquoted(text) if len(text) > 1 and text[0] == text[-1] == '"' else text
