"""Prints and parses the data of constants: nested lists, one value for all elements, or a seed."""

import math
import re
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from mo_loop.graph.tensor import ArrayTensor, Tensor
from mo_loop.graph.types import BY_NAME, KNOWN_LIMIT, ElementType, boolean, c64, f32, i64, string
from mo_loop.ops.control import Control
from mo_loop.text.spelling import STRING, WORD, Scanner, parse_element_type, quoted

INLINE_LIMIT = 8
"""The largest number of elements of a constant that is printed among the inputs of its only consumer."""

_UNIFORM_LIMIT = 1 << 16  # elements; larger constants are not tested for having one value
_DIGEST_LIMIT = 1 << 16  # bytes; the digest of larger constants is that of a sample

NUMBER = re.compile(r"-?(?:inf\b|\d+(?:\.(?!\.)\d*)?(?:[eE][+-]?\d+)?)")
SEED = re.compile(r"\w+")
_DEFAULT = {"int": i64, "float": f32, "bool": boolean, "string": string, "complex": c64, "empty": f32}


class SeededTensor(ArrayTensor):
    """Values made from a seed; the tensor keeps the seed, and is printed as the seed."""

    __slots__ = ("seed",)

    def __init__(self, seed: str, dtype: ElementType, shape: tuple[int, ...]) -> None:
        super().__init__(_filler(seed, dtype, shape), dtype)
        self.seed = seed


class Literal(NamedTuple):
    """Values in row-major order; `kind` is a key of the table of default types, `dtype` that in the text."""

    values: list[Any]
    shape: tuple[int, ...]
    kind: str
    dtype: ElementType | None = None

    def tensor(self, implied: ElementType | None = None) -> Tensor:
        """The values as data. Raises ValueError or OverflowError if they are not of the type."""
        dtype = self.dtype or implied or _DEFAULT[self.kind]
        return ArrayTensor(_array(self.values, dtype, self.kind).reshape(self.shape), dtype)


# -- types that need not be written


def kind_of(dtype: ElementType, size: int) -> str:
    """The kind of literal that data of a type is written as."""
    return "empty" if not size else "int" if dtype.kind == "uint" else dtype.kind


def implied_type(cls: Any, port: int, kind: str, types: Sequence[Any]) -> ElementType:
    """The element type of a literal without one, at input `port` of an operation whose other inputs have `types`."""
    if port in cls.index_ports and kind in ("int", "empty"):
        return i64
    fitting = {"int": ("int", "uint", "float"), "float": ("float",), "complex": ("complex",)}.get(kind, ())
    if not issubclass(cls, Control):
        for type_ in types:
            dtype: ElementType | None = getattr(type_, "dtype", None)
            if dtype is not None and (kind == "empty" or dtype.kind in fitting):
                return dtype
    return _DEFAULT[kind]


# -- printing


def show_data(tensor: Tensor, limit: int) -> str:
    """The text after `Constant`; the type that follows it gives shape and element type."""
    if tensor.dtype.kind in ("int", "uint", "bool"):
        limit = max(limit, KNOWN_LIMIT)  # inference may depend on the values
    if tensor.size <= limit:
        return show_array(tensor)
    if isinstance(tensor, SeededTensor):
        return f"seed({tensor.seed})"
    if tensor.size <= _UNIFORM_LIMIT:
        flat = tensor.array().reshape(-1)
        if _is_uniform(flat):
            return _item_speller(tensor.dtype)(flat[0])
    return f"seed({digest(tensor)})"


def show_array(tensor: Tensor) -> str:
    """All values, nested like the shape; `[]` for an empty shape that nesting cannot express."""
    if not tensor.size:
        return "[]"
    shown = [*map(_item_speller(tensor.dtype), tensor.array().reshape(-1))]
    for size in reversed(tensor.shape):  # the innermost lists first
        shown = [f"[{', '.join(shown[start : start + size])}]" for start in range(0, len(shown), size)]
    return shown[0]


def show_inline(tensor: Tensor, implied: Callable[[str], ElementType]) -> str | None:
    """Data as an input, None if the constant needs a statement of its own."""
    if tensor.size > INLINE_LIMIT or (not tensor.size and tensor.shape != (0,)) or isinstance(tensor, SeededTensor):
        return None
    same = implied(kind_of(tensor.dtype, tensor.size)) is tensor.dtype
    return show_array(tensor) if same else f"{tensor.dtype} {show_array(tensor)}"


def digest(tensor: Tensor) -> str:
    """A short hexadecimal digest of the content; of a sample if the content is large."""
    whole = blake2b(digest_size=6)
    whole.update(f"{tensor.dtype}{tensor.shape}".encode())
    if tensor.nbytes > _DIGEST_LIMIT:
        whole.update(tensor.sample())
        return whole.hexdigest()
    for block in tensor.blocks():
        whole.update(block)
    return whole.hexdigest()


def _item_speller(dtype: ElementType) -> Callable[[Any], str]:
    if dtype.kind == "bool":
        return lambda item: "true" if item else "false"
    if dtype.kind == "string":
        return lambda item: quoted(item.decode(errors="surrogateescape") if isinstance(item, bytes) else str(item))
    if dtype.kind == "complex":
        real = np.float32 if dtype.bits == 64 else np.float64
        return lambda item: f"({_real(real(item.real))}, {_real(real(item.imag))})"
    if dtype.is_float:
        return _real if dtype.name in ("f16", "f32", "f64") else lambda item: _real(np.float32(item))
    return lambda item: str(int(item))


def _real(item: Any) -> str:
    """The shortest decimal that gives the same float of its width."""
    return str(item.item()) if item.dtype == np.float64 else str(item)


def _is_uniform(flat: np.ndarray[Any, Any]) -> bool:
    if flat.dtype == object:
        return all(item == flat[0] for item in flat)
    cells = np.ascontiguousarray(flat).view(np.uint8).reshape(len(flat), -1)
    return bool((cells == cells[0]).all())


# -- parsing


def sees_literal(scanner: Scanner) -> bool:
    """Whether a literal comes next."""
    if scanner.sees("[") or scanner.sees("(") or scanner.sees(NUMBER) or scanner.sees(STRING):
        return True
    word = WORD.match(scanner.text, scanner.position)
    return word is not None and (word.group() in BY_NAME or word.group() in ("true", "false", "nan", "inf"))


def parse_literal(scanner: Scanner) -> Literal:
    """Take a literal, with or without an element type before it."""
    word = WORD.match(scanner.text, scanner.position)
    dtype = parse_element_type(scanner) if word is not None and word.group() in BY_NAME else None
    items: list[Any] = []
    shape = _items(scanner, items)
    kinds = {_kind(item) for item in items}
    if kinds == {"int", "float"}:
        kinds = {"float"}
    if len(kinds) > 1:
        raise scanner.fail(f"a literal of {' and '.join(sorted(kinds))}")
    return Literal(items, shape, kinds.pop() if kinds else "empty", dtype)


def parse_data(scanner: Scanner) -> tuple[Literal | None, str]:
    """Take the text after `Constant`: a literal, or a seed."""
    if not scanner.accept("seed"):
        return parse_literal(scanner), ""
    scanner.expect("(")
    seed = scanner.require(SEED, "a seed")
    scanner.expect(")")
    return None, seed


def shaped(scanner: Scanner, literal: Literal | None, seed: str, type_: Any, line: int) -> Tensor:
    """The data of a Constant statement, converted to the type in the statement (None: that of the literal)."""
    if type_ is None:
        if literal is None:
            raise scanner.fail("a seed needs a type", line)
        return literal.tensor()
    shape = type_.shape
    if type_.dtype is None or shape is None or not all(isinstance(dim, int) for dim in shape):
        raise scanner.fail(f"a constant cannot be of type {type_}", line)
    if literal is None:
        return SeededTensor(seed, type_.dtype, shape)
    if literal.dtype not in (None, type_.dtype):
        raise scanner.fail(f"the literal is of {literal.dtype}, the constant of {type_.dtype}", line)
    if literal.shape == () and shape:
        return ArrayTensor(np.broadcast_to(literal.tensor(type_.dtype).array(), shape), type_.dtype)
    if literal.shape != shape and (len(literal.shape) != 1 or literal.shape[0] != math.prod(shape)):
        raise scanner.fail(f"a literal of shape {list(literal.shape)} for a constant of {type_}", line)
    return ArrayTensor(literal.tensor(type_.dtype).array().reshape(shape), type_.dtype)


def _items(scanner: Scanner, found: list[Any]) -> tuple[int, ...]:
    """Take a scalar or nested lists; returns their shape."""
    if not scanner.accept("["):
        found.append(_item(scanner))
        return ()
    shapes: list[tuple[int, ...]] = []
    while not scanner.accept("]"):
        if shapes:
            scanner.expect(",")
        shapes.append(_items(scanner, found))
        if shapes[-1] != shapes[0]:
            raise scanner.fail("the lists of a literal differ in length")
    return (len(shapes), *(shapes[0] if shapes else ()))


def _item(scanner: Scanner) -> Any:
    text = scanner.string()
    if text is not None:
        return text
    if scanner.accept("("):
        real = float(scanner.require(NUMBER, "a number"))
        scanner.expect(",")
        imaginary = float(scanner.require(NUMBER, "a number"))
        scanner.expect(")")
        return complex(real, imaginary)
    return parse_scalar(scanner)


def parse_scalar(scanner: Scanner) -> bool | int | float:
    """Take `true`, `false`, an integer or a float."""
    for word, value in (("true", True), ("false", False), ("nan", math.nan)):
        if scanner.accept(word):
            return value
    number = scanner.require(NUMBER, "a number")
    return int(number) if re.fullmatch(r"-?\d+", number) else float(number)


def _kind(item: Any) -> str:
    return {bool: "bool", int: "int", float: "float", str: "string", complex: "complex"}[type(item)]


def _array(values: list[Any], dtype: ElementType, kind: str) -> np.ndarray[Any, Any]:
    allowed = {"float": ("int", "float"), "uint": ("int",), "complex": ("int", "float", "complex")}
    if kind != "empty" and kind not in allowed.get(dtype.kind, (dtype.kind,)):
        raise ValueError(f"a literal of {kind} is not {dtype}")
    if dtype is string:
        return np.array([_encoded(item) for item in values], object)
    if dtype.is_integer:
        least = -(1 << (dtype.bits - 1)) if dtype.kind == "int" else 0
        most = least + (1 << dtype.bits) - 1
        outside = [item for item in values if not least <= item <= most]
        if outside:
            raise ValueError(f"{outside[0]} is not {dtype}")
        return np.array(values, np.uint64 if dtype.name == "u64" else np.int64).astype(dtype.numpy)
    if dtype.kind in ("float", "complex"):
        with np.errstate(over="ignore"):
            return np.array(values, np.complex128 if dtype.kind == "complex" else np.float64).astype(dtype.numpy)
    return np.array(values, dtype.numpy)


def _encoded(text: str) -> str | bytes:
    try:
        text.encode()
    except UnicodeEncodeError:  # lone surrogates represent bytes that are not UTF-8
        return text.encode(errors="surrogateescape")
    return text


def _filler(seed: str, dtype: ElementType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Small values from RandomState, whose stream is the same in all versions of numpy."""
    source = np.random.RandomState(crc32(seed.encode()))
    if dtype is string:
        flat = np.array([f"s{number}" for number in source.randint(0, 1000, math.prod(shape))], object)
        return flat.reshape(shape)
    if dtype.kind in ("float", "complex"):
        values = source.standard_normal(shape)
        return (np.abs(values) if dtype.name == "f8e8m0" else values).astype(dtype.numpy)  # e8m0 has no sign
    return source.randint(0, 2 if dtype.kind == "bool" or dtype.bits == 2 else 8, shape).astype(dtype.numpy)
