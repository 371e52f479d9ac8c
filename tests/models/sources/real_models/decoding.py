"""Decoders for text generation as exporters write them: every cache is an input and, with the new tokens, an output.

Names, axes and types are those of optimum: input_ids, attention_mask and position_ids of i64, past_key_values.N.key
[batch, heads, past, size] that becomes present.N.key; with an encoder past_key_values.N.decoder.key, which becomes
present.N.decoder.key, and past_key_values.N.encoder.key, which stays. tools/bench_states.py measures them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn
from transformers import (
    DynamicCache,
    EncoderDecoderCache,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

from tests.models.sources.exporting.inputs import Data, Inputs, exact, tokens
from tests.models.sources.exporting.pytorch import Catalogue
from tests.models.sources.real_models.steps import flat, pairs
from tests.models.sources.real_models.weights import steady_weights

MODELS = Catalogue(steady_weights)

VOCABULARY, PAST, SOURCE, SOUND = 8192, 5, 64, 1500
TOKENS = tokens(2, 2, 3, VOCABULARY)
OWN, CROSS = "decoder.", "encoder."


def names(start: str, layers: int, kind: str = "") -> list[str]:
    """The names of the keys and values of all layers."""
    return [f"{start}.{layer}.{kind}{part}" for layer in range(layers) for part in ("key", "value")]


def caches(layers: int, heads: int, time: int, size: int, kind: str = "") -> Inputs:
    """Keys and values of two sequences."""
    found = names("past_key_values", layers, kind)
    return {name: Data((2, heads, time, size), "float32", 10 + number) for number, name in enumerate(found)}


def text_inputs(layers: int, heads: int, size: int) -> Inputs:
    """The inputs of a model of language: three tokens for each of two sequences after a cache."""
    return {"input_ids": TOKENS, "attention_mask": exact([[1] * (PAST + 3)] * 2),
            "position_ids": exact([list(range(PAST, PAST + 3))] * 2), **caches(layers, heads, PAST, size)}


def axes(inputs: Inputs) -> Mapping[str, Mapping[int, str]]:
    """The symbolic axes of all inputs."""
    found: dict[str, dict[int, str]] = {}
    for name in inputs:
        if name.startswith("past_"):
            found[name] = {0: "batch", 2: "encoder_sequence_length" if CROSS in name else "past_sequence_length"}
        else:
            found[name] = {0: "batch", 1: "total_sequence_length" if "mask" in name else "sequence_length"}
    return found


class TextDecoder(nn.Module):
    """A model of language."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, mask: Tensor, positions: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        found = self.model(input_ids, attention_mask=mask, position_ids=positions,
                           past_key_values=DynamicCache(pairs(past)), use_cache=True, return_dict=True)
        return found.logits, *flat(found.past_key_values)


class CrossDecoder(nn.Module):
    """A decoder that attends to an encoder, whose keys and values are inputs, too."""

    def __init__(self, model: nn.Module, head: nn.Module, width: int) -> None:
        super().__init__()
        self.model = model
        self.head = head
        self.width = width

    def forward(self, input_ids: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        own = [tensor for layer in range(0, len(past), 4) for tensor in past[layer : layer + 2]]
        cross = [tensor for layer in range(0, len(past), 4) for tensor in past[layer + 2 : layer + 4]]
        cache = EncoderDecoderCache(DynamicCache(pairs(own)), DynamicCache(pairs(cross)))
        states = torch.zeros(input_ids.size(0), cross[0].size(2), self.width)  # read by nothing but for its sizes
        found = self.model(input_ids, encoder_hidden_states=states, past_key_values=cache, use_cache=True,
                           return_dict=True)
        return self.head(found.last_hidden_state), *flat(cache.self_attention_cache)


def cross_inputs(layers: int, heads: int, size: int, time: int) -> Inputs:
    """The inputs of a decoder with an encoder: one token for each of two sequences, layer by layer its caches."""
    own, cross = (list(caches(layers, heads, *each).items()) for each in ((PAST, size, OWN), (time, size, CROSS)))
    layered = [pair for layer in range(0, 2 * layers, 2) for kind in (own, cross) for pair in kind[layer : layer + 2]]
    return {"input_ids": tokens(2, 2, 1, VOCABULARY), **dict(layered)}


GPT2_LAYERS = 12
GPT2 = text_inputs(GPT2_LAYERS, 12, 64)


@MODELS.exported("gpt2_cached", exporter="trace", opset=17, cases={"two_texts": GPT2}, dynamic=axes(GPT2),
                 outputs=("logits", *names("present", GPT2_LAYERS)))
def gpt2() -> nn.Module:
    """GPT-2, 124 million parameters but for a smaller vocabulary."""
    return TextDecoder(GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, bos_token_id=1, eos_token_id=2)))


LLAMA_LAYERS = 8
LLAMA = text_inputs(LLAMA_LAYERS, 4, 64)


@MODELS.exported("llama_cached", exporter="trace", opset=17, cases={"two_texts": LLAMA}, dynamic=axes(LLAMA),
                 outputs=("logits", *names("present", LLAMA_LAYERS)))
def llama() -> nn.Module:
    """LLaMA of width 1,024 and eight layers, four heads of queries for one of keys and values."""
    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=1024, num_hidden_layers=LLAMA_LAYERS,
                         num_attention_heads=16, num_key_value_heads=4, intermediate_size=2816)
    return TextDecoder(LlamaForCausalLM(config))


def t5_weights(name: str, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """T5 does not divide scores by the root of the size of a head: its queries are as much smaller."""
    values = steady_weights(name, shape, random)
    return values / np.float32(8) if name.endswith(".q.weight") else values


T5_LAYERS = 6
T5 = cross_inputs(T5_LAYERS, 8, 64, SOURCE)


@MODELS.exported("t5_cached", exporter="trace", opset=17, cases={"two_texts": T5}, dynamic=axes(T5),
                 outputs=("logits", *names("present", T5_LAYERS, OWN)), weights=t5_weights)
def t5() -> nn.Module:
    """T5-small's decoder."""
    config = T5Config(vocab_size=VOCABULARY, d_model=512, d_kv=64, d_ff=2048, num_layers=1,
                      num_decoder_layers=T5_LAYERS, num_heads=8, attn_implementation="eager")
    model = T5ForConditionalGeneration(config)
    return CrossDecoder(model.decoder, model.lm_head, 512)


WHISPER_LAYERS = 6
WHISPER = cross_inputs(WHISPER_LAYERS, 8, 64, SOUND)


@MODELS.exported("whisper_cached", exporter="trace", opset=17, cases={"two_sounds": WHISPER}, dynamic=axes(WHISPER),
                 outputs=("logits", *names("present", WHISPER_LAYERS, OWN)))
def whisper() -> nn.Module:
    """The decoder of Whisper, base; positions up to 1,024."""
    config = WhisperConfig(vocab_size=VOCABULARY, d_model=512, encoder_layers=1, decoder_layers=WHISPER_LAYERS,
                           encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=2048,
                           decoder_ffn_dim=2048, max_target_positions=1024, pad_token_id=0, bos_token_id=1,
                           eos_token_id=2, decoder_start_token_id=3)
    model = WhisperForConditionalGeneration(config)
    return CrossDecoder(model.model.decoder, model.proj_out, 512)
