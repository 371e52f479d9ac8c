"""Compares the inferred shapes of outputs with the shapes of the actual arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mo_loop.graph import Graph


class Inferred:
    """The types of a graph's inputs and outputs, without the graph: small enough for another process."""

    def __init__(self, graph: Graph) -> None:
        self._inputs = [(node.name, node.output.shape) for node in graph.parameters]
        self._names = [name for name, _ in self._inputs]
        self._outputs = [(str(node.value.type), node.value.shape) for node in graph.results]

    def contradiction(self, feeds: Mapping[str, Any] | Sequence[Any], found: Sequence[tuple[str, Any]]) -> str:
        """The first output whose array has not the inferred shape, in words; empty if there is none."""
        lengths = self._lengths(feeds if isinstance(feeds, Mapping) else dict(zip(self._names, feeds, strict=True)))
        for (text, shape), (name, array) in zip(self._outputs, found, strict=True):
            if shape is None:
                continue
            fits = [_fits(dim, length, lengths) for dim, length in zip(shape, array.shape, strict=False)]
            if len(shape) != array.ndim or not all(fits):
                return f"{name} is inferred as {text} and has the shape {list(array.shape)}"
        return ""

    def _lengths(self, feeds: Mapping[str, Any]) -> dict[Any, int]:
        """Symbol -> its value in these inputs."""
        lengths: dict[Any, int] = {}
        for name, shape in self._inputs:
            if name not in feeds or shape is None:
                continue
            for dim, length in zip(shape, np.shape(feeds[name]), strict=True):
                if not isinstance(dim, int) and dim.symbol is not None:
                    lengths[dim.symbol] = length
        return lengths


def _fits(dim: Any, length: int, lengths: Mapping[Any, int]) -> bool:
    if isinstance(dim, int):
        return dim == length
    if all(symbol in lengths for symbol in dim.symbols()):
        return bool(dim.const + sum(factor * lengths[symbol] for symbol, factor in dim.terms) == length)
    return bool(dim.lo <= length and (dim.hi is None or length <= dim.hi))
