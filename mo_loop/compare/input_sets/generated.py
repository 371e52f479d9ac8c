"""Inputs of a model, generated from their types and roles.

    generator = Generator(model, known={"x": (1, 3, None, None)}, seed=0)
    feeds = generator.draw(0)                        # {"x": array, "steps": array(3)}

The sets differ: numbers are normally distributed or between 0 and 1, trip counts and conditions vary, and so do the
sizes of dynamic dimensions: several sizes, then 1, then others; dimensions with one name have one size, and a name such
as `past + 1` is computed. The same seed gives the same arrays. Which sizes a model accepts is found by trying:
mo_loop/compare/input_sets/expected_sets.py.
"""

import ast
import math
import operator
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mo_loop.compare.input_sets.given import input_names
from mo_loop.compare.input_sets.roles import Input, Role, possible, roles, values_of
from mo_loop.compare.verify_options import Size
from mo_loop.converted_model import Model
from mo_loop.errors import UnsupportedError, UsageError
from mo_loop.frontend.cut import Cut
from mo_loop.frontend.declared_types import type_from
from mo_loop.frontend.input_text import KEEP, InputEntry
from mo_loop.frontend.model import OnnxModel
from mo_loop.graph import Dimension, OptionalType, SequenceType, TensorType, fresh, high, low

SIZES = ((2, 3, 4), (1,), (5, 2, 3), (4, 7, 2), (3,))
"""The sizes of dynamic dimensions in the sets, in turn; in one set the dimensions take them in turn."""

IMAGE_SIZES = ((64, 96), (32,), (65, 97), (96, 64), (224,))
"""The sizes of the dynamic height and width of images."""

Known = int | tuple[int, int | None] | None
"""A size that the IR declares: a number, its bounds (from, to), or None."""

ITEMS = 3
"""The number of elements of a sequence."""

NO_ROLE = Role()

UNNAMED = "dimension "
"""The beginning of the names of dimensions that the model does not name."""

_BATCH_NAMES = ("batch", "b", "n", "bs", "bsz")


class Generator:
    """Draws sets of inputs for a model. `known` are the shapes that the IR declares."""

    def __init__(self, model: OnnxModel, known: Mapping[str, Sequence[Known] | None], seed: int = 0) -> None:
        """Raises UnsupportedError for an input whose element type is not known."""
        needed = set(input_names(model))
        meant = roles(model)
        self._seed = seed
        entries = [entry for entry in model.proto.graph.input if entry.name in needed]
        self.inputs = [input_of(entry, known.get(entry.name), meant.get(entry.name, NO_ROLE)) for entry in entries]
        self._bounds: dict[str, tuple[int, int | None]] = {}
        """The least and greatest sizes of dimensions. One that the IR fixes in one input has its size in the others."""
        for entry, each in zip(entries, self.inputs, strict=True):
            declared = (*input_of(entry).dims, *[0] * len(each.dims))
            for name, dim, size in zip(declared, each.dims, known.get(each.name) or (), strict=False):
                if isinstance(dim, str) and isinstance(size, tuple):
                    self._bounds[dim] = size
                elif isinstance(name, str) and isinstance(size, int) and not name.startswith(UNNAMED):
                    self._bounds[name] = size, size
        names = dict.fromkeys(name for each in self.inputs for name in each.dims if isinstance(name, str))
        self.symbols = [name for name in names if expression_in(name) is None]
        """The dynamic dimensions that have sizes of their own."""
        self._image = {name for each in self.inputs for name in _image_dimensions(each)}
        first = {each.dims[0] for each in self.inputs if len(each.dims) > 1}
        self.batches = {each for each in self.symbols if each.lower() in _BATCH_NAMES or "batch" in each.lower()}
        self.batches |= {name for name in self.symbols if name in first}
        """Those of `symbols` that probably count samples: a first dimension."""

    def draw(self, number: int) -> dict[str, Any]:
        """The set of this number."""
        return self.sized(number, self.sizes(number))

    def sized(self, number: int, sizes: Mapping[str, int], *, careful: bool = False) -> dict[str, Any]:
        """The values of the set of this number, for dynamic dimensions of these sizes. With `careful`, integers are 0
        or 1."""
        found: dict[str, Any] = {}
        sizes = self._allowed(sizes)
        for each in self.inputs:
            shape = tuple(size_of(dim, sizes) for dim in each.dims)
            random = self._random(each, number)
            longest = min((sizes[name] for name in self.symbols if name not in each.dims), default=1)
            with possible(each.name):
                items = [
                    values_of(each, shape, number, random, careful=careful, longest=longest)
                    for _ in range(ITEMS if each.is_sequence else 1)
                ]
            found[each.name] = items if each.is_sequence else items[0]
        return found

    def sizes(self, number: int) -> dict[str, int]:
        """A size for each dynamic dimension, as in the set of this number."""
        found: dict[str, int] = {}
        for table, names in ((SIZES, self._image ^ set(self.symbols)), (IMAGE_SIZES, self._image)):
            sizes = table[number % len(table)]
            of_these = [name for name in self.symbols if name in names]
            found |= {name: sizes[place % len(sizes)] for place, name in enumerate(of_these)}
        return self._allowed(found)

    def allows(self, name: str, size: int) -> bool:
        """Whether a dynamic dimension can have this size."""
        return self._allowed({name: size})[name] == size

    def _allowed(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Sizes within the bounds that the IR gives; others are moved into them."""
        found = dict(sizes)
        for name, (least, most) in self._bounds.items():
            size = found.get(name, least)
            if size < least or (most is not None and size > most):
                size = least + (size if most is None else size % (most - least + 1))
            if name in found or least == most:
                found[name] = size
        return found

    def elements(self, sizes: Mapping[str, int]) -> int:
        """The number of elements of all inputs of these sizes."""
        sizes = self._allowed(sizes)
        return sum(math.prod(size_of(dim, sizes) for dim in each.dims) for each in self.inputs)

    def array(self, each: Input, shape: tuple[int, ...], number: int) -> np.ndarray:
        """A value of an input in a shape that the caller chose."""
        with possible(each.name):
            return values_of(each, shape, number, self._random(each, number))

    def _random(self, each: Input, number: int) -> Any:
        return np.random.default_rng((self._seed, number, zlib.crc32(each.name.encode())))


def _image_dimensions(each: Input) -> list[str]:
    """The names of a dynamic height and width: those of an input of rank 4 with 1, 3 or 4 channels."""
    if len(each.dims) != 4 or each.dtype.kind in ("bool", "string") or each.role.kind:
        return []
    for channels, places in ((1, (2, 3)), (3, (1, 2))):
        if each.dims[channels] in (1, 3, 4):
            return [name for place in places if isinstance(name := each.dims[place], str)]
    return []


# -- types and sizes


def shapes_of(converted: Model) -> dict[str, Sequence[int | None] | None]:
    """The shape of each input of the IR by all its names, with None for sizes that are not known."""
    found: dict[str, Sequence[int | None] | None] = {}
    for port in converted.inputs:
        shape = None if port.shape is None else tuple(dim if isinstance(dim, int) else None for dim in port.shape)
        found.update(dict.fromkeys((port.name, *port.names), shape))
    return found


def input_of(entry: Any, known: Sequence[Known] | None = None, role: Role = NO_ROLE) -> Input:
    """The record of an entry of the model; `known` are the sizes that the IR declares."""
    type_ = type_from(entry.type, symbolic=True)
    if isinstance(type_, OptionalType):
        type_ = type_.element
    is_sequence = isinstance(type_, SequenceType)
    type_ = type_.element if is_sequence else type_
    if not isinstance(type_, TensorType) or type_.dtype is None:
        raise UnsupportedError(
            f"no values can be generated for the input {entry.name!r}", why="its element type is not declared",
            hint="give values: --input-data FILE.npz",
        )
    unranked = [None] * (2 if known is None else len(known))
    shape: Sequence[Dimension | None] = unranked if type_.shape is None else type_.shape
    dims: list[int | str] = []
    for place, (dim, size) in enumerate(zip(shape, (*(known or ()), *[None] * len(shape)), strict=False)):
        fixed = size if isinstance(size, int) else dim
        if isinstance(fixed, int):
            dims.append(fixed)
        else:  # without a name: the first is most often the batch, which the inputs share
            dims.append(f"{UNNAMED}{place}" if fixed is None or fixed.has_fresh() else str(fixed))
    return Input(entry.name, type_.dtype, tuple(dims), role, is_sequence)


_LONGEST = 300
"""Characters of an expression: the sizes of longer ones could be computed only with many nested calls."""

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv,
}


def expression_in(name: str) -> ast.expr | None:
    """The expression that the name of a dimension spells, such as `past + 1`; None for a plain name."""
    if len(name) > _LONGEST:
        return None
    try:
        found = ast.parse(name, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    allowed = (ast.BinOp, ast.operator, ast.Name, ast.Load, ast.Constant)
    is_one = isinstance(found, ast.BinOp) and all(isinstance(each, allowed) for each in ast.walk(found))
    return found if is_one else None


def size_of(dim: int | str, sizes: Mapping[str, int]) -> int:
    """The size of a dimension whose name can be an expression."""
    if isinstance(dim, int):
        return dim
    if dim in sizes:
        return sizes[dim]
    tree = expression_in(dim)
    return max(0, _computed(tree, sizes)) if tree is not None else SIZES[0][0]


def bound_sizes(inputs: Iterable[Input], feeds: Mapping[str, Any]) -> dict[str, int]:
    """The sizes of the named dimensions of inputs in given arrays; inputs without an array add nothing."""
    return {
        dim: size for each in inputs if each.name in feeds
        for dim, size in zip(each.dims, np.shape(feeds[each.name]), strict=False) if isinstance(dim, str)
    }


def _computed(tree: Any, sizes: Mapping[str, int]) -> int:
    if isinstance(tree, ast.Constant):
        return tree.value if isinstance(tree.value, int) else 1
    if isinstance(tree, ast.Name):
        return sizes.get(tree.id, SIZES[0][0])
    apply = _OPERATORS.get(type(tree.op))
    left, right = _computed(tree.left, sizes), _computed(tree.right, sizes)
    return 1 if apply is None or (apply is operator.floordiv and right == 0) else int(apply(left, right))


def new_sizes(given: Any, model: OnnxModel, ir: Model) -> dict[str, tuple[Size, ...]]:
    """The sizes of each input that `given` names, in any form of `--input`.

    Raises:
        UsageError: a name is not that of an input, an entry has more or less than sizes, or a rank is another one.
    """
    shapes = shapes_of(ir)
    found = {}
    for name, entry in (Cut.of(model, given, None).inputs or {}).items():
        if name not in input_names(model):
            raise UsageError(f"{name!r} is not an input of the model", hint=f"inputs: {', '.join(input_names(model))}")
        if entry != InputEntry(name, entry.shape) or entry.shape is KEEP:
            raise UsageError(f"--sizes needs the sizes of {name!r}, and nothing else", hint=f"for example {name}[8,3]")
        shape = shapes.get(name)
        if shape is not None and len(shape) != len(entry.shape):
            raise UsageError(
                f"--sizes has {len(entry.shape)} sizes for {name!r}", why=f"the input has {len(shape)} dimensions",
                hint="give a size for each; the rank of an input does not change",
            )
        found[name] = tuple(dim if isinstance(dim, int) else (low(dim), high(dim)) for dim in entry.shape)
    return found


def sizes_text(sizes: Sequence[Size]) -> str:
    """Sizes as `--sizes` writes them."""
    return f"[{','.join(str(size if isinstance(size, int) else fresh(*size)) for size in sizes)}]"
