"""DecoderMaskedMultiHeadAttention: buffers, beams, keys of an encoder, and the forms without a CPU kernel."""

import numpy as np
import onnx
import pytest

from tests.harness import check_model, check_node

RNG = np.random.default_rng(9)
OP, NAMES = "com.microsoft::DecoderMaskedMultiHeadAttention", ["y", "present_k", "present_v"]
BEAMS, HEADS, SIZE, LENGTH = 4, 2, 4, 6
dynamic_or_not = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def step(past):
    """The inputs of one step of two sequences with two beams each."""
    tensors = {name: floats(BEAMS, 1, HEADS * SIZE) for name in ("q", "k", "v")}
    mask = RNG.integers(0, 2, (BEAMS, past + 1)).astype(np.int32)
    mask[:, -1] = 1
    return tensors | {
        "mask": mask, "bias": floats(1, HEADS, 1, past + 1), "past_k": floats(BEAMS, HEADS, LENGTH, SIZE),
        "past_v": floats(BEAMS, HEADS, LENGTH, SIZE), "past": np.array(past, np.int32), "width": None, "from": None,
        "b": floats(3 * HEADS * SIZE),
    }


def check(inputs, attributes=None, **options):
    attributes = {"num_heads": HEADS, "past_present_share_buffer": 1, **(attributes or {})}
    check_node(OP, inputs, attributes, opset=1, **{"outputs": NAMES, "rtol": 1e-4, **options})


@pytest.mark.parametrize("past", [0, 3, LENGTH - 1])
@dynamic_or_not
def test_the_new_token_is_written_into_the_buffer(past, dynamic):
    check(step(past), dynamic=dynamic)


@pytest.mark.parametrize("constants", [["width"], []], ids=["known", "at run time"])
@dynamic_or_not
def test_beams_read_what_others_wrote(constants, dynamic):
    inputs = step(3) | {"width": np.array([2], np.int32)}
    inputs["from"] = RNG.integers(0, 2, (2, 2, LENGTH)).astype(np.int32)
    check(inputs, constants=constants, dynamic=dynamic)


def test_one_beam_known_at_run_time_reads_its_own():
    inputs = step(3) | {"width": np.array([1], np.int32), "from": np.zeros((BEAMS, 1, LENGTH), np.int32)}
    check(inputs, dynamic=True)


@dynamic_or_not
def test_keys_of_an_encoder(dynamic):
    inputs = step(4) | {"k": floats(BEAMS, HEADS, 5, SIZE), "v": floats(BEAMS, HEADS, 5, SIZE)}
    inputs |= dict.fromkeys(("bias", "past_k", "past_v", "past"))
    check(inputs, {"past_present_share_buffer": 0, "scale": 0.3}, outputs=1, dynamic=dynamic)


def test_keys_without_a_past_include_their_bias():
    """They may have 3 dimensions, too."""
    inputs = step(0) | dict.fromkeys(("bias", "past_k", "past_v", "past"))
    check(inputs, {"past_present_share_buffer": 0}, outputs=1)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_a_past_that_grows_and_packed_inputs():
    """The schema describes them; the kernel for CPUs has neither."""
    x, past = floats(2, 1, 3 * HEADS * SIZE), [floats(2, HEADS, 3, SIZE) for _ in range(2)]
    q, k, v = (each.reshape(2, 1, HEADS, SIZE).transpose(0, 2, 1, 3) for each in np.split(x, 3, axis=2))
    keys, values = (np.concatenate(each, axis=2) for each in zip(past, (k, v), strict=True))
    scores = q @ keys.transpose(0, 1, 3, 2) / 2
    y = (softmax(scores) @ values).transpose(0, 2, 1, 3).reshape(2, 1, -1)
    inputs = {"q": x, "k": None, "v": None, "mask": None, "bias": None, "past_k": past[0], "past_v": past[1]}
    outputs = [*NAMES, "qk"]
    check(inputs, {"past_present_share_buffer": 0, "output_qk": 1}, outputs=outputs, expected=[y, keys, values, scores])


IN_A_LOOP = """
<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
main (int64 n, {type}[2,1,8] q, {type}[2,1,8] k, {type}[2,2,6,4] past_k, {type}[2,2,6,4] past_v)
  => ({type}[2,2,6,4] present_k, {type}[2,2,6,4] present_v, {type}[N,2,1,8] y)
{{
  go = Constant <value = bool {{1}}> ()
  present_k, present_v, y = Loop (n, go, past_k, past_v) <body = step (
      int64 i, bool cond, {type}[2,2,6,4] held_k, {type}[2,2,6,4] held_v)
    => (bool next, {type}[2,2,6,4] next_k, {type}[2,2,6,4] next_v, {type}[2,1,8] read)
  {{
    next = Identity (cond)  past = Cast <to = 6> (i)
    read, next_k, next_v = com.microsoft.DecoderMaskedMultiHeadAttention <num_heads = 2, past_present_share_buffer = 1>
      (q, k, k, , , held_k, held_v, past)
  }}>
}}"""


@pytest.mark.parametrize("kind", ["float", "float16"])
def test_a_loop_fills_the_buffer(kind):
    dtype = np.float32 if kind == "float" else np.float16
    inputs = {"q": floats(2, 1, 8, dtype=dtype), "k": floats(2, 1, 8, dtype=dtype), "n": np.int64(4)}
    inputs |= {name: floats(2, 2, 6, 4, dtype=dtype) for name in ("past_k", "past_v")}
    rtol = 1e-4 if kind == "float" else 1e-2
    check_model(onnx.parser.parse_model(IN_A_LOOP.format(type=kind)), inputs, rtol=rtol, atol=rtol)
