"""`evaluate` of every operation that has it, compared with a formula or numbers written by hand."""

import math
import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.graph import Graph, types
from mo_loop.ops.base import Op
from tests.cases import split
from tests.texts import texts
from tests.unit.ops.examples import operations

INF, NAN = math.inf, math.nan
SIGNED = [-4.0, -2.5, -1.0, -0.5, 0.0, 0.25, 0.5, 1.5, 3.0, 7.0]
UNIT = [-0.75, -0.5, 0.0, 0.25, 0.5]
POSITIVE = [0.25, 1.0, 2.0, 9.0]
WHOLE = [-7, -3, -2, -1, 0, 1, 2, 5]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def soft_plus(x: float) -> float:
    return math.log(1 + math.exp(x))


def sign(x: float) -> int:
    return (x > 0) - (x < 0)


BITS: list[tuple[str, Callable[[int, int], int]]] = [
    ("BitwiseAnd", lambda a, b: a & b), ("BitwiseOr", lambda a, b: a | b), ("BitwiseXor", lambda a, b: a ^ b),
    ("BitwiseLeftShift", lambda a, b: a * 2**b), ("BitwiseRightShift", lambda a, b: a // 2**b),
]

TRUTH: list[tuple[str, Callable[[bool, bool], bool]]] = [
    ("LogicalAnd", lambda a, b: a and b),
    ("LogicalOr", lambda a, b: a or b),
    ("LogicalXor", lambda a, b: a != b),
]

ROWS = [[1, -2, 3], [-4, 5, 6]]
CHANNELS = [[[1, -2], [-4, 8]], [[-1, 2], [4, -8]]]
KEYS = np.array([[[0], [math.log(3)]]], np.float32)
VALUES = np.array([[[4], [8]]], np.float32)
EXPS = [math.exp(0), math.exp(1), math.exp(3)]


def many(*rows: Any) -> Any:
    return np.array(rows, np.float32)


TEXTS = texts(__file__)


def rows(title: str) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The operation and the attributes of each line of a table, and the rest of it."""
    for line in re.split(r"\n(?! )", TEXTS[title].strip()):
        name, given, rest = re.findall(r"(\w+)(?: <(.*?)>)?:? (.*)", re.sub(r"\n\s+", " ", line))[0]
        yield name, eval(f"dict({given})", vars(types) | globals()), rest


def formulas(title: str, arguments: str) -> list[tuple[Any, ...]]:
    """Lines with a formula of the arguments, after the numbers for which it is computed if the line has them."""
    parts = ((*each, rest.split(": ", 1)) for *each, rest in rows(title))
    return [(*each, *map(eval, values), eval(f"lambda {arguments}: {formula}")) for *each, (*values, formula) in parts]


def numbers() -> Iterator[tuple[str, dict[str, Any], list[Any], Any]]:
    """Lines with inputs and what the operation computes of them: an array, several, or NotImplemented."""
    for name, attributes, rest in rows("numbers"):
        inputs, expected = split(rest[1:])
        yield name, attributes, eval(f"[{', '.join(inputs)}]"), eval(expected.removeprefix(" = "))


ONE_BY_ONE = formulas("formulas of one number", "x")
PAIRS = formulas("formulas of two numbers", "a, b")
WHOLE_PAIRS = formulas("formulas of two integers", "a, b")
CASES = list(numbers())

OUTSIDE: list[tuple[str, dict[str, Any], Callable[[int], list[Any]]]] = [
    ("Gather", {}, lambda i: [[1, 2], [i], 0]), ("GatherElements", {"axis": 0}, lambda i: [[1, 2], [i]]),
    ("GatherND", {}, lambda i: [[1, 2], [[i]]]), ("ScatterUpdate", {}, lambda i: [[1, 2], [i], [7], 0]),
    ("ScatterElementsUpdate", {}, lambda i: [[1, 2], [i], [7], 0]),
    ("ScatterNDUpdate", {}, lambda i: [[1, 2], [[i]], [7]]),
]


def named(argument: Any) -> str:
    """The text of an argument in the name of a test: functions have no stable text."""
    return str(argument) if isinstance(argument, str | dict) else ""


def given(values: Any) -> Any:
    """Numbers with a point as f32, others unchanged."""
    array = np.asarray(values)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def evaluated(name: str, attributes: dict[str, Any], inputs: list[Any]) -> tuple[Any, ...]:
    """The outputs, whose types are the inferred ones."""
    arrays = [given(each) for each in inputs]
    graph = Graph()
    node = getattr(ops, name)(*(ops.Constant(each, graph=graph).output for each in arrays), **attributes)
    found = node.evaluate(*arrays)
    if found is NotImplemented:
        return (found,)
    outputs = found if isinstance(found, tuple) else (found,)
    assert [each.dtype for each in outputs] == [output.dtype.numpy for output in node.outputs]
    for each, output in zip(outputs, node.outputs, strict=True):
        assert each.ndim == output.rank
    return outputs


@pytest.mark.parametrize(("name", "attributes", "inputs", "formula"), ONE_BY_ONE, ids=named)
def test_functions_of_one_number(
    name: str, attributes: dict[str, Any], inputs: list[Any], formula: Callable[..., Any]
) -> None:
    (found,) = evaluated(name, attributes, [inputs])
    np.testing.assert_allclose(found, [formula(each) for each in inputs], rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(("name", "attributes", "formula"), [*PAIRS, *WHOLE_PAIRS], ids=named)
def test_functions_of_two_integers(name: str, attributes: dict[str, Any], formula: Callable[..., Any]) -> None:
    pairs = [(a, b) for a, b in product(WHOLE, WHOLE) if b]
    (found,) = evaluated(name, attributes, [[a for a, _ in pairs], [b for _, b in pairs]])
    assert found.tolist() == [formula(a, b) for a, b in pairs]


@pytest.mark.parametrize(("name", "attributes", "formula"), PAIRS, ids=named)
def test_functions_of_two_fractions(name: str, attributes: dict[str, Any], formula: Callable[..., Any]) -> None:
    pairs = list(product(SIGNED, SIGNED))
    (found,) = evaluated(name, attributes, [[a for a, _ in pairs], [b for _, b in pairs]])
    assert found.tolist() == [formula(a, b) for a, b in pairs]


@pytest.mark.parametrize(("name", "formula"), BITS, ids=named)
def test_functions_of_bits(name: str, formula: Callable[[int, int], int]) -> None:
    pairs = list(product((0, 1, 2, 5, 12), (0, 1, 2, 3)))
    (found,) = evaluated(name, {}, [[a for a, _ in pairs], [b for _, b in pairs]])
    assert found.tolist() == [formula(a, b) for a, b in pairs]


@pytest.mark.parametrize(("name", "formula"), TRUTH, ids=named)
def test_functions_of_truth_values(name: str, formula: Callable[[bool, bool], bool]) -> None:
    pairs = list(product((False, True), repeat=2))
    (found,) = evaluated(name, {}, [[a for a, _ in pairs], [b for _, b in pairs]])
    assert found.tolist() == [formula(a, b) for a, b in pairs]


@pytest.mark.parametrize(
    ("name", "attributes", "inputs", "expected"), CASES,
    ids=[f"{name}-{number}" for number, (name, *_) in enumerate(CASES)],
)
def test_other_functions(name: str, attributes: dict[str, Any], inputs: list[Any], expected: Any) -> None:
    found = evaluated(name, attributes, inputs)
    if expected is NotImplemented:
        assert found[0] is NotImplemented
        return
    wanted = expected if isinstance(expected, tuple) else (expected,)
    for each, numbers in zip(found, wanted, strict=True):
        assert each.shape == np.shape(numbers)
        np.testing.assert_allclose(each, numbers, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(("name", "attributes", "inputs"), OUTSIDE, ids=[name for name, *_ in OUTSIDE])
def test_indices_outside_a_tensor_are_left_to_the_runtime(
    name: str, attributes: dict[str, Any], inputs: Callable[[int], list[Any]]
) -> None:
    refused = [evaluated(name, attributes, inputs(place))[0] is NotImplemented for place in (-3, -2, -1, 0, 1, 2, 3)]
    assert refused == [True, False, False, False, False, True, True]


def test_every_operation_that_is_evaluated_has_a_case() -> None:
    tables: tuple[Any, ...] = (ONE_BY_ONE, PAIRS, WHOLE_PAIRS, BITS, TRUTH, CASES)
    tested = {name for table in tables for name, *_ in table}
    evaluating = {name for name in operations() if getattr(ops, name).evaluate is not Op.evaluate}
    assert evaluating - tested == {"Constant"}
