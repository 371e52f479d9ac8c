"""Operators that generate text, with small random decoders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from mo_loop.api import convert_model
from mo_loop.errors import ConversionErrors, MoLoopError
from mo_loop.ops import Loop
from tests.fuzz.generation.networks import Sizes, gpt2
from tests.harness import check, run_converted

SIZES = Sizes(layers=1, vocabulary=20, rare=0)
PAD = 0


def ints(array: Any) -> Any:
    return np.array(array, np.int32)


def greedy(inputs: Mapping[str, list[Any]], decoder: Any = None, weights: int = 3, **attributes: Any) -> Any:
    """A model of GreedySearch: inputs with the dimensions that they declare."""
    given = [name if name in inputs else "" for name in ("input_ids", "max_length", "", "", "vocab_mask")]
    decoder = decoder or gpt2(np.random.default_rng(weights), SIZES)
    attributes = {"eos_token_id": 19, "pad_token_id": PAD, **attributes}
    node = helper.make_node(
        "GreedySearch", given, ["sequences"], "search", domain="com.microsoft", decoder=decoder, **attributes
    )
    declared = [helper.make_tensor_value_info(name, TensorProto.INT32, dims) for name, dims in inputs.items()]
    result = helper.make_tensor_value_info("sequences", TensorProto.INT32, [None, None])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph([node], "g", declared, [result]), opset_imports=opsets, ir_version=10)


PROMPTS = {"input_ids": ["N", "S"], "max_length": [1]}


def test_prompts_of_changing_number_and_length() -> None:
    feeds = [
        {"input_ids": ints([[4, 5, 6], [7, 8, 9]]), "max_length": ints([9])},
        {"input_ids": ints([[3]]), "max_length": ints([14])},
        {"input_ids": ints([[5, 5, 5, 5]] * 3), "max_length": ints([5])},
    ]
    check(greedy(PROMPTS), *feeds)


def test_padding_before_a_prompt_is_not_seen() -> None:
    """The tokens after a padded prompt are those after the prompt."""
    model = greedy(PROMPTS)
    [(_, padded)], [(_, plain)] = run_converted(
        model, {"input_ids": ints([[PAD, PAD, 4, 5]]), "max_length": ints([12])},
        {"input_ids": ints([[4, 5]]), "max_length": ints([10])},
    )  # fmt: skip
    assert (padded[:, 2:] == plain).all()


def test_everything_behind_the_end_is_padding() -> None:
    feeds = {"input_ids": ints([[4, 5, 6]]), "max_length": ints([12])}
    [[(_, free)]] = run_converted(greedy(PROMPTS), feeds)
    end = int(free[0, 5])
    [[(_, found)]] = run_converted(greedy(PROMPTS, eos_token_id=end), feeds)
    length = 3 + free[0, 3:].tolist().index(end)
    assert found[0].tolist() == [*free[0, :length].tolist(), *[PAD] * (12 - length)]


def test_the_loop_ends_when_all_sequences_have_ended() -> None:
    """With one token left, which is the end, no prompt needs a second step."""
    model = greedy({**PROMPTS, "vocab_mask": [20]})
    only = ints(np.arange(20) == 19)
    [[(_, found)]] = run_converted(
        model, {"input_ids": ints([[4, 5], [6, 7]]), "max_length": ints([6]), "vocab_mask": only}
    )
    assert found.tolist() == [[4, 5, *[PAD] * 4], [6, 7, *[PAD] * 4]]
    [loop] = convert_model(model).graph.of(Loop)
    assert loop.inputs[1].constant is None


def test_static_lengths_give_a_static_shape() -> None:
    model = greedy({"input_ids": [2, 3], "max_length": [1]})
    model.graph.initializer.append(onnx.numpy_helper.from_array(ints([8]), "max_length"))
    del model.graph.input[1:]
    check(model, {"input_ids": ints([[4, 5, 6], [7, 8, 9]])})
    assert convert_model(model).outputs[0].shape == (2, 8)


def test_a_first_step_with_a_decoder_of_its_own() -> None:
    first = gpt2(np.random.default_rng(8), SIZES, "init")
    check(greedy(PROMPTS, init_decoder=first), {"input_ids": ints([[4, 5, 6]]), "max_length": ints([9])})


def test_logits_behind_the_vocabulary_are_left_out() -> None:
    """ONNX Runtime reads other rows at wrong places, so there is one, and no prompt of several tokens."""
    check(greedy(PROMPTS, vocab_size=9), {"input_ids": ints([[4]]), "max_length": ints([9])})


def test_an_operator_of_the_decoder_that_is_not_known() -> None:
    decoder = gpt2(np.random.default_rng(0), SIZES)
    decoder.node[-1].op_type = "Unheard"
    with pytest.raises(ConversionErrors, match="Unheard"):
        convert_model(greedy(PROMPTS, decoder))


def test_a_shared_buffer_is_refused() -> None:
    decoder = gpt2(np.random.default_rng(0), SIZES)
    decoder.input.append(helper.make_tensor_value_info("past_sequence_length", TensorProto.INT32, [1]))
    with pytest.raises(MoLoopError, match="share a buffer"):
        convert_model(greedy(PROMPTS, decoder))


def test_an_encoder_is_refused() -> None:
    with pytest.raises(MoLoopError, match="model_type 1"):
        convert_model(greedy(PROMPTS, model_type=1))
