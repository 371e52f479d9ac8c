"""The ranges of attributes that are numbers, declared in the signatures of translators:

    def conv(x, w, b=None, *, group: Positive = 1, kernel_shape: Positives | None = None): ...

`Translator.ranges` holds them, and the front end refuses a node whose attribute is outside, before the function runs.
The largest integer is 2^31 - 1: the runtime computes sizes and indices in 32 bits. Floats are finite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from mo_loop.errors import TypeError_

MOST = 2**31 - 1
MOST_PARTS = 2**12
MOST_OUTPUTS = 2**16

Positive: TypeAlias = int
NotNegative: TypeAlias = int
NotNegativeOrNone: TypeAlias = int
"""A number that is not negative, or -1 for none."""
Few: TypeAlias = int
"""A number of parts that become nodes of their own, at least 1."""
FewOrNone: TypeAlias = int
Outputs: TypeAlias = int
"""A number of outputs of the node."""
Index: TypeAlias = int
"""An integer of 32 bits, which may be negative."""
AboveZero: TypeAlias = float
"""A normal number of f32 above 0."""
Positives: TypeAlias = tuple[int, ...]
Fews: TypeAlias = tuple[int, ...]
NotNegatives: TypeAlias = tuple[int, ...]
Indices: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Range:
    """The numbers from `least` to `most`; `kind` is the annotation of the attribute without a range."""

    kind: str
    least: float
    most: float = MOST

    def require(self, name: str, value: Any) -> None:
        """Raise TypeError_ unless the number, or each of the numbers, is in the range."""
        for each in value if isinstance(value, tuple) else (value,):
            if not self.least <= each <= self.most:
                raise TypeError_(
                    f"the attribute {name!r} is {each}, and its range is {self.least} to {self.most}", code="ML236"
                )


RANGES = {
    "Positive": Range("int", 1),
    "NotNegative": Range("int", 0),
    "NotNegativeOrNone": Range("int", -1),
    "Few": Range("int", 1, MOST_PARTS),
    "FewOrNone": Range("int", 0, MOST_PARTS),
    "Fews": Range("tuple[int, ...]", 0, MOST_PARTS),
    "Outputs": Range("int", 1, MOST_OUTPUTS),
    "Index": Range("int", -MOST),
    "AboveZero": Range("float", 2.0**-126, 2.0**127),
    "Positives": Range("tuple[int, ...]", 1),
    "NotNegatives": Range("tuple[int, ...]", 0),
    "Indices": Range("tuple[int, ...]", -MOST),
}
"""Annotation -> its range."""


def require_parts(count: int, what: str) -> None:
    """Raise TypeError_ if several attributes together ask for more parts than one of them may."""
    if count > MOST_PARTS:
        raise TypeError_(f"{what} are {count} parts, and at most {MOST_PARTS} are translated", code="ML236")


def kind_and_range(annotation: Any) -> tuple[Any, Range | None]:
    """The annotation of an attribute without its range, and the range if it has one."""
    if not isinstance(annotation, str):
        return annotation, None
    text, separator, rest = annotation.partition(" | ")
    found = RANGES.get(text)
    return (annotation, None) if found is None else (f"{found.kind}{separator}{rest}", found)
