"""Inference that is remembered: the same types for the same question, and nothing kept that belongs to one node."""

from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.graph import Graph
from mo_loop.graph import inference_cache as remembered
from mo_loop.graph.dimension import fresh
from mo_loop.graph.inference_cache import inferred_once, unique
from mo_loop.graph.types import TensorType, f32, i64, known_array
from tests.harness import parsed, raised
from tests.unit.graph.graphs import parameter


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "_results", {})
    monkeypatch.setattr(remembered, "_types", {})


class Counting:
    def __init__(self, result: Any) -> None:
        self.result, self.count = result, 0

    def __call__(self, types: Any) -> Any:
        self.count += 1
        return self.result(types) if callable(self.result) else self.result


X = TensorType(f32, (2, 3))


def test_the_same_question_is_asked_once() -> None:
    infer = Counting([X])
    assert inferred_once(("Abs",), [X], infer) is inferred_once(("Abs",), [X], infer) and infer.count == 1


def test_attributes_and_input_types_are_part_of_the_question() -> None:
    infer = Counting([X])
    other = TensorType(f32, (5,))
    for operation, types in ((("Abs", 1), [X]), (("Abs", 2), [X]), (("Abs", 1), [other]), (("Abs", 1), [X, None])):
        inferred_once(operation, types, infer)
    assert infer.count == 4


def test_results_with_fresh_symbols_belong_to_one_node() -> None:
    infer = Counting(lambda types: [TensorType(f32, (fresh(),))])
    first, second = (inferred_once(("NonZero",), [X], infer)[0] for _ in range(2))
    assert infer.count == 2 and first.shape != second.shape


def test_an_attribute_that_cannot_be_hashed_is_inferred_each_time() -> None:
    infer = Counting([X])
    for _ in range(2):
        inferred_once(("Op", []), [X], infer)
    assert infer.count == 2


def test_an_error_is_not_kept() -> None:
    def fails(types: Any) -> Any:
        raise ValueError("no")

    for _ in range(2):
        raised(ValueError, inferred_once, ("Abs",), [X], fails, match="no")
    assert not remembered._results


def test_equal_types_are_one_object() -> None:
    assert unique(TensorType(f32, (2, 3))) is unique(TensorType(f32, (2, 3)))
    assert unique(TensorType(f32, (2, 3))) is not unique(TensorType(i64, (2, 3)))
    known = [unique(TensorType(i64, (1,), known_array([item], (1,)))) for item in (1, 1, True, np.int64(1))]
    assert known[0] is known[1] and len({id(each) for each in known}) == 3


def test_both_tables_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "LIMIT", 4)
    for size in range(20):
        inferred_once(("Abs", size), [X], Counting([TensorType(f32, (size,))]))
        assert len(remembered._results) <= 4 and len(remembered._types) <= 4


def test_two_nodes_of_one_kind_have_outputs_of_their_own() -> None:
    graph = Graph("main")
    x = parameter(graph, 2)
    first, second = ops.Abs(x), ops.Abs(x)
    assert first.output.type is second.output.type
    graph.set_input(first, 0, parameter(graph, 7))
    graph.validate()
    assert (first.output.shape, second.output.shape) == ((7,), (2,))


def test_known_values_are_those_of_the_node() -> None:
    graph = Graph("main")
    first, second = (
        ops.Add(ops.Constant(np.int64([value]), graph=graph), np.int64([1]), graph=graph) for value in (3, 4)
    )
    assert [node.output.type.known for node in (first, second)] == [(4,), (5,)]


def test_a_conversion_keeps_nothing_of_the_one_before() -> None:
    text = "main (float[N,4] x) => (float[N,4] y) { a = Relu (x) y = Exp (a) }"
    convert_model(parsed(text))
    first = len(remembered._results), len(remembered._types)
    assert first[0] > 0
    convert_model(parsed(text))
    assert (len(remembered._results), len(remembered._types)) == first
