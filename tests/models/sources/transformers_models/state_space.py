"""Mamba, its selective scan unrolled as the package writes it, as a loop, and as PyTorch's scan operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan
from torch.nn import functional as F
from transformers import MambaConfig, MambaForCausalLM

from tests.models.sources.exporting.inputs import tokens
from tests.models.sources.exporting.pytorch import Catalogue
from tests.models.sources.transformers_models.wrappers import HIDDEN, LAYERS, VOCABULARY, Tokens, weights

MODELS = Catalogue(weights)

FIVE_LONG = {"two_of_five": {"input_ids": tokens(1, 2, 5, VOCABULARY)},
             "one_of_five": {"input_ids": tokens(2, 1, 5, VOCABULARY)},
             "four_of_five": {"input_ids": tokens(3, 4, 5, VOCABULARY)}}
ANY_LENGTH = {"two_of_five": {"input_ids": tokens(1, 2, 5, VOCABULARY)},
              "one_of_one": {"input_ids": tokens(2, 1, 1, VOCABULARY)},
              "three_of_twelve": {"input_ids": tokens(3, 3, 12, VOCABULARY)}}
PAIRS = {"two_of_five": {"input_ids": tokens(1, 2, 5, VOCABULARY)},
         "two_of_one": {"input_ids": tokens(2, 2, 1, VOCABULARY)},
         "two_of_twelve": {"input_ids": tokens(3, 2, 12, VOCABULARY)}}
BATCH, BATCH_AND_TIME = {"input_ids": {0: "batch"}}, {"input_ids": {0: "batch", 1: "time"}}


def mamba_model() -> nn.Module:
    """Mamba with a state of four numbers for each of 32 channels."""
    config = MambaConfig(vocab_size=VOCABULARY, hidden_size=HIDDEN, num_hidden_layers=LAYERS, state_size=4,
                         time_step_rank=2, use_cache=False, use_mambapy=False)
    return MambaForCausalLM(config)


@MODELS.exported("mamba", exporter="trace", opset=14, cases=FIVE_LONG, dynamic=BATCH, outputs=("logits",))
@MODELS.exported("mamba_dynamo", exporter="dynamo", opset=18, cases=FIVE_LONG, dynamic=BATCH, outputs=("logits",))
def mamba() -> nn.Module:
    """Mamba: texts of five tokens, the selective scan unrolled."""
    return Tokens(mamba_model(), "logits")


class Scanning(nn.Module):
    """Mamba with another function for its recurrence."""

    def __init__(self, recurrence: Callable[[Tensor, Tensor, Tensor], Tensor], model: nn.Module) -> None:
        super().__init__()
        self.inner = Tokens(model, "logits")
        self.recurrence = recurrence

    def forward(self, input_ids: Tensor) -> tuple[Tensor, ...]:
        with patch("transformers.models.mamba.modeling_mamba.mamba_selective_scan", self.selective_scan):
            return self.inner(input_ids)

    def selective_scan(self, x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, **more: Any) -> Tensor:
        """Same as the package's function: x and dt are [batch, channels, time], b and c [batch, states, time]."""
        dt = F.softplus(dt + more["delta_bias"][:, None]).permute(2, 0, 1)
        decay = torch.exp(a * dt[..., None])
        drive = dt[..., None] * b.permute(2, 0, 1)[:, :, None] * x.permute(2, 0, 1)[..., None]
        y = self.recurrence(decay, drive, c.permute(2, 0, 1)).permute(1, 2, 0)
        return (y + x * more["D"][:, None]) * F.silu(more["z"])


@torch.jit.script
def looped(decay: Tensor, drive: Tensor, read: Tensor) -> Tensor:
    """A loop over time whose result grows; decay and drive are [time, batch, channels, states]."""
    state = torch.zeros_like(drive[0])
    rows = drive[:0, :, :, 0]
    for i in range(decay.size(0)):
        state = decay[i] * state + drive[i]
        rows = torch.cat((rows, (state * read[i].unsqueeze(1)).sum(-1).unsqueeze(0)), dim=0)
    return rows


def scanned(decay: Tensor, drive: Tensor, read: Tensor) -> Tensor:
    """PyTorch's scan operator over time."""

    def step(state: Tensor, slices: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        decay, drive, read = slices
        state = decay * state + drive
        return state, (state * read.unsqueeze(1)).sum(-1)

    return scan(step, torch.zeros_like(drive[0]), (decay, drive, read), dim=0)[1]


@MODELS.exported("mamba_loop", exporter="trace", opset=17, cases=ANY_LENGTH, dynamic=BATCH_AND_TIME,
                 outputs=("logits",))
def mamba_loop() -> nn.Module:
    """Mamba: texts of any length, the selective scan as a loop."""
    return Scanning(looped, mamba_model())


@MODELS.exported("mamba_scan_dynamo", exporter="dynamo", opset=21, cases=PAIRS, dynamic={"input_ids": {1: "time"}},
                 outputs=("logits",))
def mamba_scan() -> nn.Module:
    """Mamba: two texts of any length, the selective scan as the scan operator."""
    return Scanning(scanned, mamba_model())
