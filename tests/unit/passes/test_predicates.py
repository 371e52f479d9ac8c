"""The predicates of patterns: their results, and the explanations if they are false."""

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.dimension import fresh
from mo_loop.graph.types import UNKNOWN, SequenceType, TensorType, f16, f32, i64
from mo_loop.transforms.predicates import (
    Predicate,
    as_predicate,
    consumed_by,
    consumed_only_by,
    consumers_count,
    consumers_more_than,
    has_static_dims,
    has_static_rank,
    has_static_shape,
    is_constant,
    rank_equals,
    rank_more_than,
    shape_equals,
    type_matches,
    value_equals,
)
from tests.unit.graphs import parameter

ALL = (
    consumers_count(1), consumers_count(2), consumers_more_than(1), rank_equals(1, 2), rank_more_than(1),
    has_static_rank(), has_static_shape(), has_static_dims(0), shape_equals(2, 3), type_matches(f32),
    is_constant(), value_equals(0), consumed_by(ops.ReLU),
)


def typed(graph: Graph, type_: object) -> Value:
    return ops.Parameter(graph=graph, type=type_).output


def filled(graph: Graph, *numbers: float, dtype: object = np.float32) -> Value:
    return ops.Constant(np.array(numbers, dtype), graph=graph).output


def test_consumers_are_inputs_not_nodes(graph: Graph) -> None:
    x = parameter(graph, 2)
    assert not consumers_count(1)(x)
    ops.ReLU(x)
    assert consumers_count(1)(x) and not consumers_more_than(1)(x)
    ops.Add(x, x)
    assert consumers_count(3)(x) and consumers_more_than(2)(x)
    assert consumers_count(1).reason(x) == "wants 1 consumer, found 3"
    assert consumers_more_than(3).reason(x) == "wants more than 3 consumers, found 3"


def test_which_nodes_consume(graph: Graph) -> None:
    x = parameter(graph, 2)
    assert consumed_only_by(ops.Add)(x) and not consumed_by(ops.ReLU, ops.Add)(x)
    assert consumed_by(ops.ReLU).reason(x) == "wants a consumer ReLU, found none"
    ops.ReLU(x)
    ops.Add(x, x)
    assert consumed_by(ops.ReLU)(x) and consumed_by(ops.Multiply, ops.Add)(x)
    assert consumed_only_by(ops.ReLU, ops.Add)(x) and not consumed_only_by(ops.ReLU)(x)
    assert consumed_only_by(ops.ReLU).reason(x) == "wants no other consumer than ReLU, found ReLU, Add"


def test_ranks(graph: Graph) -> None:
    known, unknown = parameter(graph, 2, 3), typed(graph, TensorType(f32, None))
    assert rank_equals(1, 2)(known) and not rank_equals(1, 3)(known) and rank_more_than(1)(known)
    assert not rank_more_than(2)(known) and has_static_rank()(known)
    for each in (rank_equals(0), rank_more_than(0), has_static_rank()):
        assert not each(unknown)
    assert rank_equals(1, 3).reason(known) == "wants rank 1 or 3, found 2"


def test_shapes(graph: Graph) -> None:
    static, partly = parameter(graph, 2, 3), typed(graph, TensorType(f32, (fresh(), 3)))
    unknown = typed(graph, TensorType(f32, None))
    assert has_static_shape()(static) and shape_equals(2, 3)(static) and not shape_equals(3, 2)(static)
    assert has_static_dims(1, -1)(partly) and has_static_dims(0, 1, -1, -2)(static)
    for outside in (2, 3, -3):
        assert not has_static_dims(outside)(static)
    assert not has_static_dims(0)(partly) and not has_static_dims(-2)(partly)
    for each in (has_static_shape(), has_static_dims(0), shape_equals(2, 3)):
        assert not each(unknown)
    assert not has_static_shape()(partly) and not shape_equals(2, 3)(partly)


def test_types(graph: Graph) -> None:
    x = parameter(graph, 2)
    assert type_matches(f16, f32)(x) and not type_matches(i64)(x)


@pytest.mark.parametrize("type_", [UNKNOWN, SequenceType(TensorType(f32, (2,))), TensorType(f32, None)], ids=str)
@pytest.mark.parametrize("each", ALL, ids=lambda each: each.wanted)
def test_nothing_is_asked_in_vain(graph: Graph, each: Predicate, type_: object) -> None:
    value = typed(graph, type_)
    assert each(value) is (type_ == TensorType(f32, None) and each.wanted.startswith("element type"))
    assert each.reason(value).startswith(f"wants {each.wanted}, found ")


class TestValueEquals:
    def test_every_element(self, graph: Graph) -> None:
        assert value_equals(2)(filled(graph, 2, 2, 2)) and not value_equals(2)(filled(graph, 2, 2, 3))
        assert not value_equals(2)(filled(graph)) and value_equals(0.5)(filled(graph, 0.5))
        assert not value_equals(2)(parameter(graph, 1))

    def test_an_array_elementwise(self, graph: Graph) -> None:
        assert value_equals([1, 2])(filled(graph, 1, 2)) and not value_equals([1, 2])(filled(graph, 2, 1))
        assert not value_equals([1, 2])(filled(graph, 1, 2, 3))

    def test_nan_equals_nothing(self, graph: Graph) -> None:
        assert not value_equals(np.nan)(filled(graph, np.nan))

    def test_looks_through_operations(self, graph: Graph) -> None:
        assert value_equals(3)(ops.Add(filled(graph, 1), filled(graph, 2)).output)

    def test_large_constants_never_match(self, graph: Graph) -> None:
        many = filled(graph, *[0] * 9)
        assert value_equals(0, limit=36)(many) and not value_equals(0, limit=35)(many)
        assert value_equals(1, limit=35).reason(many).endswith("found a value that is not constant: f32[9]")

    def test_says_what_there_is(self, graph: Graph) -> None:
        assert value_equals(1).reason(filled(graph, 2, 3)) == "wants the value 1, found [2. 3.]"


class TestCombinations:
    def test_and_or_not(self, graph: Graph) -> None:
        x = parameter(graph, 2, 3)
        two, three, static = rank_equals(2), rank_equals(3), has_static_shape()
        assert (two & static)(x) and not (three & static)(x) and (three | static)(x)
        assert not (three | ~static)(x) and (~three)(x)

    def test_the_words(self, graph: Graph) -> None:
        x = parameter(graph, 2, 3)
        a, b, c = rank_equals(3), rank_more_than(2), has_static_shape()
        assert (c & a).reason(x) == "wants a static shape and rank 3, found 2"
        assert ((a | b) & c).wanted == "(rank 3 or a rank above 2) and a static shape"
        assert (~(a | b)).wanted == "not (rank 3 or a rank above 2)"
        assert (~(a & b)).wanted == "not (rank 3 and a rank above 2)"

    def test_a_refusal_of_a_negated_combination(self, graph: Graph) -> None:
        both = ~(rank_equals(2) & has_static_rank())
        x = parameter(graph, 2, 3)
        assert not both(x) and both.reason(x) == "wants not (rank 2 and a known rank), found 2"

    def test_plain_functions(self, graph: Graph) -> None:
        def is_even(value: Value) -> bool:
            return value.rank == 2

        x = parameter(graph, 2, 3)
        assert (has_static_rank() & is_even)(x) and as_predicate(is_even).wanted == "is_even"
        assert as_predicate(lambda _: True).wanted == "a condition"
        assert as_predicate(lambda _: False).reason(x) == "wants a condition, found f32[2,3]"

    def test_the_second_is_asked_only_if_the_first_leaves_it_open(self, graph: Graph) -> None:
        def fails(value: Value) -> bool:
            raise AssertionError("asked in vain")

        x = parameter(graph, 2)
        assert not (rank_equals(5) & fails)(x) and (rank_equals(1) | fails)(x)
