"""Smaller numbers: shorter dimensions, fewer iterations, weights without content.

A dimension is shortened wherever its size occurs: in inputs, weights and integer constants. Whether the result is still
a model is for the trial to find.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from mo_loop.compare.reducing.candidate import Candidate, graphs, is_plain, made

SEED = 0


def lengths(candidate: Candidate) -> list[int]:
    """The sizes of dimensions above 1, the most frequent last."""
    found: Counter[int] = Counter()
    for graph in graphs(candidate.proto):
        found.update(dim for each in graph.initializer for dim in each.dims if dim > 1)
    for feeds in candidate.sets:
        found.update(dim for value in feeds.values() for dim in np.shape(value) if dim > 1)
    return sorted(found, key=lambda size: (found[size], size))


def shortened(candidate: Candidate, old: int, new: int) -> Candidate:
    """The candidate with dimensions of `new` elements instead of `old`."""
    proto = candidate.copy()
    for graph in graphs(proto):
        for each in (*graph.input, *graph.output):
            kind = each.type.tensor_type
            for dim in kind.shape.dim if kind.HasField("shape") else ():
                if dim.dim_value == old:
                    dim.dim_value = new
        for tensor in (*graph.initializer, *(a.t for node in graph.node for a in node.attribute if a.HasField("t"))):
            _set(tensor, lambda array: _cut(array, old, new))
    sets = [{name: _cut_input(value, old, new) for name, value in feeds.items()} for feeds in candidate.sets]
    return made(proto, sets)


def with_fewer_iterations(candidate: Candidate) -> Iterator[Candidate]:
    """The candidate with a smaller value of an integer scalar, an input or a constant: most often a trip count."""
    for name in {name: None for feeds in candidate.sets for name in feeds}:
        values = [feeds[name] for feeds in candidate.sets]
        if not all(_is_count(value) for value in values):
            continue
        for count in (1, 2, 3):
            sets = [{**feeds, name: np.minimum(feeds[name], count).astype(np.asarray(feeds[name]).dtype)}
                    for feeds in candidate.sets]  # fmt: skip
            yield Candidate(candidate.model, tuple(sets))
    for place, graph in enumerate(graphs(candidate.proto)):
        for number, tensor in enumerate(graph.initializer):
            if tensor.data_type == 7 and int(np.prod(tensor.dims)) == 1:
                for count in (1, 2, 3):
                    proto = candidate.copy()
                    own = list(graphs(proto))[place].initializer[number]
                    _set(own, lambda array, count=count: np.minimum(array, count))
                    yield made(proto, candidate.sets)


def _is_count(value: Any) -> bool:
    array = np.asarray(value)
    return array.dtype.kind in "iu" and array.size == 1 and int(array.reshape(-1)[0]) > 1


def plainer_weights(candidate: Candidate) -> Iterator[Candidate]:
    """The candidate with one weight without content: all ones, or random numbers of a fixed seed."""
    for place, graph in enumerate(graphs(candidate.proto)):
        for number, tensor in enumerate(graph.initializer):
            if is_plain(tensor) or tensor.data_type not in (1, 10, 11):
                continue
            for change in (_ones, _random):
                proto = candidate.copy()
                _set(list(graphs(proto))[place].initializer[number], change)
                yield made(proto, candidate.sets)


def _ones(array: np.ndarray) -> np.ndarray:
    return np.ones_like(array)


def _random(array: np.ndarray) -> np.ndarray:
    # Quarters between -1 and 1: a few bytes in any text.
    return (np.random.default_rng(SEED).integers(-4, 5, array.shape) / 4).astype(array.dtype)


def _cut(array: np.ndarray, old: int, new: int) -> np.ndarray:
    if array.dtype.kind in "iu" and array.ndim <= 1 and array.size <= 8:  # a shape, an axis length, an end of a slice
        return np.where(array == old, np.array(new, array.dtype), array) if array.size else array
    return array[tuple(slice(0, new) if dim == old else slice(None) for dim in array.shape)]


def _cut_input(value: Any, old: int, new: int) -> Any:
    return value if isinstance(value, list) else _cut(np.asarray(value), old, new)


def _set(tensor: Any, change: Any) -> None:
    """Replace the data of a TensorProto."""
    import onnx

    try:
        array = onnx.numpy_helper.to_array(tensor)
    except (TypeError, ValueError):  # weights in other files
        return
    changed = np.asarray(change(array))
    if changed.shape != array.shape or not np.array_equal(changed, array):
        tensor.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(changed).reshape(changed.shape), tensor.name))
