"""The inputs that `mo-loop verify` generates: their roles, types and sizes."""

from dataclasses import replace
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
from mo_loop.errors import InputError, UnsupportedError
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


def test_dynamic_dimensions_are_within_the_bounds_of_the_ir() -> None:
    made = generator("main (float[N,M,K] a) => (float[N,M,K] c) { c = Identity (a) }", a=((6, 8), (0, 1), (40, None)))
    shapes = [made.draw(number)["a"].shape for number in range(6)]
    assert {n for n, _, _ in shapes} <= {6, 7, 8} and {m for _, m, _ in shapes} == {0, 1}
    assert min(k for *_, k in shapes) >= 40 and len(set(shapes)) > 3
    assert [made.allows(*each) for each in (("N", 5), ("N", 6), ("M", 0), ("K", 39))] == [False, True, True, False]


def test_dimensions_of_one_name_have_one_size_and_expressions_are_computed() -> None:
    made = generator("main (float[N,past] a, float[N,3] b) => (float[N,past] c) { c = Identity (a) }")
    entry = made.inputs[0]
    made.inputs.append(entry.__class__("mask", entry.dtype, ("N", "past + 1"), Role()))
    drawn = made.draw(0)
    assert drawn["a"].shape == (2, 3) and drawn["b"].shape == (2, 3) and drawn["mask"].shape == (2, 4)


@pytest.mark.parametrize(("name", "size"), [
    ("N // T", 1), ("N / T", 1), ("N // (T - T)", 1), ("N % 0", 1), ("N ** 9999", 1), ("2 * N // 3", 1), ("N - 9", 0),
    ("-", 2), ("-N", 2), ("N +", 2), ("+".join(["N"] * 900), 2), ("9" * 5000 + " + 1", 2),
])
def test_names_of_dimensions_that_have_no_value(name: str, size: int) -> None:
    """Divisions by zero and other operators give 1; what is not an expression is a name like any other."""
    assert size_of(name, {"N": 2, "T": 0}) == size


@pytest.mark.parametrize("name", ["N * 99999999999999999", "N + 999999999999999999999999"])
def test_sizes_beyond_the_memory_are_refused_with_the_input(name: str) -> None:
    made = generator("main (float[N] x, float[T] z) => (float[N] y) { y = Neg (x) }")
    made.inputs[1] = replace(made.inputs[1], dims=(name,))
    with pytest.raises(InputError, match="no values can be generated for the input 'z'") as error:
        made.draw(0)
    assert error.value.code == "ML242"


def test_sizes_differ_between_sets_and_one_set_has_only_ones() -> None:
    made = generator("main (float[N,T] x) => (float[N,T] y) { y = Neg (x) }")
    assert [made.draw(number)["x"].shape for number in range(3)] == [(2, 3), (1, 1), (5, 2)]
    assert made.sized(0, {"N": 2, "T": 0})["x"].shape == (2, 0)


def test_sizes_of_the_ir_are_used() -> None:
    made = generator("main (float[N,T] x) => (float[N,T] y) { y = Neg (x) }", x=(4, None))
    assert made.draw(1)["x"].shape == (4, 1)


def test_the_same_seed_gives_the_same_arrays() -> None:
    text = "main (float[3] x, uint8[9] b) => (float[3] y) { y = Neg (x) }"
    first, again, other = (Generator(load(parsed(text)), {}, seed).draw(0) for seed in (1, 1, 2))
    assert np.array_equal(first["x"], again["x"]) and not np.array_equal(first["x"], other["x"])
    assert first["b"].dtype == np.uint8 and first["b"].max() > 127


def test_a_mask_begins_with_ones() -> None:
    made = generator("main (int64[N,T] attention_mask) => (int64[N,T] y) { y = Neg (attention_mask) }")
    for number in range(5):
        mask = made.draw(number)["attention_mask"]
        assert (mask[:, 0] == 1).all() and (np.diff(mask, axis=1) <= 0).all()


def test_a_sequence_is_a_list_of_tensors() -> None:
    made = generator("main (seq(float[?,2]) s) => (float[A,2] y) { y = ConcatFromSequence <axis = 0> (s) }")
    drawn = made.draw(0)["s"]
    assert [each.shape[1:] for each in drawn] == [(2,)] * 3


def test_an_input_without_a_type_is_refused_with_the_option_that_helps() -> None:
    model = parsed("main (float[2] x) => (float[2] y) { y = Neg (x) }")
    model.graph.input[0].type.tensor_type.elem_type = 0
    with pytest.raises(UnsupportedError, match=r"no values .* 'x'") as raised:
        Generator(load(model), {})
    assert "--input-data" in raised.value.hint


def test_lengths_by_their_name_fit_the_longest_sequence() -> None:
    made = generator("main (float[B,T,3] x, int64[B] x_lengths) => (int64[B] y) { y = Identity (x_lengths) }")
    for number in range(4):
        drawn = made.draw(number)
        assert drawn["x_lengths"].max() == drawn["x"].shape[1] and drawn["x_lengths"].min() >= 1


def test_the_height_and_width_of_images_are_not_tiny() -> None:
    made = generator("main (float[N,3,H,W] x) => (float[N,3,H,W] y) { y = Neg (x) }")
    assert made.draw(0)["x"].shape == (2, 3, 64, 96) and made.draw(1)["x"].shape == (1, 3, 32, 32)


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
