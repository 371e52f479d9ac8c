"""Inputs of a model, generated from their types and roles.

    generator = Generator(model, known={"x": (1, 3, None, None)}, seed=0)
    feeds = generator.draw(0)                        # {"x": array, "steps": array(3)}

The sets differ: numbers are normally distributed or between 0 and 1, trip counts and conditions vary, and so do the
sizes of dynamic dimensions: several sizes, then 1, then others; dimensions with one name have one size, and a name such
as `past + 1` is computed. `zero` draws a set in which one dimension is 0. The same seed gives the same arrays.
"""

from __future__ import annotations

import ast
import operator
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.api import Model
from mo_loop.errors import InputError, UnsupportedError, error_of_numbers
from mo_loop.frontend.declared_types import type_from
from mo_loop.frontend.model import OnnxModel
from mo_loop.graph.types import ElementType, OptionalType, SequenceType, TensorType
from mo_loop.verification.given import input_names
from mo_loop.verification.isolated import IsolatedError
from mo_loop.verification.judge import brief
from mo_loop.verification.roles import AXIS, COUNT, INDEX, LENGTH, MASK, SCALE, SIZE, Role, roles

COUNTS = (3, 0, 1, 5, 2)
"""The trip counts of the sets, in turn."""

SIZES = ((2, 3, 4), (1,), (5, 2, 3), (4, 7, 2), (3,))
"""The sizes of dynamic dimensions in the sets, in turn; in one set the dimensions take them in turn."""

ITEMS = 3
"""The number of elements of a sequence."""

NO_ROLE = Role()

UNNAMED = "dimension "
"""The beginning of the names of dimensions that the model does not name."""

_WORDS = ("", "a", "Loop", "zero", "naïve")


@dataclass(frozen=True)
class Input:
    """An input: its element type, and its dimensions as sizes or names. A `sequence` has such tensors."""

    name: str
    dtype: ElementType
    dims: tuple[int | str, ...]
    role: Role
    is_sequence: bool = False

    @property
    def symbols(self) -> list[str]:
        """The names of the dynamic dimensions."""
        return [each for each in self.dims if isinstance(each, str)]


class Generator:
    """Draws sets of inputs for a model. `known` are the shapes that the IR declares, with None for unknown sizes."""

    def __init__(self, model: OnnxModel, known: Mapping[str, Sequence[int | None] | None], seed: int = 0) -> None:
        """Raises UnsupportedError for an input whose element type is not known."""
        needed = set(input_names(model))
        meant = roles(model)
        self._seed = seed
        entries = [entry for entry in model.proto.graph.input if entry.name in needed]
        self.inputs = [input_of(entry, known.get(entry.name), meant.get(entry.name, NO_ROLE)) for entry in entries]
        self._bound = {
            name: size for entry, each in zip(entries, self.inputs, strict=True)
            for name, size in zip(input_of(entry).dims, each.dims, strict=False)
            if isinstance(name, str) and isinstance(size, int) and not name.startswith(UNNAMED)
        }  # fmt: skip
        """Sizes that the IR gives to dimensions of one input: they have them in the others too."""
        self.symbols = list(dict.fromkeys(name for each in self.inputs for name in each.symbols))
        """The dynamic dimensions that have sizes of their own."""
        self.symbols = [name for name in self.symbols if expression_in(name) is None]

    def draw(self, number: int, *, careful: bool = False) -> dict[str, Any]:
        """The set of this number. With `careful`, dynamic dimensions are equal and integers are 0 or 1."""
        equal = dict.fromkeys(self.symbols, SIZES[number % len(SIZES)][0]) | self._bound
        chosen = equal if careful else self.sizes(number)
        return self._drawn(number, chosen, careful)

    def zero(self, number: int, symbol: str) -> dict[str, Any]:
        """The set of this number with size 0 of one dynamic dimension."""
        return self._drawn(number, self.sizes(0) | {symbol: 0}, False)

    def _drawn(self, number: int, sizes: dict[str, int], careful: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for each in self.inputs:
            shape = tuple(dim if isinstance(dim, int) else size_of(dim, sizes) for dim in each.dims)
            random = self._random(each, number)
            with possible(each.name):
                items = [_values(each, shape, number, random, careful) for _ in range(ITEMS if each.is_sequence else 1)]
            found[each.name] = items if each.is_sequence else items[0]
        return found

    def sizes(self, number: int) -> dict[str, int]:
        """A size for each dynamic dimension, as in the set of this number."""
        sizes = SIZES[number % len(SIZES)]
        return {name: sizes[place % len(sizes)] for place, name in enumerate(self.symbols)} | self._bound

    def array(self, each: Input, shape: tuple[int, ...], number: int) -> np.ndarray:
        """A value of an input in a shape that the caller chose."""
        with possible(each.name):
            return _values(each, shape, number, self._random(each, number), False)

    def _random(self, each: Input, number: int) -> Any:
        return np.random.default_rng((self._seed, number, zlib.crc32(each.name.encode())))


@dataclass
class Accepted:
    """Generated sets that a runtime accepts, and what it gives for each; `missing` are the names of the others."""

    sets: list[tuple[str, dict[str, Any]]]
    expected: list[Any]
    missing: list[str]


def accepted(generator: Generator, count: int, run: Callable[[dict[str, Any]], Any]) -> Accepted:
    """`count` sets, and sets with a dimension of size 0. One that is refused is replaced by a more careful one.

    `run` raises IsolatedError for a set that the runtime refuses. InputError if it refuses all of them.
    """
    found = Accepted([], [], [])
    refusal = ""
    tried = [
        (f"generated {number}", [generator.draw(number), generator.draw(number, careful=True)])
        for number in range(count)
    ]
    tried += [(f"{symbol} = 0", [generator.zero(0, symbol)]) for symbol in generator.symbols[:2]]
    for name, candidates in tried:
        for feeds in candidates:
            try:
                found.expected.append(run(feeds))
            except IsolatedError as error:
                refusal = refusal or f"{name}: {brief(error)}"
                continue
            found.sets.append((name, feeds))
            break
        else:
            found.missing.append(name)
    if not found.sets:
        raise InputError(
            "no inputs could be generated that ONNX Runtime accepts", why=refusal,
            hint="give inputs: --inputs FILE.npz", code="ML203",
        )  # fmt: skip
    return found


# -- types and sizes


def shapes_of(converted: Model) -> dict[str, Sequence[int | None] | None]:
    """The shape of each input of the IR by all its names, with None for sizes that are not known."""
    found: dict[str, Sequence[int | None] | None] = {}
    for port in converted.inputs:
        shape = None if port.shape is None else tuple(dim if isinstance(dim, int) else None for dim in port.shape)
        found.update(dict.fromkeys((port.name, *port.names), shape))
    return found


def input_of(entry: Any, known: Sequence[int | None] | None = None, role: Role = NO_ROLE) -> Input:
    """The record of an entry of the model; `known` are the sizes that the IR declares."""
    type_ = type_from(entry.type, symbolic=True)
    if isinstance(type_, OptionalType):
        type_ = type_.element
    is_sequence = isinstance(type_, SequenceType)
    if is_sequence:
        type_ = type_.element
    if not isinstance(type_, TensorType) or type_.dtype is None:
        raise UnsupportedError(
            f"no values can be generated for the input {entry.name!r}", why="its element type is not declared",
            hint="give values: --inputs FILE.npz",
        )  # fmt: skip
    shape = type_.shape
    names = [""] * 2 if shape is None else [_name(dim) for dim in shape]
    if known is not None and (shape is None or len(known) == len(names)):
        names = [*names[: len(known)], *[""] * (len(known) - len(names))]
    dims: list[int | str] = []
    for place, name in enumerate(names):
        size = known[place] if known is not None and place < len(known) else None
        declared = shape[place] if shape is not None else None
        fixed = declared if isinstance(declared, int) else None
        # Dimensions without a name: the first is most often the batch, which the inputs share.
        dims.append(size if size is not None else fixed if fixed is not None else name or f"{UNNAMED}{place}")
    return Input(entry.name, type_.dtype, tuple(dims), role, is_sequence)


def _name(dim: Any) -> str:
    if isinstance(dim, int) or dim.has_fresh():
        return ""
    return dim.symbol.name if dim.symbol is not None else str(dim)


_LONGEST = 300
"""Characters of an expression: the sizes of longer ones could be computed only with many nested calls."""

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv,
}  # fmt: skip


def expression_in(name: str) -> ast.expr | None:
    """The expression that the name of a dimension spells, such as `past + 1`; None for a plain name."""
    if len(name) > _LONGEST:
        return None
    try:
        found = ast.parse(name, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    nodes = [each for each in ast.walk(found) if not isinstance(each, (ast.operator, ast.Load))]
    allowed = (ast.BinOp, ast.Name, ast.Constant)
    return found if isinstance(found, ast.BinOp) and all(isinstance(each, allowed) for each in nodes) else None


def size_of(name: str, sizes: Mapping[str, int]) -> int:
    """The size of a dimension whose name can be an expression."""
    if name in sizes:
        return sizes[name]
    tree = expression_in(name)
    return max(0, _computed(tree, sizes)) if tree is not None else SIZES[0][0]


def bound_sizes(inputs: Iterable[Input], feeds: Mapping[str, Any]) -> dict[str, int]:
    """The sizes of the named dimensions of inputs in given arrays; inputs without an array tell nothing."""
    return {
        dim: size for each in inputs if each.name in feeds
        for dim, size in zip(each.dims, np.shape(feeds[each.name]), strict=False) if isinstance(dim, str)
    }  # fmt: skip


def _computed(tree: Any, sizes: Mapping[str, int]) -> int:
    if isinstance(tree, ast.Constant):
        return tree.value if isinstance(tree.value, int) else 1
    if isinstance(tree, ast.Name):
        return sizes.get(tree.id, SIZES[0][0])
    apply = _OPERATORS.get(type(tree.op))
    left, right = _computed(tree.left, sizes), _computed(tree.right, sizes)
    if apply is None or (apply is operator.floordiv and right == 0):
        return 1
    return int(apply(left, right))


# -- values


@contextmanager
def possible(name: str) -> Iterator[None]:
    """InputError for values of the input `name` whose sizes are beyond the memory, or beyond what numpy represents."""
    try:
        yield
    except (MemoryError, OverflowError, ValueError) as error:
        refused = error_of_numbers(error)
        if refused is None:
            raise
        raise InputError(
            f"no values can be generated for the input {name!r}", why=refused.message, code="ML242",
            hint="give values: --inputs FILE.npz, or other sizes: --input",
        ) from None  # fmt: skip


def _values(each: Input, shape: tuple[int, ...], number: int, random: Any, careful: bool) -> np.ndarray:
    kind, dtype = each.role.kind, each.dtype
    if dtype.kind == "string":
        found = np.empty(shape, dtype=object)
        found[...] = random.choice(_WORDS, shape) if shape else str(random.choice(_WORDS))
        return found
    if dtype.kind == "bool":
        # One condition is true in the first set, and in every other one.
        return random.random(shape) < 0.7 if shape else np.asarray(number % 2 == 0)
    if dtype.kind in ("int", "uint"):
        return _integers(each, shape, number, random, careful).astype(dtype.numpy)
    if kind == SCALE:
        return np.ones(shape, dtype.numpy)
    plain = random.random(shape) if number % 2 or careful else random.standard_normal(shape)
    return np.asarray(plain).astype(dtype.numpy)


def _integers(each: Input, shape: tuple[int, ...], number: int, random: Any, careful: bool) -> np.ndarray:
    role = each.role
    if role.kind == COUNT:
        return np.full(shape, COUNTS[number % len(COUNTS)])
    if role.kind in (LENGTH, SIZE):
        return np.ones(shape, np.int64)
    if role.kind == AXIS:
        return np.zeros(shape, np.int64)
    if role.kind == INDEX:
        below = role.below if role.below is not None else 1
        return np.asarray(random.integers(0, max(1, min(below, 2) if careful else below), shape))
    if role.kind == MASK:
        return _mask(shape, random)
    if careful:
        return np.asarray(random.integers(0, 2, shape))
    bits = each.dtype.bits
    if bits > 8:
        return np.asarray(random.integers(0, 8, shape))
    lowest = -(1 << (bits - 1)) if each.dtype.kind == "int" else 0
    return np.asarray(random.integers(lowest, lowest + (1 << bits), shape))


def _mask(shape: tuple[int, ...], random: Any) -> np.ndarray:
    """Ones, then zeros along the last dimension; at least one 1."""
    if not shape:
        return np.asarray(1)
    kept = random.integers(1, shape[-1] + 1, shape[:-1]) if shape[-1] else np.zeros(shape[:-1])
    return (np.arange(shape[-1]) < np.asarray(kept)[..., None]).astype(np.int64)
