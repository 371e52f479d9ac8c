"""Mean, scale, layout and channel order of the inputs of models with states: states take no part in them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mo_loop.api import convert_model
from mo_loop.errors import UsageError
from tests.harness import parsed
from tests.runtime.states.stepping import Feeds, Sequence, stepped

STEP = """main (float[batch,3,4,2] x, float[batch,3,4,2] h0) => (float[batch,3,4,2] y, float[batch,3,4,2] hN) {
  s = Add (x, h0) hN = Tanh (s) y = Mul (x, hN) }"""
"""A picture and a state of its shape."""

CACHE = """main (float[batch,L,3] x, float[batch,T,3] past) => (float[batch,L,3] y, float[batch,R,3] present) {
  one = Constant <value_ints = [1]> () present = Concat <axis = 1> (past, x)
  s = ReduceSum <keepdims = 1> (present, one) y = Mul (s, x) }"""

MEAN, SCALE = np.float32([1, 2, 3]).reshape(3, 1, 1), np.float32([2, 4, 5]).reshape(3, 1, 1)


def of_x(change: Callable[[Any], Any]) -> Callable[[Feeds], Feeds]:
    return lambda feeds: {**feeds, "x": np.ascontiguousarray(change(feeds["x"]))}


def steps(*shape: int) -> list[Sequence]:
    random = np.random.default_rng(5)
    return [Sequence(shape[0], [{"x": random.standard_normal(shape).astype(np.float32)} for _ in range(4)])]


@pytest.mark.parametrize("name, options, prepared", [
    ("scale", {"scale": 2.0}, lambda x: x / 2),
    ("of all inputs", {"mean_values": "[1,2,3]", "scale_values": [2, 4, 5]}, lambda x: (x - MEAN) / SCALE),
    ("by name", {"mean_values": "x[1,2,3]", "scale_values": "x[2]"}, lambda x: (x - MEAN) / 2),
    ("reversed", {"reverse_input_channels": True, "layout": "x(nchw)"}, lambda x: x[:, ::-1]),
])
@pytest.mark.parametrize("asked", [{}, {"transform": "MakeStateful[param_res_names={'h0':'hN'}]"}])
def test_values(name: str, options: dict[str, Any], prepared: Callable[[Any], Any], asked: dict[str, Any]) -> None:
    assert stepped(parsed(STEP), steps(2, 3, 4, 2), prepared=of_x(prepared), **options, **asked).worst < 1e-5


def test_a_layout() -> None:
    found = stepped(
        parsed(STEP), steps(2, 4, 2, 3), prepared=of_x(lambda x: (x - MEAN.reshape(3)).transpose(0, 3, 1, 2)),
        layout="nchw->nhwc", mean_values=[1, 2, 3],
    )
    assert found.worst < 1e-5


@pytest.mark.parametrize("beams", [False, True])
def test_a_cache(beams: bool) -> None:
    """The index of sequences is not an input that is prepared."""
    found = stepped(parsed(CACHE), steps(2, 1, 3), beams=beams, prepared=of_x(lambda x: (x - MEAN.reshape(3)) / 2),
                    mean_values="[1,2,3]", scale=2, layout="n?c")
    assert found.worst < 1e-5


@pytest.mark.parametrize("options", [
    {"mean_values": "h0[1]"}, {"scale_values": "x[2],h0[2]"}, {"layout": "h0(nchw->nhwc)"}, {"layout": "h0(nchw)"},
    {"layout": "hN(nchw->nhwc)"}, {"layout": {"x": "nchw", "hN": ("nchw", "nhwc")}, "batch": 2},
])
def test_a_state_is_not_prepared(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="is no longer an input or output") as error:
        convert_model(parsed(STEP), stateful=True, **options)
    assert error.value.code == "ML202"
    assert "the input 'h0' and the output 'hN' became the state 'h0hN'" in str(error.value)


def test_the_number_of_inputs_is_that_without_states() -> None:
    with pytest.raises(UsageError, match=r"numbers of values \(2\) and of inputs \(1\) differ[^~]*name them: x"):
        convert_model(parsed(STEP), stateful=True, mean_values=[[1], [2]])


def test_only_states_to_scale() -> None:
    model = parsed("""main (int64[batch] x, float[batch] h0) => (float[batch] y, float[batch] hN) {
        f = Cast <to = 1> (x) hN = Add (f, h0) y = Neg (hN) }""")
    with pytest.raises(UsageError, match="--scale changes nothing"):
        convert_model(model, stateful=True, scale=2)


def test_a_layout_says_where_the_batch_of_a_state_is() -> None:
    model = parsed("""main (float[1,3] x, float[2,1,3] h0) => (float[1,3] y, float[2,1,3] hN) {
        u = Add (x, h0) hN = Tanh (u) n = Constant <value_ints = [0]> () y = ReduceSum <keepdims = 0> (hN, n) }""")
    assert str(convert_model(model, stateful=True, batch=4, layout="x(nc),h0(?nc)").inputs) == "[<x: f32[4,3]>]"
