"""Modules that decode one token with the keys and values of those before it, for any number of layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import DynamicCache, EncoderDecoderCache

from tests.models.sources.exporting.inputs import Data, Inputs


def cache(seed: int, layers: int, *shape: int, kind: str = "") -> Inputs:
    """Keys and values of shape [batch, heads, time, size] for every layer."""
    names = [f"{kind}{part}_{layer}" for layer in range(layers) for part in ("key", "value")]
    return {name: Data(shape, "float32", seed + number) for number, name in enumerate(names)}


def cache_axes(inputs: Inputs, kind: str = "") -> Mapping[str, Mapping[int, str]]:
    """The symbolic axes of the inputs that `cache` makes."""
    starts = (f"{kind}key_", f"{kind}value_")
    return {name: {0: "batch", 2: f"{kind}past"} for name in inputs if name.startswith(starts)}


def step_outputs(layers: int) -> tuple[str, ...]:
    """The names of what a step answers."""
    return ("logits", *(f"new_{part}_{layer}" for layer in range(layers) for part in ("key", "value")))


class DecoderStep(nn.Module):
    """Answers scores, and keys and values with one token more."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        found = self.model(input_ids, past_key_values=DynamicCache(pairs(past)), use_cache=True, return_dict=True)
        return found.logits, *flat(found.past_key_values)


class CrossDecoderStep(nn.Module):
    """A step that attends to an encoder's states, too, whose keys and values are inputs."""

    def __init__(self, model: nn.Module, head: nn.Module, width: int) -> None:
        super().__init__()
        self.model = model
        self.head = head
        self.width = width

    def forward(self, input_ids: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        half = len(past) // 2
        caches = EncoderDecoderCache(DynamicCache(pairs(past[:half])), DynamicCache(pairs(past[half:])))
        found = self.model(input_ids, encoder_hidden_states=torch.zeros(1, past[-1].size(2), self.width),
                           past_key_values=caches, use_cache=True, return_dict=True)
        return self.head(found.last_hidden_state), *flat(caches.self_attention_cache)


def pairs(tensors: Sequence[Tensor]) -> list[tuple[Any, Any]]:
    """Key and value of each layer."""
    return list(zip(tensors[::2], tensors[1::2], strict=True))


def flat(past: DynamicCache) -> list[Tensor]:
    """Keys and values of all layers in turn."""
    return [tensor for layer in past.layers for tensor in (layer.keys, layer.values)]
