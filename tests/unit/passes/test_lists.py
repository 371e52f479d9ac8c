"""Lists of tensors: random operations in every representation, and which are replaced by their elements."""

from random import Random
from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.errors import TypeError_
from mo_loop.graph import Graph, Value
from mo_loop.graph.dimension import fresh, named
from mo_loop.graph.types import OptionalType, SequenceType, TensorType, f32, i64
from mo_loop.ops.base import Identity, Parameter, Result
from mo_loop.transforms.front.lower_sequences import (
    PackSequences,
    ReplaceSequencesByElements,
    StackSequences,
    is_read_at_known_positions,
    kind_of,
)
from tests.interpreter import Invalid, interpret
from tests.unit.graph.graphs import parameter

# -- Random operations on lists, in every representation: the passes keep the numbers


SOURCES = ("elements", "rows", "pieces", "ragged", "empty")


class Lists:
    """A graph, drawn together with the values of its inputs."""

    def __init__(self, seed: int, source: str) -> None:
        self.random = Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.graph = Graph()
        self.feeds: list[Any] = []
        self.width: Any = 3 if self.random.random() < 0.7 else named("W")
        self.rows: Any = self.random.choice([2, fresh()])
        self.list = getattr(self, f"_{source}")()

    def tensor(self, *dims: Any) -> Value:
        """An input of random numbers; an unknown size is 3 for W and 0 to 4 for others."""
        shape = [dim if isinstance(dim, int) else 3 if dim == named("W") else self.random.randint(0, 4) for dim in dims]
        self.feeds.append(self.numbers.standard_normal(shape).astype(np.float32))
        return Parameter(graph=self.graph, dtype=f32, shape=dims).output

    def place(self, low: int, high: int) -> Value:
        """A position, known at conversion or at run time."""
        number = self.random.randint(low, high)
        if self.random.random() < 0.5:
            return ops.Constant(number, graph=self.graph, dtype=i64).output
        self.feeds.append(np.array(number))
        return Parameter(graph=self.graph, dtype=i64, shape=()).output

    def element(self) -> Value:
        return self.tensor(self.rows, self.width)

    def _elements(self) -> Value:
        return ops.SequenceConstruct(*(self.element() for _ in range(self.random.randint(1, 3)))).output

    def _rows(self) -> Value:
        stack = self.tensor(fresh(), self.rows if isinstance(self.rows, int) else 2, self.width)
        return ops.StackedSequence(stack, dtype=f32).output

    def _pieces(self) -> Value:
        return ops.SplitToSequence(self.tensor(fresh(), self.width), np.array(2), axis=0).output

    def _ragged(self) -> Value:
        self.feeds += [np.array([2, 0, 1]), self.numbers.standard_normal((3, 3)).astype(np.float32)]
        sizes = Parameter(graph=self.graph, dtype=i64, shape=(fresh(),)).output
        joined = Parameter(graph=self.graph, dtype=f32, shape=(fresh(), self.width)).output
        return ops.JoinedSequence(joined, sizes, axis=0).output

    def _empty(self) -> Value:
        return ops.SequenceInsert(ops.SequenceEmpty(graph=self.graph, dtype=f32), self.element()).output

    def change(self) -> None:
        """Insert an element, erase one, or append another list."""
        choice = self.random.random()
        places = [self.place(-1, 2)] if self.random.random() < 0.6 else []
        if choice < 0.5:
            self.list = ops.SequenceInsert(self.list, self.element(), *places).output
        elif choice < 0.8:
            self.list = ops.SequenceErase(self.list, *places).output
        else:
            self.list = ops.SequenceExtend(self.list, self._elements()).output

    def read(self) -> None:
        Result(ops.SequenceLength(self.list).output)
        Result(ops.SequenceAt(self.list, self.place(-2, 2)).output)
        if self.random.random() < 0.7:
            Result(ops.ConcatFromSequence(self.list, axis=self.random.choice([0, 0, 1, -1])).output)


@pytest.mark.parametrize("source", SOURCES)
def test_lists(source: str) -> None:
    compared = 0
    for seed in range(40):
        drawn = Lists(seed, source)
        try:
            for _ in range(drawn.random.randint(0, 3)):
                drawn.change()
            drawn.read()
            expected = interpret(drawn.graph, drawn.feeds)
        except (TypeError_, Invalid):  # an index out of range, which inference or only the run detects
            continue
        lowered = drawn.graph.clone()
        for each in (ReplaceSequencesByElements(), StackSequences(), PackSequences()):
            each.run(lowered)
            lowered.validate()
        kinds = [type(value.type) for node in lowered.ordered() for value in node.outputs]
        assert SequenceType not in kinds and OptionalType not in kinds
        found = interpret(lowered, drawn.feeds)
        for a, b in zip(expected, found, strict=True):
            assert a.shape == b.shape and np.array_equal(a, b), f"seed {seed}"
        compared += 1
    assert compared > 10


# -- Which sequences are replaced by their elements: at most 64 elements, read at positions known at conversion


def sequence(graph: Graph, length: int = 2) -> Value:
    x = parameter(graph, 2)
    return ops.SequenceConstruct(*[x] * length).output


def number(graph: Graph) -> Value:
    return Parameter(graph=graph, dtype=i64, shape=()).output


@pytest.mark.parametrize(("length", "is_followed"), [(1, True), (63, True), (64, True), (65, False)])
class TestLimit:
    def test_of_captures(self, graph: Graph, length: int, is_followed: bool) -> None:
        found = ReplaceSequencesByElements().captured(sequence(graph, length), [])
        assert (found is not None) == is_followed
        if is_followed:
            assert len(found.tensors) == length

    def test_of_states_and_branches(self, length: int, is_followed: bool) -> None:
        kind = kind_of(SequenceType(TensorType(f32, (2,)), length))
        assert (kind is not None and kind.length == length) == is_followed

    def test_of_pieces(self, graph: Graph, length: int, is_followed: bool) -> None:
        pieces = ops.SplitToSequence(parameter(graph, length, 3), axis=0)
        Result(ops.SequenceAt(pieces.output, 0).output)
        assert ReplaceSequencesByElements().run(graph) == is_followed


def test_sequences_that_are_no_state_of_one_length() -> None:
    element = TensorType(f32, (2,))
    assert kind_of(SequenceType(element, 0)) is kind_of(SequenceType(element, None)) is None


def test_readers_at_known_positions(graph: Graph) -> None:
    x = parameter(graph, 2)
    readers: tuple[Any, ...] = (
        lambda each: ops.SequenceAt(each, 1), lambda each: ops.SequenceLength(each),
        lambda each: ops.ConcatFromSequence(each, axis=0), lambda each: ops.SequenceAt(ops.SequenceErase(each), 0),
        lambda each: ops.SequenceAt(ops.SequenceErase(each, 0), 0),
        lambda each: ops.SequenceAt(ops.SequenceInsert(each, x), 0),
        lambda each: ops.SequenceAt(ops.SequenceInsert(each, x, 0), 0),
        lambda each: ops.SequenceAt(Identity(each), 0),
        lambda each: ops.SequenceAt(ops.SequenceExtend(each, sequence(graph)), 0),
        lambda each: ops.SequenceAt(ops.SequenceExtend(sequence(graph), each), 0),
    )
    for reader in readers:
        read = sequence(graph)
        Result(reader(read).output)
        assert is_read_at_known_positions(read)


def test_readers_at_positions_of_the_run(graph: Graph) -> None:
    x, place = parameter(graph, 2), number(graph)
    readers: tuple[Any, ...] = (
        lambda each: ops.SequenceAt(each, place), lambda each: ops.SequenceErase(each, place),
        lambda each: ops.SequenceInsert(each, x, place),
        lambda each: ops.SequenceAt(ops.SequenceErase(each), place),
        lambda each: ops.SequenceAt(ops.SequenceInsert(each, x, 0), place),
        lambda each: ops.SequenceAt(Identity(each), place),
        lambda each: ops.SequenceAt(ops.SequenceExtend(each, sequence(graph)), place),
    )
    for reader in readers:
        read = sequence(graph)
        reader(read)
        assert not is_read_at_known_positions(read)
