"""Element types in one table for ONNX, numpy and the IR, and the types of values.

>>> from mo_loop.graph.types import f32, from_onnx
>>> f32.precision, f32.numpy.itemsize, from_onnx(1) is f32
('FP32', 4, True)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np

from mo_loop.errors import UnsupportedError
from mo_loop.graph.dimension import Dimension
from mo_loop.graph.shape import Shape, show

KNOWN_LIMIT = 64
"""The largest number of elements that `TensorType.known` tracks."""


@dataclass(frozen=True, eq=False)
class ElementType:
    """One element type. Instances are unique, so `is` and `==` agree.

    `name` is the IR's element_type, `precision` the IR's port precision (both None if the IR has no such type),
    `onnx` the number in TensorProto.DataType, `bits` the size of one element as stored (0 for strings).
    """

    name: str
    precision: str | None
    onnx: int
    bits: int
    kind: str  # "bool", "int", "uint", "float", "complex" or "string"
    numpy_name: str = field(repr=False)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return _of_name, (self.name, self.precision)  # a copy would not be equal

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The numpy type of an array of such elements (one element for each cell, also for 4-bit types)."""
        if self.numpy_name.startswith("ml_dtypes."):
            import ml_dtypes

            return np.dtype(getattr(ml_dtypes, self.numpy_name.removeprefix("ml_dtypes.")))
        return np.dtype(self.numpy_name)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    def size_of(self, count: int) -> int:
        """Bytes that `count` elements take in a file; sub-byte types are packed."""
        return (count * self.bits + 7) // 8


def _t(name: str, precision: str | None, onnx: int, bits: int, kind: str, numpy_name: str) -> ElementType:
    return ElementType(name, precision, onnx, bits, kind, numpy_name)


f32 = _t("f32", "FP32", 1, 32, "float", "float32")
u8 = _t("u8", "U8", 2, 8, "uint", "uint8")
i8 = _t("i8", "I8", 3, 8, "int", "int8")
u16 = _t("u16", "U16", 4, 16, "uint", "uint16")
i16 = _t("i16", "I16", 5, 16, "int", "int16")
i32 = _t("i32", "I32", 6, 32, "int", "int32")
i64 = _t("i64", "I64", 7, 64, "int", "int64")
string = _t("string", "STRING", 8, 0, "string", "object")
boolean = _t("boolean", "BOOL", 9, 8, "bool", "bool")
f16 = _t("f16", "FP16", 10, 16, "float", "float16")
f64 = _t("f64", "FP64", 11, 64, "float", "float64")
u32 = _t("u32", "U32", 12, 32, "uint", "uint32")
u64 = _t("u64", "U64", 13, 64, "uint", "uint64")
c64 = _t("c64", None, 14, 64, "complex", "complex64")
c128 = _t("c128", None, 15, 128, "complex", "complex128")
bf16 = _t("bf16", "BF16", 16, 16, "float", "ml_dtypes.bfloat16")
f8e4m3 = _t("f8e4m3", "F8E4M3", 17, 8, "float", "ml_dtypes.float8_e4m3fn")
f8e4m3fnuz = _t("f8e4m3fnuz", None, 18, 8, "float", "ml_dtypes.float8_e4m3fnuz")
f8e5m2 = _t("f8e5m2", "F8E5M2", 19, 8, "float", "ml_dtypes.float8_e5m2")
f8e5m2fnuz = _t("f8e5m2fnuz", None, 20, 8, "float", "ml_dtypes.float8_e5m2fnuz")
u4 = _t("u4", "U4", 21, 4, "uint", "ml_dtypes.uint4")
i4 = _t("i4", "I4", 22, 4, "int", "ml_dtypes.int4")
f4e2m1 = _t("f4e2m1", "F4E2M1", 23, 4, "float", "ml_dtypes.float4_e2m1fn")
f8e8m0 = _t("f8e8m0", "F8E8M0", 24, 8, "float", "ml_dtypes.float8_e8m0fnu")
u2 = _t("u2", "U2", 25, 2, "uint", "ml_dtypes.uint2")
i2 = _t("i2", None, 26, 2, "int", "ml_dtypes.int2")

ALL: tuple[ElementType, ...] = (
    f32, u8, i8, u16, i16, i32, i64, string, boolean, f16, f64, u32, u64, c64, c128, bf16,
    f8e4m3, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, u4, i4, f4e2m1, f8e8m0, u2, i2,
)

BY_NAME = {each.name: each for each in ALL}
BY_IR_NAME = {each.name: each for each in ALL if each.precision}
"""The element types that the IR has."""


@cache
def foreign(name: str, precision: str) -> ElementType:
    """A placeholder for an element type of an IR that is unknown here."""
    return ElementType(name, precision, 0, 8, "foreign", "object")


def _of_name(name: str, precision: Any) -> ElementType:
    """The element type of a name, for pickle."""
    return BY_NAME.get(name) or foreign(name, precision)


BY_ONNX = {each.onnx: each for each in ALL}
BY_PRECISION = {each.precision: each for each in ALL if each.precision}
_BY_NUMPY: dict[np.dtype[Any], ElementType] = {}


def from_onnx(number: int) -> ElementType:
    """The element type of a TensorProto.DataType number; UnsupportedError for an unknown one."""
    try:
        return BY_ONNX[number]
    except KeyError:
        raise UnsupportedError(f"ONNX element type number {number} is unknown", code="ML301") from None


def from_numpy(dtype: Any) -> ElementType:
    """The element type of a numpy type (Python's str and numpy's text types are strings)."""
    dtype = np.dtype(dtype)
    if dtype.kind in "USOT":
        return string
    if not _BY_NUMPY:
        _BY_NUMPY.update((each.numpy, each) for each in ALL if each is not string)
    try:
        return _BY_NUMPY[dtype]
    except KeyError:
        raise UnsupportedError(f"numpy type {dtype} has no element type", code="ML301") from None


def name_of(dtype: Any) -> str:
    """The name of the element type of a numpy type; that of numpy if there is no such element type."""
    try:
        return from_numpy(dtype).name
    except UnsupportedError:
        return str(np.dtype(dtype).name)


class TensorType:
    """The type of a tensor: element type, shape, and the values themselves if they are few integers.

    `dtype` is None if nothing is known (the output of a node that could not be translated), `shape` None if the
    rank is unknown. `known` is None or an object array of at most `KNOWN_LIMIT` ints and Dims (bools are 0 and 1), so
    that ShapeOf -> Gather -> Concat -> Reshape chains are followed. Immutable.
    """

    __slots__ = ("_integers", "dtype", "known", "shape")

    def __init__(self, dtype: ElementType | None, shape: Shape, known: np.ndarray[Any, Any] | None = None) -> None:
        self.dtype = dtype
        self.shape = shape
        # numpy turns arrays of rank 0 into their only item at every operation
        self.known = known if known is None or isinstance(known, np.ndarray) else known_array([known], ())

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def dims(self) -> tuple[Dimension, ...]:
        """The shape. UnsupportedError if the rank is not known."""
        if self.shape is None:
            raise UnsupportedError("the rank of a tensor is unknown", code="ML314")
        return self.shape

    @property
    def known_rank(self) -> int:
        """The rank. UnsupportedError if it is not known."""
        return len(self.dims)

    @property
    def integers(self) -> tuple[int, ...] | None:
        """All values in row-major order if each of them is known as an int, else None."""
        if self.known is None:
            return None
        try:
            return self._integers
        except AttributeError:  # not read before
            flat = tuple(self.known.flat)
            self._integers: tuple[int, ...] | None = flat if all(isinstance(item, int) for item in flat) else None
            return self._integers

    def with_shape(self, shape: Shape) -> TensorType:
        return TensorType(self.dtype, shape)

    def with_size(self, axis: int, size: Dimension) -> TensorType:
        """The type of a tensor of another size along an axis from the front."""
        return TensorType(self.dtype, (*self.dims[:axis], size, *self.dims[axis + 1 :]))

    def with_dtype(self, dtype: ElementType) -> TensorType:
        return TensorType(dtype, self.shape)

    def without_known(self) -> TensorType:
        return self if self.known is None else TensorType(self.dtype, self.shape)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TensorType) or self.dtype is not other.dtype or self.shape != other.shape:
            return False
        if self.known is None or other.known is None:
            return self.known is other.known
        return self.known.shape == other.known.shape and bool((self.known == other.known).all())

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape))

    def __reduce__(self) -> Any:
        return "UNKNOWN" if self is UNKNOWN else (TensorType, (self.dtype, self.shape, self.known))

    def __repr__(self) -> str:
        return f"{self.dtype or '?'}{show(self.shape)}"


class _NoTensor:
    """The attributes of `TensorType` for a value that is not a tensor: nothing is known."""

    dtype: ClassVar[None] = None
    shape: ClassVar[None] = None
    known: ClassVar[None] = None
    integers: ClassVar[None] = None


@dataclass(frozen=True)
class SequenceType(_NoTensor):
    """The type of a sequence: the common type of its elements, and their number (None: unknown).

    For length 0, only the element type of `element` has a meaning. A dimension with a fresh symbol can differ between
    two elements.
    """

    element: TensorType
    length: Dimension | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the sequence is known to be empty; then `element` has no shape."""
        return self.length == 0

    def without_known(self) -> SequenceType:
        return self

    def __repr__(self) -> str:
        return f"seq({self.element}{'' if self.length is None else f', {self.length}'})"


@dataclass(frozen=True)
class OptionalType(_NoTensor):
    """A tensor or a sequence that may be absent; `present` is None if it is known only at run time."""

    element: TensorType | SequenceType
    present: bool | None = None

    def without_known(self) -> OptionalType:
        return self

    def __repr__(self) -> str:
        return f"optional({self.element}{'' if self.present is None else ', here' if self.present else ', absent'})"


UNKNOWN = TensorType(None, None)


def known_array(values: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An object array for `TensorType.known` from a flat sequence of ints and Dims."""
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)


def tensor_of_known(dtype: ElementType, known: Any) -> TensorType:
    """The type of a tensor whose values are the ints and Dims in the nested list or object array `known`."""
    if not isinstance(known, np.ndarray):
        known = known_array(list(known), (len(known),)) if isinstance(known, list | tuple) else known_array([known], ())
    return TensorType(dtype, known.shape, known if known.size <= KNOWN_LIMIT else None)
