"""Random numbers and their distributions: bounds, moments, and the largest distance of the distribution functions."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper

from mo_loop import ops
from mo_loop.api import convert_model
from tests.cases import read_cases
from tests.harness import every, graph_model, node_model, parsed, refusal, run_converted

COUNT = 20_000
DISTANCE = 1.95 / math.sqrt(COUNT)
"""A sample of that size from the distribution itself has a larger distance once in a thousand times (Kolmogorov,
Smirnov); the tests have fixed seeds, so a test that passes always passes."""

normal_distribution = np.vectorize(lambda z: 0.5 * (1 + math.erf(z / math.sqrt(2))))

FLOATS = {1: np.float32, 10: np.float16, 11: np.float64}


def draws(model: Any, *feeds: Any) -> list[Any]:
    """The first output of each inference, on one compiled model."""
    return [arrays[0][1] for arrays in run_converted(model, *(feeds or ({}, {})))]


def node(op_type: str, inputs: Any, opset: int, **attributes: Any) -> Any:
    return node_model(op_type, inputs, attributes, opset=opset)


def assert_distributed(sample: Any, function: Callable[[Any], Any], slack: float = 0.0) -> None:
    ordered = np.sort(np.asarray(sample, np.float64).reshape(-1))
    expected = function(ordered)
    steps = np.arange(len(ordered) + 1) / len(ordered)
    distance = max(np.max(steps[1:] - expected), np.max(expected - steps[:-1]))
    assert distance < DISTANCE * math.sqrt(COUNT / len(ordered)) + slack, f"{distance} of {len(ordered)}"


@every(opset=[1, 22], dtype=FLOATS)
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.0, 5.0), (2.0, 2.0)])
def test_random_uniform(low: float, high: float, dtype: int, opset: int) -> None:
    model = node("RandomUniform", {}, opset, shape=[100, COUNT // 100], dtype=dtype, low=low, high=high, seed=4.0)
    first, second = draws(model)
    assert first.shape == (100, COUNT // 100)
    assert first.dtype == FLOATS[dtype]
    assert first.min() >= low
    assert first.max() <= high
    if low < high:
        assert_distributed(first, lambda x: (x - low) / (high - low), slack=1e-3 if dtype == 10 else 0)
        assert not np.array_equal(first, second)


@every(opset=[1, 22], dtype=FLOATS)
@pytest.mark.parametrize(("mean", "scale"), [(0.0, 1.0), (-3.0, 0.5), (2.0, 0.0)])
def test_random_normal(mean: float, scale: float, dtype: int, opset: int) -> None:
    model = node("RandomNormal", {}, opset, shape=[COUNT], dtype=dtype, mean=mean, scale=scale, seed=0.0)
    first, second = draws(model)
    assert first.dtype == FLOATS[dtype]
    assert np.all(np.isfinite(first))
    if scale:
        assert_distributed((first.astype(np.float64) - mean) / scale, normal_distribution, slack=2e-3)
        assert abs(float(np.corrcoef(first[:-1], first[1:])[0, 1])) < 4 / math.sqrt(COUNT)
        assert abs(float(np.corrcoef(first, second)[0, 1])) < 4 / math.sqrt(COUNT)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("op_type", ["RandomUniformLike", "RandomNormalLike"])
@pytest.mark.parametrize(("given", "dtype"), [(np.float16, None), (np.float64, None), (np.int32, 1), (np.bool_, 10)])
def test_shapes_taken_from_a_tensor(given: Any, dtype: int | None, op_type: str, dynamic: bool) -> None:
    attributes = {} if dtype is None else {"dtype": dtype}
    for shape in ((3, 4), (), (0, 2)):
        x = np.zeros(shape, given)
        for opset in (1, 22):
            found = draws(node_model(op_type, {"x": x}, attributes, opset=opset, dynamic=dynamic), {"x": x})[0]
            assert found.shape == shape
            assert found.dtype == (given if dtype is None else FLOATS[dtype])


def test_an_integer_is_no_type_of_random_numbers() -> None:
    assert "ML227" in str(refusal(node("RandomNormalLike", {"x": np.zeros(3, np.int64)}, 22)))


@pytest.mark.parametrize("op_type", ["RandomUniform", "RandomNormal"])
def test_without_a_seed_every_load_draws_anew(op_type: str) -> None:
    model = node(op_type, {}, 22, shape=[50])
    (first, second), (third, _) = draws(model), draws(model)
    assert len({first.tobytes(), second.tobytes(), third.tobytes()}) == 3


@every(op_type=["RandomUniform", "RandomNormal"], seed=[0.0, -1.5, 7.0])
def test_with_a_seed_every_load_draws_the_same(seed: float, op_type: str) -> None:
    model = node(op_type, {}, 22, shape=[50], seed=seed)
    for first, second in zip(draws(model), draws(model), strict=True):
        np.testing.assert_array_equal(first, second)
    assert not np.array_equal(draws(model)[0], draws(node(op_type, {}, 22, shape=[50], seed=seed + 1))[0])


@every(opset=[15, 22], dtype=[None, 1, 6, 9, 11])
def test_bernoulli(dtype: int | None, opset: int) -> None:
    p = np.repeat(np.float32([0, 0.25, 0.5, 1]), COUNT // 4)
    attributes = {} if dtype is None else {"dtype": dtype}
    model = node_model("Bernoulli", {"p": p}, {"seed": 3.0, **attributes}, opset=opset, dynamic=True)
    first, second = draws(model, {"p": p}, {"p": p})
    assert first.dtype == helper.tensor_dtype_to_np_dtype(dtype or 1)
    assert set(np.unique(first)) == {0, 1}
    means = first.astype(np.float64).reshape(4, -1).mean(1)
    assert means[0] == 0
    assert means[3] == 1
    np.testing.assert_allclose(means, [0, 0.25, 0.5, 1], atol=4 * 0.5 / math.sqrt(COUNT / 4))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("kind", [np.float16, np.float64])
def test_bernoulli_of_other_types(kind: Any) -> None:
    p = np.full((100, 100), 0.75, kind)
    found = draws(node("Bernoulli", {"p": p}, 22, seed=1.0), {"p": p})[0]
    assert found.dtype == kind
    assert abs(found.astype(np.float64).mean() - 0.75) < 0.02


@every(opset=[7, 22], dtype=[6, 7], shift=[0.0, 300.0, -300.0])
def test_multinomial(shift: float, dtype: int, opset: int) -> None:
    """Only differences of the logarithms matter, however large they are; impossible classes never occur."""
    p = np.array([[0.1, 0.2, 0.7, 0], [0.25, 0.25, 0.25, 0.25], [0, 1, 0, 0]])
    with np.errstate(divide="ignore"):
        x = (np.log(p) + shift).astype(np.float32)
    model = node_model("Multinomial", {"x": x}, {"sample_size": COUNT, "dtype": dtype, "seed": 2.0}, opset=opset,
                       dynamic=True)
    first, second = draws(model, {"x": x}, {"x": x})
    assert first.shape == (3, COUNT)
    assert first.dtype == {6: np.int32, 7: np.int64}[dtype]
    shares = np.stack([np.bincount(row, minlength=4) for row in first]) / COUNT
    assert np.all((shares == 0) == (p == 0))
    np.testing.assert_allclose(shares, p, atol=4 * 0.5 / math.sqrt(COUNT))
    assert not np.array_equal(first, second)


def test_multinomial_of_no_rows() -> None:
    x = np.zeros((0, 3), np.float16)
    model = node_model("Multinomial", {"x": x}, {"sample_size": 2}, opset=22, dynamic=True)
    assert draws(model, {"x": x})[0].shape == (0, 2)


# -- Dropout


def dropout(x: Any, ratio: Any, training: Any, constants: tuple[str, ...], opset: int = 13) -> Any:
    names = ["x", "" if ratio is None else "ratio", "training"]
    inputs = {"x": x, "ratio": ratio, "training": training}
    present = {name: value for name, value in inputs.items() if value is not None}
    return graph_model([helper.make_node("Dropout", names, ["y", "mask"], seed=5)],
                       {name: value for name, value in present.items() if name not in constants}, ["y", "mask"],
                       opset=opset, constants={name: value for name, value in present.items() if name in constants},
                       dynamic=("x",))


def test_the_seed_of_a_dropout_is_that_of_its_numbers() -> None:
    model = dropout(np.ones(4, np.float32), None, np.array(True), ("training",))
    assert [each.op_seed for each in convert_model(model).graph.of(ops.RandomUniform)] == [5]


@pytest.mark.parametrize("opset", [12, 13, 22])
@pytest.mark.parametrize("kind", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("constants", [(), ("ratio", "training"), ("training",)], ids=str)
@pytest.mark.parametrize("ratio", [None, 0.25, 0.0])
def test_dropout_in_training(ratio: float | None, constants: tuple[str, ...], kind: Any, opset: int) -> None:
    x = np.linspace(-1, 1, COUNT).astype(kind) + kind(3)
    share = None if ratio is None else np.float32(ratio)
    given = {"x": x, "ratio": share, "training": np.array(True)}
    feeds = {name: value for name, value in given.items() if name not in constants and value is not None}
    model = dropout(x, share, np.array(True), constants, opset)
    (y, mask), (_, other) = ([array for _, array in arrays] for arrays in run_converted(model, feeds, feeds))
    wanted = 0.5 if ratio is None else ratio
    assert mask.dtype == np.bool_
    assert abs(mask.mean() - (1 - wanted)) < 4 * 0.5 / math.sqrt(COUNT)
    np.testing.assert_allclose(y, np.where(mask, x / (1 - wanted), 0), rtol=2e-3 if kind is np.float16 else 1e-6)
    assert np.array_equal(mask, other) == (wanted == 0)


def test_training_may_be_switched_on_at_run_time() -> None:
    x = np.linspace(1, 2, 1000, dtype=np.float32)
    model = dropout(x, np.float32(0.5), np.array(True), ())
    feeds = [{"x": x, "ratio": np.float32(0.5), "training": np.array(on)} for on in (False, True, False)]
    for given, ((_, y), (_, mask)) in zip(feeds, run_converted(model, *feeds), strict=True):
        if given["training"]:
            assert 400 < mask.sum() < 600
        else:
            assert mask.all()
            np.testing.assert_array_equal(y, x)


# -- in bodies


def test_two_nodes_without_a_seed_draw_other_numbers() -> None:
    model = parsed("main () => (float[9] y) { a = RandomNormal <shape = [9]> () b = RandomNormal <shape = [9]> () "
                   "y = Sub (a, b) }")
    assert np.all(draws(model)[0] != 0)


read_cases(globals())
