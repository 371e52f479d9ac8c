"""The forms of inputs, declared in the signatures of translators:

    def rotary_embedding(x: Rank3 | Rank4, position_ids: Scalar | Vector, cos_cache: Matrix, ...): ...
    def sparse_attention(query: Rank3, key=None, ..., total_sequence_length: Needed | One = None): ...

`Translator.forms` holds them, and the front end refuses a node whose inputs have another form, before the function
runs. An input of unknown rank has every rank; what needs to know its rank refuses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from mo_loop.errors import ModelError, TypeError_
from mo_loop.graph import Value
from mo_loop.graph.shape import Shape, is_static

Scalar: TypeAlias = Any
Vector: TypeAlias = Any
Matrix: TypeAlias = Any
Rank3: TypeAlias = Any
Rank4: TypeAlias = Any
Rank5: TypeAlias = Any
AtLeast1: TypeAlias = Any
AtLeast2: TypeAlias = Any
AtLeast3: TypeAlias = Any
One: TypeAlias = Any
"""A tensor of one element, of any rank."""
Integers: TypeAlias = Any
"""Numbers of an integer type, of any rank."""
Needed: TypeAlias = Any
"""An input that the schema calls optional, and that cannot be absent."""

_RANKS = {"Scalar": 0, "Vector": 1, "Matrix": 2, "Rank3": 3, "Rank4": 4, "Rank5": 5}
_LEAST = {"AtLeast1": 1, "AtLeast2": 2, "AtLeast3": 3}


@dataclass(frozen=True)
class Form:
    """What an input must be. `ranks` is empty if every rank from `least` on is right."""

    place: int
    name: str
    ranks: tuple[int, ...] = ()
    least: int = 0
    is_one: bool = False
    is_needed: bool = False
    is_integer: bool = False

    def require(self, inputs: Sequence[Value | None]) -> None:
        """Raise ModelError if the input is absent and needed, and TypeError_ if it has another form."""
        value = inputs[self.place] if self.place < len(inputs) else None
        if value is None:
            if self.is_needed:
                raise ModelError(f"the input {self.name!r} is absent", code="ML227")
            return
        is_other = self.is_integer and value.dtype is not None and not value.dtype.is_integer
        wanted = "integers" if is_other else self._lacking(value.shape)
        if wanted:
            raise TypeError_(f"the input {self.name!r} is {value.type}, and must be {wanted}", code="ML235")

    def _lacking(self, shape: Shape) -> str:
        """What a tensor of this shape is not; empty if it has the form."""
        if shape is None:
            return ""
        if self.ranks and len(shape) not in self.ranks:
            return f"of rank {' or '.join(map(str, self.ranks))}"
        if len(shape) < self.least:
            return f"of rank {self.least} or more"
        return "one number" if self.is_one and is_static(shape) and any(dim != 1 for dim in shape) else ""


def form_of(place: int, name: str, annotation: Any) -> Form | None:
    """The form that an annotation declares for the input number `place`; None if it declares none."""
    words = annotation.split(" | ") if isinstance(annotation, str) else ()
    ranks = tuple(_RANKS[word] for word in words if word in _RANKS)
    least = max((_LEAST[word] for word in words if word in _LEAST), default=0)
    form = Form(place, name, ranks, least, "One" in words, "Needed" in words, "Integers" in words)
    return None if form == Form(place, name) else form
