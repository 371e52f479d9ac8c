"""Wrappers that turn a model of the transformers package into a module with tensors as parameters, and a tuple as
result."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import DynamicCache, EncoderDecoderCache

from tests.models.sources.exporting.inputs import Data, Inputs, exact, normal, tokens

LAYERS, HEADS, HIDDEN, VOCABULARY = 2, 2, 16, 50
CACHE_NAMES = tuple(f"{kind}_{layer}" for layer in range(LAYERS) for kind in ("key", "value"))

TEXT_AXES = {name: {0: "batch", 1: "time"} for name in ("input_ids", "attention_mask")}
TEXTS = {
    "two_of_seven": {"input_ids": tokens(1, 2, 7, VOCABULARY), "attention_mask": exact([[1] * 7] * 2)},
    "one_of_three": {"input_ids": tokens(2, 1, 3, VOCABULARY), "attention_mask": exact([[1] * 3])},
    "three_padded": {"input_ids": tokens(3, 3, 11, VOCABULARY),
                     "attention_mask": exact([[1] * 5 + [0] * 6, [1] * 11, [1] * 2 + [0] * 9])},
}


def weights(name: str, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Normal numbers of deviation 0.3; around 1 where a normalisation multiplies by them."""
    values = random.normal(scale=0.3, size=shape).astype(np.float32)
    return values + np.float32(1) if len(shape) == 1 and name.endswith("weight") else values


def cache(seed: int, batch: int, time: int, heads: int = HEADS) -> Inputs:
    """Keys and values of `time` earlier tokens for every layer."""
    size = HIDDEN // HEADS if heads == HEADS else HIDDEN // (2 * heads)
    return {name: Data((batch, heads, time, size), "float32", seed + i) for i, name in enumerate(CACHE_NAMES)}


CACHE_AXES = {name: {0: "batch", 2: "past"} for name in CACHE_NAMES}


class Outputs(nn.Module):
    """A model with some of its outputs, in the order of their names."""

    def __init__(self, model: nn.Module, *names: str) -> None:
        super().__init__()
        self.model = model
        self.names = names

    def chosen(self, **inputs: Any) -> tuple[Tensor, ...]:
        """The outputs asked for."""
        found = self.model(**inputs, return_dict=True)
        return tuple(found[name] for name in self.names)


class Text(Outputs):
    """From tokens and a mask of those that count."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        return self.chosen(input_ids=input_ids, attention_mask=attention_mask)


class Tokens(Outputs):
    """From tokens alone."""

    def forward(self, input_ids: Tensor) -> tuple[Tensor, ...]:
        return self.chosen(input_ids=input_ids)


class Picture(Outputs):
    """From images."""

    def forward(self, pixel_values: Tensor) -> tuple[Tensor, ...]:
        return self.chosen(pixel_values=pixel_values)


class Sound(Outputs):
    """From spectra."""

    def forward(self, input_features: Tensor) -> tuple[Tensor, ...]:
        return self.chosen(input_features=input_features)


class TextAndPicture(Outputs):
    """From tokens with their mask, and images."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor, pixel_values: Tensor) -> tuple[Tensor, ...]:
        return self.chosen(input_ids=input_ids, attention_mask=attention_mask, pixel_values=pixel_values)


class Decoder(nn.Module):
    """From the tokens so far and the states of an encoder to scores of the next tokens."""

    def __init__(self, model: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.head = head

    def forward(self, input_ids: Tensor, encoder_states: Tensor) -> Tensor:
        found = self.model(input_ids, attention_mask=torch.ones_like(input_ids), encoder_hidden_states=encoder_states,
                           use_cache=False, return_dict=True)
        return self.head(found.last_hidden_state)


class Step(nn.Module):
    """One token with the keys and values of those before it; answers scores, and keys and values with one more."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, key_0: Tensor, value_0: Tensor, key_1: Tensor, value_1: Tensor) -> Any:
        past = DynamicCache([(key_0, value_0), (key_1, value_1)])
        found = self.model(input_ids, past_key_values=past, use_cache=True, return_dict=True)
        return found.logits, *_flat(found.past_key_values)


class EncodedStep(nn.Module):
    """A step that attends to the states of an encoder as well."""

    def __init__(self, model: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.head = head

    def forward(self, input_ids: Tensor, encoder_states: Tensor, key_0: Tensor, value_0: Tensor, key_1: Tensor,
                value_1: Tensor) -> Any:
        past = EncoderDecoderCache(DynamicCache([(key_0, value_0), (key_1, value_1)]), DynamicCache())
        found = self.model(input_ids, encoder_hidden_states=encoder_states, past_key_values=past, use_cache=True,
                           return_dict=True)
        return self.head(found.last_hidden_state), *_flat(past.self_attention_cache)


def _flat(past: DynamicCache) -> list[Tensor]:
    """Key and value of every layer."""
    return [tensor for layer in past.layers for tensor in (layer.keys, layer.values)]


STEP_OUTPUTS = ("logits", *(f"new_{name}" for name in CACHE_NAMES))


def encoder_states(seed: int, batch: int, time: int) -> Data:
    """The states of an encoder for `time` positions."""
    return normal(seed, batch, time, HIDDEN)
