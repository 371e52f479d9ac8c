"""The inputs that `mo-loop verify` generates: their roles, types and sizes."""

from dataclasses import replace as replace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from mo_loop.compare.execution.isolated import IsolatedError
from mo_loop.compare.input_sets.expected_sequences import _stepped_axis as _stepped_axis
from mo_loop.compare.input_sets.expected_sets import SetSearch
from mo_loop.compare.input_sets.expected_sets import sizes_in as sizes_in
from mo_loop.compare.input_sets.generated import Generator, size_of
from mo_loop.compare.input_sets.roles import COUNTS as COUNTS
from mo_loop.compare.input_sets.roles import Input, Role, roles, values_of
from mo_loop.frontend.model import load
from mo_loop.graph.types import ElementType, i4, i8, u4, u8
from tests.cases import read_cases
from tests.harness import floats, parsed


def generator(text: str, **known: Any) -> Generator:
    return Generator(load(parsed(text)), known)


def test_words_and_segments_stay_below_the_lengths_of_their_tables() -> None:
    node = helper.make_node(
        "EmbedLayerNormalization", ["ids", "kinds", "words", "places", "segments", "g", "b"], ["y"],
        domain="com.microsoft",
    )
    tables = {"words": (9, 4), "places": (7, 4), "segments": (2, 4), "g": (4,), "b": (4,)}
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT32, ["N", "T"]) for name in ("ids", "kinds")]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", "T", 4])
    weights = [numpy_helper.from_array(floats(*shape), name) for name, shape in tables.items()]
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph([node], "g", inputs, [output], weights), opset_imports=domains)
    assert roles(load(model)) == {"ids": Role("index", 9), "kinds": Role("index", 2)}


@pytest.mark.parametrize(("name", "size"), [
    ("N // T", 1), ("N / T", 1), ("N // (T - T)", 1), ("N % 0", 1), ("N ** 9999", 1), ("2 * N // 3", 1), ("N - 9", 0),
    ("-", 2), ("-N", 2), ("N +", 2), ("+".join(["N"] * 900), 2), ("9" * 5000 + " + 1", 2),
])
def test_names_of_dimensions_that_have_no_value(name: str, size: int) -> None:
    """Divisions by zero and other operators give 1; what is not an expression is a name like any other."""
    assert size_of(name, {"N": 2, "T": 0}) == size


def test_a_mask_begins_with_ones() -> None:
    made = generator("main (int64[N,T] attention_mask) => (int64[N,T] y) { y = Neg (attention_mask) }")
    for number in range(5):
        mask = made.draw(number)["attention_mask"]
        assert (mask[:, 0] == 1).all() and (np.diff(mask, axis=1) <= 0).all()


def test_lengths_by_their_name_fit_the_longest_sequence() -> None:
    made = generator("main (float[B,T,3] x, int64[B] x_lengths) => (int64[B] y) { y = Identity (x_lengths) }")
    for number in range(4):
        drawn = made.draw(number)
        assert drawn["x_lengths"].max() == drawn["x"].shape[1] and drawn["x_lengths"].min() >= 1


def test_larger_sizes_are_tried_until_a_set_is_accepted() -> None:
    made = generator("main (float[N,1,T] x) => (float[N,1,T] y) { y = Neg (x) }")
    tried = []

    def run(feeds: dict[str, Any]) -> list[Any]:
        tried.append(feeds["x"].shape)
        if feeds["x"].shape[2] < 300 or feeds["x"].shape[0] != 1:
            raise IsolatedError("too short", "error")
        return []

    search = SetSearch(made, [300])
    shapes = [each.feeds["x"].shape for each in search.accepted(3, run)]
    assert shapes == [(1, 1, 300), (1, 1, 300), (1, 1, 301)] and (2, 1, 3) in tried
    assert list(search.missing) == ["N = 0", "T = 0"]


@pytest.mark.parametrize("dtype", [i8, u8, u4, i4], ids=str)
def test_integers_of_few_bits_have_their_whole_range(dtype: ElementType) -> None:
    """The ends are where quantised numbers saturate."""
    found = values_of(Input("x", dtype, (4000,), Role()), (4000,), 0, np.random.default_rng(0)).astype(np.int64)
    lowest = -(1 << (dtype.bits - 1)) if dtype.kind == "int" else 0
    assert set(found.tolist()) == set(range(lowest, lowest + (1 << dtype.bits)))


read_cases(globals())
