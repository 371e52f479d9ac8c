"""Sets of generated inputs that a runtime accepts: which sizes a model needs is found by trying larger ones.

    search = SetSearch(Generator(model, known), sizes_in(model))
    found = search.accepted(3, oracle.run)
    found.sets, found.expected, found.missing

A set with the usual small sizes is refused where a window is longer than its input, where the sizes do not divide, or
where they have to fit a constant. Then the dimensions other than the batch change together, after that one by one, and
in the end all of them; the sizes are small ones, the usual ones of images and audio, and those that the model itself
contains. The search ends after `SECONDS`, and leaves out sets of more than `ELEMENTS`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mo_loop.compare.execution.isolated import IsolatedError, brief
from mo_loop.compare.input_sets.generated import Generator
from mo_loop.compare.input_sets.roles import constant_integers
from mo_loop.errors import NotComparableError
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import graph_protos

LARGER = (
    *range(2, 9), 16, 32, 64, 96, 128, 160, 224, 256, 320, 400, 512, 640, 800, 1000, 1024, 1600, 2048, 4096, 8000,
    16000,
)  # fmt: skip
"""The sizes that are tried in turn where small ones are refused."""

SECONDS = 60.0
"""The time after which no other sizes are tried."""

ELEMENTS = 1 << 25
"""The most elements of all inputs of a set that is tried."""

LEAST, GREATEST, MOST = 2, 16_384, 32
"""The integers of a model that are tried as sizes: the least and the greatest of them, and how many."""

Sizes = Mapping[str, int]
Candidate = tuple[Sizes, dict[str, Any]]


@dataclass
class Accepted:
    """Generated sets that a runtime accepts, and its outputs for each.

    `missing` are the other sets, with the error of the first try.
    """

    sets: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    expected: list[Any] = field(default_factory=list)
    sizes: list[Sizes] = field(default_factory=list)
    missing: dict[str, IsolatedError] = field(default_factory=dict)


class SetSearch:
    """Looks for sets that are accepted."""

    def __init__(self, generator: Generator, constants: Iterable[int] = ()) -> None:
        """`constants` are sizes that are tried in addition to `LARGER`."""
        self._generator = generator
        self._larger = sorted({*LARGER, *constants})
        self._fitting: list[Sizes] = []
        self._end = time.monotonic() + SECONDS

    def accepted(self, count: int, run: Callable[[dict[str, Any]], Any]) -> Accepted:
        """`count` sets, and sets with a dimension of size 0.

        `run` raises IsolatedError for a set that the runtime refuses. NotComparableError if it refuses all of them.
        """
        found = Accepted()
        for number in range(count):
            self._add(found, f"generated {number}", self.candidates(number), run)
        if found.sets:
            for symbol in [each for each in self._generator.symbols if self._generator.allows(each, 0)][:2]:
                sizes = {**found.sizes[0], symbol: 0}
                self._add(found, f"{symbol} = 0", [(sizes, self._generator.sized(0, sizes))], run)
            return found
        name, error = next(iter(found.missing.items()))
        raise NotComparableError(
            "no inputs could be generated that ONNX Runtime accepts", why=f"{name}: {brief(error)}",
            hint="give inputs: --input-data FILE.npz",
        )  # fmt: skip

    def _add(
        self, found: Accepted, name: str, candidates: Iterable[Candidate], run: Callable[[dict[str, Any]], Any]
    ) -> None:
        """Add the first candidate that `run` accepts."""
        for sizes, feeds in candidates:
            try:
                expected = run(feeds)
            except IsolatedError as error:
                found.missing.setdefault(name, error)
                if error.status == "timeout":
                    return
                continue
            found.missing.pop(name, None)
            found.sets.append((name, feeds))
            found.expected.append(expected)
            found.sizes.append(sizes)
            if 0 not in sizes.values():
                self.fits(sizes)
            return

    def fits(self, sizes: Sizes) -> None:
        """Try these sizes first in the sets that follow."""
        self._fitting.insert(0, sizes)

    def candidates(self, number: int, above: Sizes | None = None) -> Iterator[Candidate]:
        """Sets of this number; with `above`, only those that are larger in each dimension that grows.

        The usual sizes come first, then those with which an earlier set was accepted, then larger ones.
        """
        draw, usual = self._generator, self._generator.sizes(number)
        if above is None:
            yield usual, draw.draw(number)
            yield dict.fromkeys(usual, next(iter(usual.values()), 0)), draw.draw(number, careful=True)
        for sizes in self.larger_sizes(number):
            growth = {name: size - above[name] for name, size in sizes.items()} if above is not None else {"": 1}
            shrinks = any(change < 0 for name, change in growth.items() if name not in draw.batches)
            if not shrinks and max(growth.values(), default=0) > 0:
                yield sizes, draw.sized(number, sizes, careful=True)

    def larger_sizes(self, number: int) -> Iterator[Sizes]:
        """Sizes that are tried for the set of this number: those that fitted before, then larger ones."""
        tried: list[Sizes] = []
        for sizes in self._choices(number):
            if time.monotonic() > self._end:
                return
            if sizes not in tried and self._generator.elements(sizes) <= ELEMENTS:
                tried.append(sizes)
                yield sizes

    def _choices(self, number: int) -> Iterator[Sizes]:
        usual = self._generator.sizes(number)
        symbols, batches = self._generator.symbols, self._generator.batches
        growing = [name for name in symbols if name not in batches]
        for sizes in self._fitting:
            if number > 1:  # odd sizes, if the model takes them
                yield {**sizes, **{name: sizes[name] + 1 for name in growing}}
            yield sizes
        groups = [growing, *([name] for name in growing if len(growing) > 1), *([symbols] if batches else [])]
        for group in groups:
            rest = batches.difference(group)
            for size in self._larger if group else ():
                for others in ({}, dict.fromkeys(rest, 1)) if rest else ({},):
                    yield {**usual, **others, **dict.fromkeys(group, size)}


def sizes_in(model: OnnxModel) -> list[int]:
    """Integers of a model, bodies and functions included, that can be sizes of its inputs: those of kernels and of
    small constants, with their sums and products, and the dimensions of inputs and weights."""
    found: dict[int, None] = {}
    dims: dict[int, None] = {}
    for graph in graph_protos(model.proto):
        weights = {each.name: each.dims for each in getattr(graph, "initializer", ())}
        for node in graph.node:
            integers = {each.name: each.ints or (each.i,) for each in node.attribute}
            found.update(dict.fromkeys(integers.get("kernel_shape", ())))
            for name in node.input[1:2] if node.op_type == "Conv" else ():  # the channels are in groups
                dims.update((size * integers.get("group", (1,))[0], None) for size in weights.get(name, ())[1:2])
        dims.update(dict.fromkeys(size for shape in weights.values() for size in shape))
    for values in constant_integers(model.proto).values():
        found.update(dict.fromkeys((*values, sum(values), math.prod(map(abs, values)))))
    dims.update((dim.dim_value, None) for each in model.proto.graph.input for dim in each.type.tensor_type.shape.dim)
    return [size for size in found | dims if LEAST <= size <= GREATEST][:MOST]
