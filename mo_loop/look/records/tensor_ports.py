"""Values of a Structure as names, types and shapes: the same for ONNX, IR and dumps."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from mo_loop.look.records.structure import Output, Ref
from mo_loop.text.scanner import quoted, unquoted

Shape = list[int | str] | None
"""Numbers, names of symbols and "?"; None for an unknown rank."""

_MARKS = re.compile('[],"[]')

_DIM = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^",])+')
"""A dimension in a shape: a quoted symbol can hold commas."""


@dataclass
class TensorPort:
    """An input or output. `type` is an element type, or text such as "seq(f32[?])" for a value that is not a tensor."""

    name: str
    type: str = "?"
    shape: Shape = None

    def __str__(self) -> str:
        if "(" in self.type:
            return self.type
        return self.type + ("[...]" if self.shape is None else shown_dims(self.shape))

    @property
    def is_known(self) -> bool:
        """Whether anything is known of the type."""
        return self.type != "?" or self.shape is not None


def shown_dims(shape: Iterable[object]) -> str:
    """Dimensions as text; a symbol is quoted if it holds the marks of a shape."""
    texts = map(str, shape)
    return f"[{','.join([quoted(text) if _MARKS.search(text) else text for text in texts])}]"


def tensor_name(ref: Ref | None) -> str:
    """The name of a tensor; of one without a name that of its node, with the number of the output where there are
    several."""
    if ref is None:
        return ""
    item, place = ref
    names = item.outputs[place].names if place < len(item.outputs) else ()
    return names[0] if names else f"{item.label}:{place}" if len(item.outputs) > 1 else item.label


def tensor_port(ref: Ref | None) -> TensorPort:
    """A tensor with its type; without a name if there is none."""
    if ref is None:
        return TensorPort("")
    known = ref.item.outputs[ref.output] if ref.output < len(ref.item.outputs) else Output()
    return port_of(tensor_name(ref), known.dtype, known.shape)


def port_of(name: str, dtype: str, shape: str) -> TensorPort:
    """A value of an element type and of dimensions in brackets, both as a Structure has them; "" is not known."""
    return TensorPort(name, dtype or "?", _dims(shape) if shape else None)


def _dims(shape: str) -> Shape:
    """The dimensions in a text such as `[2,"N, M",4]`; None for an unknown rank."""
    inner = shape[1:-1]
    return None if inner == "..." else list(map(_dim, _DIM.findall(inner)))


def _dim(text: str) -> int | str:
    if text.isascii() and text.isdecimal() and len(text) < 20:
        return int(text)
    return unquoted(text) if len(text) > 1 and text[0] == text[-1] == '"' else text
