"""Types that are inferred again and again: a model repeats its layers, with the same attributes and types.

    inferred_once((Add, "numpy"), types, infer)     # the first time `infer(types)`, later its result

The types in a result without known values are unique: those of the next layer are the same objects, by which a result
is found. A result with fresh symbols belongs to one node and is not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mo_loop.graph.dimension import fresh_symbols
from mo_loop.graph.types import TensorType

LIMIT = 20_000
"""The number of results and of types that are kept; beyond it all are forgotten."""

_results: dict[Any, tuple[Sequence[Any], Sequence[Any]]] = {}
"""Operation, attributes and the ids of the types of the inputs -> these types, which keep their ids, and the result."""
_types: dict[tuple[Any, Any], TensorType] = {}


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
    """Forget all results and types. A conversion begins so: the symbols of the model before it do not come again."""
    _results.clear()
    _types.clear()


def unique(type_: Any) -> Any:
    """The one object for all equal types of tensors without known values."""
    if not isinstance(type_, TensorType) or type_.known is not None or type_.dtype is None:
        return type_
    if len(_types) >= LIMIT:
        _types.clear()
    return _types.setdefault((type_.dtype, type_.shape), type_)
