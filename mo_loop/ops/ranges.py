"""The ranges of attributes that are numbers and the forms of inputs (their ranks and kinds), as annotations, and the
element types of inputs (the class keyword `types` of operations):

    class Split(Op, opset=1): num_splits: Outputs
    def conv(x: AtLeast3, w, b=None, *, group: Positive = 1, kernel_shape: Positives | None = None): ...
    def sparse_attention(query: Rank3, key=None, ..., total_sequence_length: Needed | One = None): ...

An operation refuses an attribute outside its range. For a translator, also of an extension, the front end refuses the
node before the function runs. The largest integer is 2^31 - 1: the runtime computes sizes and indices in 32 bits.
Floats are finite. An input of unknown rank passes; code that needs the rank refuses it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeAlias, Union, get_args, get_origin

from mo_loop.errors import ModelError, TypeError_
from mo_loop.graph.shape import Shape, is_static
from mo_loop.graph.types import ALL, ElementType, bf16, f16, f32, f64, i8, i32, i64, u8

MOST = 2**31 - 1
MOST_PARTS = 2**12
MOST_OUTPUTS = 2**16


@dataclass(frozen=True)
class Range:
    """The numbers from `least` to `most`."""

    least: float
    most: float = MOST

    def require(self, name: str, value: Any) -> None:
        """Raise TypeError_ unless the number, or each of the numbers, is in the range."""
        for each in value if isinstance(value, tuple) else (value,):
            if not self.least <= each <= self.most:
                raise TypeError_(
                    f"the attribute {name!r} is {each}, and its range is {self.least} to {self.most}", code="ML236"
                )


Positive: TypeAlias = Annotated[int, Range(1)]
NotNegative: TypeAlias = Annotated[int, Range(0)]
NotNegativeOrNone: TypeAlias = Annotated[int, Range(-1)]
"""A number that is not negative, or -1 for none."""
Few: TypeAlias = Annotated[int, Range(1, MOST_PARTS)]
"""A number of parts that become nodes of their own, at least 1."""
FewOrNone: TypeAlias = Annotated[int, Range(0, MOST_PARTS)]
Outputs: TypeAlias = Annotated[int, Range(1, MOST_OUTPUTS)]
"""A number of outputs of the node."""
Index: TypeAlias = Annotated[int, Range(-MOST)]
"""An integer of 32 bits, which may be negative."""
AboveZero: TypeAlias = Annotated[float, Range(2.0**-126, 2.0**127)]
"""A normal number of f32 above 0."""
Positives: TypeAlias = Annotated[tuple[int, ...], Range(1)]
Fews: TypeAlias = Annotated[tuple[int, ...], Range(0, MOST_PARTS)]
NotNegatives: TypeAlias = Annotated[tuple[int, ...], Range(0)]
Indices: TypeAlias = Annotated[tuple[int, ...], Range(-MOST)]


def require_parts(count: int, what: str) -> None:
    """Raise TypeError_ if several attributes together require more parts than one of them may."""
    if count > MOST_PARTS:
        raise TypeError_(f"{what} are {count} parts, and at most {MOST_PARTS} are translated", code="ML236")


@dataclass(frozen=True)
class Form:
    """The form that an input must have. `ranks` is empty if every rank from `least` on is allowed."""

    ranks: tuple[int, ...] = ()
    least: int = 0
    is_one: bool = False
    is_needed: bool = False
    is_integer: bool = False

    def __or__(self, other: "Form") -> "Form":
        return Form(
            self.ranks + other.ranks, max(self.least, other.least), self.is_one or other.is_one,
            self.is_needed or other.is_needed, self.is_integer or other.is_integer,
        )

    def require(self, name: str, value: Any) -> None:
        """Raise ModelError if the input is absent and needed, and TypeError_ if it has another form."""
        if value is None:
            if self.is_needed:
                raise ModelError(f"the input {name!r} is absent", code="ML227")
            return
        is_other = self.is_integer and value.dtype is not None and not value.dtype.is_integer
        wanted = "integers" if is_other else self._lacking(value.shape)
        if wanted:
            raise TypeError_(f"the input {name!r} is {value.type}, and must be {wanted}", code="ML235")

    def _lacking(self, shape: Shape) -> str:
        """The form that a tensor of this shape lacks, as text; empty if it has the form."""
        if shape is None:
            return ""
        if self.ranks and len(shape) not in self.ranks:
            return f"of rank {' or '.join(map(str, self.ranks))}"
        if len(shape) < self.least:
            return f"of rank {self.least} or more"
        return "one number" if self.is_one and is_static(shape) and any(dim != 1 for dim in shape) else ""


Scalar: TypeAlias = Annotated[Any, Form((0,))]
Vector: TypeAlias = Annotated[Any, Form((1,))]
Matrix: TypeAlias = Annotated[Any, Form((2,))]
Rank3: TypeAlias = Annotated[Any, Form((3,))]
Rank4: TypeAlias = Annotated[Any, Form((4,))]
Rank5: TypeAlias = Annotated[Any, Form((5,))]
AtLeast1: TypeAlias = Annotated[Any, Form(least=1)]
AtLeast2: TypeAlias = Annotated[Any, Form(least=2)]
AtLeast3: TypeAlias = Annotated[Any, Form(least=3)]
One: TypeAlias = Annotated[Any, Form(is_one=True)]
"""A tensor of one element, of any rank."""
Integers: TypeAlias = Annotated[Any, Form(is_integer=True)]
"""Numbers of an integer type, of any rank."""
Needed: TypeAlias = Annotated[Any, Form(is_needed=True)]
"""An input that the schema calls optional, and that cannot be absent."""


class AsArray:
    """The mark of an attribute whose numbers are read as an array of 64 bits: long lists do not become tuples."""


Ints: TypeAlias = tuple[int, ...]
Floats: TypeAlias = tuple[float, ...]
Strings: TypeAlias = tuple[str, ...]
IntArray: TypeAlias = Annotated[tuple[int, ...], AsArray()]
FloatArray: TypeAlias = Annotated[tuple[float, ...], AsArray()]


def kinds_of(annotation: Any) -> tuple[Any, ...]:
    """The types that an annotation names, without ranges and forms; NoneType is one of them."""
    return tuple(get_args(each)[0] if get_origin(each) is Annotated else each for each in _parts(annotation))


def text_of_kinds(kinds: Iterable[Any]) -> str:
    """Types as in an annotation: names of classes without their modules."""
    names = ("None" if each is NoneType else each if isinstance(each, str) else _text(each) for each in kinds)
    return " | ".join(names)


def _text(kind: Any) -> str:
    return str(kind) if get_args(kind) else str(getattr(kind, "__name__", kind))


def range_of(annotation: Any) -> Range | None:
    """The range that the annotation of an attribute declares."""
    return next((each for each in _declared(annotation) if isinstance(each, Range)), None)


def is_array(annotation: Any) -> bool:
    """Whether the annotation of an attribute is that of an array."""
    return any(isinstance(each, AsArray) for each in _declared(annotation))


def form_of(annotation: Any) -> Form | None:
    """The form that the annotation of an input declares."""
    forms = [each for each in _declared(annotation) if isinstance(each, Form)]
    return reduce(or_, forms) if forms else None


def _declared(annotation: Any) -> list[Any]:
    marked = (each for each in _parts(annotation) if get_origin(each) is Annotated)
    return [mark for each in marked for mark in each.__metadata__]


def _parts(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


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
