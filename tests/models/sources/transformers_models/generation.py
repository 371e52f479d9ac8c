"""Whole generation as one model: a traced step in a scripted loop."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.models.sources.exporting.inputs import Inputs, exact
from tests.models.sources.exporting.pytorch import Catalogue
from tests.models.sources.transformers_models.text import gpt2_step, llama_step
from tests.models.sources.transformers_models.wrappers import CACHE_AXES, HIDDEN, cache, weights

MODELS = Catalogue(weights)


def prompts(heads: int) -> dict[str, Inputs]:
    """A last token, the keys and values of the tokens before it, and how many tokens to write."""
    return {
        "six_tokens": {"input_ids": exact([[7]]), **cache(10, 1, 5, heads), "limit": exact(6)},
        "one_token": {"input_ids": exact([[9]]), **cache(20, 1, 2, heads), "limit": exact(1)},
        "nothing": {"input_ids": exact([[11]]), **cache(30, 1, 3, heads), "limit": exact(0)},
        "at_most_twelve": {"input_ids": exact([[30]]), **cache(40, 1, 9, heads), "limit": exact(12)},
    }


AXES = {name: {2: "past"} for name in CACHE_AXES}
OUTPUTS = ("tokens", "length")


class Generate(nn.Module):
    """Greedy generation of one text."""

    def __init__(self, step: nn.Module, heads: int) -> None:
        super().__init__()
        past = torch.zeros(1, heads, 3, HIDDEN // 2)
        with torch.no_grad():
            self.step = torch.jit.trace(step.eval(), (torch.ones(1, 1, dtype=torch.int64), *[past] * 4))

    def forward(self, input_ids: Tensor, key_0: Tensor, value_0: Tensor, key_1: Tensor, value_1: Tensor,
                limit: Tensor) -> tuple[Tensor, Tensor]:
        tokens = input_ids
        last = input_ids
        for _ in range(int(limit)):
            logits, key_0, value_0, key_1, value_1 = self.step(last, key_0, value_0, key_1, value_1)
            last = logits[:, -1].argmax(dim=1, keepdim=True)
            tokens = torch.cat((tokens, last), dim=1)
            if bool(last[0, 0] < 5):
                break
        return tokens, torch.zeros_like(limit) + key_0.size(2)


@MODELS.exported("gpt2_generate", exporter="script", opset=14, cases=prompts(2), dynamic=AXES, outputs=OUTPUTS)
def gpt2_generate() -> nn.Module:
    """GPT-2 writing a text: a loop with a break, which carries the keys and values of all layers as they grow."""
    return Generate(gpt2_step(), 2)


@MODELS.exported("llama_generate", exporter="script", opset=18, cases=prompts(1), dynamic=AXES, outputs=OUTPUTS)
def llama_generate() -> nn.Module:
    """LLaMA writing a text: a loop with a break, which carries the keys and values of all layers as they grow."""
    return Generate(llama_step(), 1)
