"""Types that are inferred once for equal nodes: a model repeats its layers, with the same attributes and types.

    inferred_once((Add, "numpy"), types, infer)     # the first time `infer(types)`, later its result

The types in a result and those of constants are unique: those of the next layer are the same objects, by which a result
is found. A result with fresh symbols belongs to one node and is not kept.

`same_type` compares two inferences of a node, apart from the fresh symbols that each of them made.

    renaming = Renaming(made_before, made_now)
    same_type(TensorType(f32, ("~4", 8)), TensorType(f32, ("~9", 8)), renaming)     # True if they made ~4 and ~9
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mo_loop.graph.dimension import Dimension, Symbol, fresh_symbols
from mo_loop.graph.types import ElementType, OptionalType, SequenceType, TensorType, known_array

LIMIT = 20_000
"""The number of results and of types that are kept; beyond it all are forgotten."""

_results: dict[Any, tuple[Sequence[Any], Sequence[Any]]] = {}
"""Operation, attributes and the ids of the types of the inputs -> these types, which keep their ids, and the result."""
_types: dict[tuple[Any, ...], TensorType] = {}


def inferred_once(
    operation: tuple[Any, ...], types: Sequence[Any], infer: Callable[[Sequence[Any]], Sequence[Any]]
) -> Sequence[Any]:
    """The types of the outputs. `operation` has the class and all attributes; `infer` depends on nothing else."""
    key = (operation, *map(id, types))
    try:
        found = _results.get(key)
    except TypeError:  # an attribute that cannot be hashed
        return infer(types)
    if found is not None:
        return found[1]
    start = fresh_symbols()
    result = infer(types)
    if fresh_symbols() > start:
        return result
    if len(_results) >= LIMIT:
        _results.clear()
    result = tuple(map(unique, result))
    _results[key] = types, result
    return result


def forget() -> None:
    """Forget all results and types. A conversion begins with it: the symbols of an earlier model are not reused."""
    _results.clear()
    _types.clear()


def unique(type_: Any) -> Any:
    """The one object for all equal types of tensors."""
    if not isinstance(type_, TensorType) or type_.dtype is None:
        return type_
    key: tuple[Any, ...] = (type_.dtype, type_.shape)
    if type_.known is not None:
        items = tuple(type_.known.flat)
        key = (*key, type_.known.shape, items, *map(type, items))  # True and numbers of numpy equal others
    if len(_types) >= LIMIT:
        _types.clear()
    return _types.setdefault(key, type_)


def type_of_numbers(dtype: ElementType, numbers: np.ndarray[Any, Any]) -> TensorType:
    """The one type of all constants with these few integers or booleans: all its values are known."""
    key = (dtype, numbers.dtype, numbers.shape, numbers.tobytes())
    found = _types.get(key)
    if found is None:
        known = known_array([int(item) for item in numbers.reshape(-1)], numbers.shape)
        found = _types[key] = unique(TensorType(dtype, numbers.shape, known))
    return found


class Renaming:
    """Whether two inferences gave the same types, apart from the names of their fresh symbols.

    `old` and `new` are the numbers of those symbols: after the first, up to the second. A fresh symbol of another
    inference must be the same in both; the symbols of the two inferences must correspond one to one.
    """

    def __init__(self, old: tuple[int, int], new: tuple[int, int]) -> None:
        self._old, self._new = old, new
        self._forth: dict[Symbol, Symbol] = {}
        self._back: dict[Symbol, Symbol] = {}

    def agrees(self, a: Dimension, b: Dimension) -> bool:
        """Whether `a` of the old inference and `b` of the new one are the same."""
        if isinstance(a, int) or isinstance(b, int):
            return a == b
        if a.const != b.const or len(a.terms) != len(b.terms):
            return False
        return all(x == y and self._is_same(s, t) for (s, x), (t, y) in zip(a.terms, b.terms, strict=True))

    def _is_same(self, a: Symbol, b: Symbol) -> bool:
        made = (_is_within(a, self._old), _is_within(b, self._new))
        if not any(made):
            return a == b
        if not all(made) or (a.lo, a.hi, a.now) != (b.lo, b.hi, b.now):
            return False
        return self._forth.setdefault(a, b) == b and self._back.setdefault(b, a) == a


def _is_within(symbol: Symbol, numbers: tuple[int, int]) -> bool:
    return symbol.is_fresh and numbers[0] < int(symbol.name[1:]) <= numbers[1]


def same_type(old: Any, new: Any, renaming: Renaming) -> bool:
    """Whether inference gave the same types, apart from fresh symbols, which are new in every inference."""
    if type(old) is not type(new):
        return False
    if isinstance(old, SequenceType):
        if old.length is None or new.length is None:
            same = old.length is new.length
        else:
            same = renaming.agrees(old.length, new.length)
        return same and same_type(old.element, new.element, renaming)
    if isinstance(old, OptionalType):
        return old.present is new.present and same_type(old.element, new.element, renaming)
    if old.dtype is not new.dtype or old.rank != new.rank or (old.known is None) != (new.known is None):
        return False
    if not all(map(renaming.agrees, old.shape or (), new.shape or ())):
        return False
    if old.known is None or new.known is None:
        return True
    items: Any = zip(old.known.flat, new.known.flat, strict=False)
    return old.known.shape == new.known.shape and all(renaming.agrees(a, b) for a, b in items)
