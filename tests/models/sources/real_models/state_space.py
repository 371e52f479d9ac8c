"""Mamba of the width of its smallest original, two layers: its selective scan unrolled, and as a loop."""

from __future__ import annotations

from torch import nn
from transformers import MambaConfig, MambaForCausalLM

from tests.models.sources.exporting.inputs import tokens
from tests.models.sources.exporting.pytorch import Catalogue
from tests.models.sources.real_models.weights import steady_weights
from tests.models.sources.transformers_models.state_space import Scanning, looped
from tests.models.sources.transformers_models.wrappers import Tokens

MODELS = Catalogue(steady_weights)

VOCABULARY = 8192


def mamba_model() -> nn.Module:
    """Mamba of width 768, 16 states for each of 1,536 channels."""
    config = MambaConfig(vocab_size=VOCABULARY, hidden_size=768, num_hidden_layers=2, use_cache=False,
                         use_mambapy=False)
    return MambaForCausalLM(config)


@MODELS.exported("mamba", exporter="trace", opset=17, cases={"one_text": {"input_ids": tokens(1, 1, 16, VOCABULARY)}},
                 outputs=("logits",))
def mamba() -> nn.Module:
    """Mamba: texts of 16 tokens, the selective scan unrolled."""
    return Tokens(mamba_model(), "logits")


@MODELS.exported("mamba_loop", exporter="trace", opset=17,
                 cases={"one_text": {"input_ids": tokens(2, 1, 64, VOCABULARY)}},
                 dynamic={"input_ids": {0: "batch", 1: "time"}}, outputs=("logits",))
def mamba_loop() -> nn.Module:
    """Mamba: texts of any length, the selective scan as a loop."""
    return Scanning(looped, mamba_model())
