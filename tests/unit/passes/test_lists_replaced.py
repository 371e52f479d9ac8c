"""Which sequences are replaced by their elements: at most 64 elements, read at positions known at conversion."""

from __future__ import annotations

from typing import Any

import pytest

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.types import SequenceType, TensorType, f32, i64
from mo_loop.ops.base import Identity, Parameter, Result
from mo_loop.transforms.front.lower_sequences import (
    ListKind,
    ReplaceSequencesByElements,
    is_read_at_known_positions,
)
from tests.unit.graphs import parameter


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
            assert len(found.items) == length

    def test_of_states_and_branches(self, length: int, is_followed: bool) -> None:
        kind = ListKind.of(SequenceType(TensorType(f32, (2,)), length))
        assert (kind is not None and kind.length == length) == is_followed

    def test_of_pieces(self, graph: Graph, length: int, is_followed: bool) -> None:
        pieces = ops.SplitToSequence(parameter(graph, length, 3), axis=0)
        Result(ops.SequenceAt(pieces.output, 0).output)
        assert ReplaceSequencesByElements().run(graph) == is_followed


def test_sequences_that_are_no_state_of_one_length() -> None:
    element = TensorType(f32, (2,))
    assert ListKind.of(SequenceType(element, 0)) is ListKind.of(SequenceType(element, None)) is None


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
