"""Operators that generate text, with small random decoders."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from mo_loop.api import convert_model
from mo_loop.errors import ConversionErrors, MoLoopError
from mo_loop.ops.control import Loop
from tests.cases import read_cases
from tests.fuzz.generation.networks import Sizes, decoder, gpt2, whisper_encoder
from tests.fuzz.generation.networks import encoder as encoder
from tests.harness import check, raised, refusal, run_converted, with_weights

SIZES = Sizes(layers=1, vocabulary=20, rare=0)
PAD = 0


def ints(array: Any) -> Any:
    return np.array(array, np.int32)


ORDER = {"GreedySearch": "input_ids max_length - - vocab_mask",
         "Sampling": "input_ids max_length - - vocab_mask - - presence_mask seed",
         "BeamSearch": "input_ids max_length min_length num_beams num_return_sequences length_penalty - vocab_mask - - "
         "decoder_input_ids logits_processor"}
ORDER["WhisperBeamSearch"] = ORDER["BeamSearch"] + " - extra_decoding_ids temperature"
"""The inputs of the operators that a test can give."""


def generating(operator: str, inputs: Mapping[str, list[Any]], **attributes: Any) -> Any:
    """A model of one node: inputs with the dimensions that they declare."""
    given = [name if name in inputs else "" for name in ORDER[operator].split()]
    while not given[-1]:
        given.pop()
    ranks = {"sequences": 2} if "Beam" not in operator else {"sequences": 3, "sequences_scores": 2, "scores": 4}
    attributes = {"eos_token_id": 19, "pad_token_id": PAD, **attributes}
    node = helper.make_node(operator, given, list(ranks), "search", domain="com.microsoft", **attributes)
    kinds = {"length_penalty": TensorProto.FLOAT, "temperature": TensorProto.FLOAT}
    kinds |= {"input_ids": TensorProto.FLOAT} if attributes.get("model_type") == 2 else {}
    declared = [
        helper.make_tensor_value_info(name, kinds.get(name, TensorProto.INT32), dims) for name, dims in inputs.items()
    ]
    results = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT if "scores" in name else TensorProto.INT32, [None] * rank)
        for name, rank in ranks.items()
    ]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph([node], "g", declared, results), opset_imports=opsets, ir_version=10)


def greedy(inputs: Mapping[str, list[Any]], decoder: Any = None, weights: int = 3, **attributes: Any) -> Any:
    """A model of GreedySearch with a decoder of random weights."""
    decoder = decoder or gpt2(np.random.default_rng(weights), SIZES)
    return generating("GreedySearch", inputs, decoder=decoder, **attributes)


PROMPTS = {"input_ids": ["N", "S"], "max_length": [1]}
BEAMS = {**PROMPTS, "min_length": [1], "num_beams": [1], "num_return_sequences": [1], "length_penalty": [1]}


def feed(prompts: list[list[int]], limit: int, beams: int, returned: int, penalty: float = 1.0) -> dict[str, Any]:
    """Inputs of BeamSearch."""
    return {"input_ids": ints(prompts), "max_length": ints([limit]), "min_length": ints([0]),
            "num_beams": ints([beams]), "num_return_sequences": ints([returned]),
            "length_penalty": np.array([penalty], np.float32)}


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
    [[(_, found)]] = run_converted(model,
                                   {"input_ids": ints([[4, 5], [6, 7]]), "max_length": ints([6]), "vocab_mask": only})
    assert found.tolist() == [[4, 5, *[PAD] * 4], [6, 7, *[PAD] * 4]]
    [loop] = [each for scope in convert_model(model).graph.scopes() for each in scope.of(Loop)]
    assert loop.inputs[1].constant is None


def test_static_lengths_give_a_static_shape() -> None:
    model = greedy({"input_ids": [2, 3], "max_length": [1]})
    with_weights(model, max_length=ints([8]))
    del model.graph.input[1:]
    check(model, {"input_ids": ints([[4, 5, 6], [7, 8, 9]])})
    assert convert_model(model).outputs[0].shape == (2, 8)


def test_an_operator_of_the_decoder_that_is_not_known() -> None:
    decoder = gpt2(np.random.default_rng(0), SIZES)
    decoder.node[-1].op_type = "Unheard"
    raised(ConversionErrors, convert_model, greedy(PROMPTS, decoder), match="Unheard")


def test_a_shared_buffer_is_refused() -> None:
    decoder = gpt2(np.random.default_rng(0), SIZES)
    decoder.input.append(helper.make_tensor_value_info("past_sequence_length", TensorProto.INT32, [1]))
    assert "share a buffer" in str(refusal(greedy(PROMPTS, decoder)))


def test_an_encoder_is_refused() -> None:
    assert "model_type 1" in str(refusal(greedy(PROMPTS, model_type=1)))


# -- beams


def test_one_beam_is_a_greedy_search() -> None:
    decoder = gpt2(np.random.default_rng(3), SIZES)
    feeds = feed([[4, 5, 6], [7, 8, 9]], 10, 1, 1)
    [[(_, found), *_]] = run_converted(generating("BeamSearch", BEAMS, decoder=decoder), feeds)
    [[(_, tokens)]] = run_converted(greedy(PROMPTS), {name: feeds[name] for name in PROMPTS})
    assert (found[:, 0] == tokens).all()


def test_scores_are_zero_behind_the_end() -> None:
    """With one possible token, the end, the single beam is finished in the first step."""
    decoder = gpt2(np.random.default_rng(4), SIZES)
    model = generating("BeamSearch", {**BEAMS, "vocab_mask": [20]}, decoder=decoder)
    [[(_, found), _, (_, scores)]] = run_converted(model,
                                                   {**feed([[4, 5]], 6, 1, 1), "vocab_mask": ints(np.arange(20) == 19)})
    assert found.tolist() == [[[4, 5, *[PAD] * 4]]]
    assert scores.shape == (4, 1, 1, 20) and scores[0].any() and not scores[1:].any()


@pytest.mark.parametrize(("seed", "index", "sets"), [
    (4, 25, slice(None)),  # nothing is dynamic, and the loop has no iteration
    (3, 0, slice(2, 3)),  # ONNX Runtime compares a prompt with candidates of others, which changes its result here
], ids=["one prompt, one beam and one step", "the order in which prompts are finished"])
def test_searches_that_were_drawn(seed: int, index: int, sets: slice) -> None:
    from tests.fuzz.generation.configurations import answers, drawn

    case = drawn(seed, index, "BeamSearch")
    assert len(case.sets) == 3
    check(case.model(), *case.sets[sets], expected=answers(case, 0.0)[sets], atol=1e-3)


# -- draws


def sampled(prompts: list[list[int]], inputs: Mapping[str, list[Any]] = PROMPTS, **attributes: Any) -> list[Any]:
    """The tokens of Sampling in two inferences of one model."""
    model = generating("Sampling", inputs, decoder=gpt2(np.random.default_rng(3), SIZES), **attributes)
    feeds = {"input_ids": ints(prompts), "max_length": ints([10])}
    return [found for [(_, found)] in run_converted(model, feeds, feeds)]


@pytest.mark.parametrize("custom", [0, 1])
def test_one_token_that_is_left_is_drawn(custom: int) -> None:
    [[(_, best)]] = run_converted(greedy(PROMPTS), {"input_ids": ints([[4, 5], [6, 7]]), "max_length": ints([10])})
    for found in sampled([[4, 5], [6, 7]], custom=custom, top_p=0.01, min_tokens_to_keep=1):
        assert (found == best).all()


def test_draws_differ() -> None:
    """Of 60 first tokens, which are drawn from the two that are kept."""
    first, second = sampled([[4, 5]] * 60, top_p=0.01, min_tokens_to_keep=2, temperature=20.0)
    assert (first != second).any()
    assert len(np.unique(first[:, 2])) == 2


def test_a_presence_penalty_is_refused() -> None:
    with pytest.raises(MoLoopError, match="presence penalty"):
        sampled([[4]], {**PROMPTS, "presence_mask": ["N", 20]}, presence_penalty=1.0)


# -- speech

SPEECH = Sizes(layers=1, vocabulary=40, rare=0)
TOKENS = {"beginning_timestamp_token_id": 25, "no_timestamps_token_id": 24, "start_of_lm_token_id": 23}


def whisper(inputs: Mapping[str, list[Any]], operator: str = "WhisperBeamSearch", **attributes: Any) -> Any:
    """A model with an encoder of audio features, and the outputs sequences and sequences_scores."""
    rng = np.random.default_rng(6)
    graphs = {"encoder": whisper_encoder(rng, SPEECH), "decoder": decoder(rng, SPEECH, True, False, has_mask=False)}
    attributes = {"eos_token_id": 20, "decoder_start_token_id": 21, "model_type": 2, **graphs, **attributes}
    model = generating(operator, {**BEAMS, "input_ids": ["N", SPEECH.features, "E"], **inputs}, **attributes)
    del model.graph.node[0].output[2:], model.graph.output[2:]
    return model


def audio(prefixes: list[list[int]], limit: int, **inputs: Any) -> dict[str, Any]:
    features = np.random.default_rng(7).standard_normal((len(prefixes), SPEECH.features, 5)).astype(np.float32)
    return {**feed([[0]], limit, 2, 1), "input_ids": features, "decoder_input_ids": ints(prefixes), **inputs}


def test_the_probability_of_silence() -> None:
    """The softmax of the encoder's logits after the prefix: ONNX Runtime writes it on GPUs only."""
    import onnxruntime

    feeds = audio([[21, 3], [21, 4]], 6)
    model = whisper({"decoder_input_ids": ["N", "S"]}, no_speech_token_id=22)
    model.graph.node[0].output.extend(["", "", "silence"])
    model.graph.output.append(helper.make_tensor_value_info("silence", TensorProto.FLOAT, ["N"]))
    [*_, (_, found)] = run_converted(model, feeds)[0]
    [first] = [each.g for each in model.graph.node[0].attribute if each.name == "encoder"]
    alone = helper.make_model(first, opset_imports=model.opset_import, ir_version=10)
    session = onnxruntime.InferenceSession(alone.SerializeToString(), providers=["CPUExecutionProvider"])
    names = {"encoder_input_ids": feeds["input_ids"], "decoder_input_ids": feeds["decoder_input_ids"]}
    logits = session.run(["logits"], names)[0][:, -1]
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    np.testing.assert_allclose(found, (chances / chances.sum(axis=1, keepdims=True))[:, 22], atol=1e-5)


def test_what_only_gpus_have_is_refused() -> None:
    assert "cross_qk" in str(refusal(whisper({}, decoder_output_cross_qk=1)))
    assert "extra_decoding_ids" in str(refusal(whisper({"extra_decoding_ids": ["N", "L"]})))


def test_timestamps_need_their_tokens() -> None:
    assert "beginning_timestamp_token_id is None" in str(refusal(whisper({"logits_processor": [1]})))
    assert "WhisperBeamSearch" in str(refusal(whisper({"logits_processor": [1]}, operator="BeamSearch")))


def test_a_sequence_of_forbidden_tokens_counts_more_than_none() -> None:
    """Its score is -infinity in both."""
    model = whisper({"vocab_mask": [40]})
    feeds = {**audio([[21]], 6), "vocab_mask": ints(np.zeros(40))}
    del feeds["decoder_input_ids"]
    check(model, feeds)


read_cases(globals())
