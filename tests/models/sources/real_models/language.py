"""Language models: the widths of the originals, four layers, a vocabulary of 8,192."""

from __future__ import annotations

from torch import nn
from transformers import (
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5EncoderModel,
    T5ForConditionalGeneration,
)

from tests.models.sources.exporting.inputs import exact, tokens
from tests.models.sources.exporting.pytorch import Catalogue
from tests.models.sources.real_models.steps import CrossDecoderStep, DecoderStep, cache, cache_axes, step_outputs
from tests.models.sources.real_models.weights import steady_weights
from tests.models.sources.transformers_models.wrappers import Text

MODELS = Catalogue(steady_weights)

LAYERS, VOCABULARY, TIME, PAST = 4, 8192, 128, 64
TEXT = {"one_text": {"input_ids": tokens(1, 1, TIME, VOCABULARY), "attention_mask": exact([[1] * TIME])}}
TEXT_AXES = {name: {0: "batch", 1: "time"} for name in ("input_ids", "attention_mask")}
TOKEN = tokens(2, 1, 1, VOCABULARY)
STEP = step_outputs(LAYERS)


@MODELS.exported("bert", exporter="trace", opset=17, cases=TEXT, dynamic=TEXT_AXES, outputs=("states",))
def bert() -> nn.Module:
    """BERT-base."""
    return Text(BertModel(BertConfig(vocab_size=VOCABULARY, num_hidden_layers=LAYERS)), "last_hidden_state")


@MODELS.exported("distilbert", exporter="trace", opset=17, cases=TEXT, dynamic=TEXT_AXES, outputs=("states",))
def distilbert() -> nn.Module:
    """DistilBERT."""
    return Text(DistilBertModel(DistilBertConfig(vocab_size=VOCABULARY, n_layers=LAYERS)), "last_hidden_state")


def gpt2_model() -> nn.Module:
    """GPT-2 with the head of a language model."""
    return GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_layer=LAYERS, bos_token_id=1, eos_token_id=2))


@MODELS.exported("gpt2", exporter="trace", opset=17, cases=TEXT, dynamic=TEXT_AXES, outputs=("logits",))
def gpt2() -> nn.Module:
    """GPT-2: a whole text."""
    return Text(gpt2_model(), "logits")


GPT2_STEP = {"one_token": {"input_ids": TOKEN, **cache(10, LAYERS, 1, 12, PAST, 64)}}


@MODELS.exported("gpt2_step", exporter="trace", opset=17, cases=GPT2_STEP, dynamic=cache_axes(GPT2_STEP["one_token"]),
                 outputs=STEP)
def gpt2_step() -> nn.Module:
    """GPT-2: one more token."""
    return DecoderStep(gpt2_model())


def t5_config() -> T5Config:
    """T5-small."""
    return T5Config(vocab_size=VOCABULARY, d_model=512, d_kv=64, d_ff=2048, num_layers=LAYERS,
                    num_decoder_layers=LAYERS, num_heads=8, attn_implementation="eager")


@MODELS.exported("t5_encoder", exporter="trace", opset=17, cases=TEXT, dynamic=TEXT_AXES, outputs=("states",))
def t5_encoder() -> nn.Module:
    """T5-small's encoder."""
    return Text(T5EncoderModel(t5_config()), "last_hidden_state")


T5_STEP = {
    "one_token": {"input_ids": TOKEN, **cache(20, LAYERS, 1, 8, PAST, 64),
                  **cache(30, LAYERS, 1, 8, TIME, 64, kind="cross_")}
}
T5_STEP_AXES = {**cache_axes(T5_STEP["one_token"]), **cache_axes(T5_STEP["one_token"], "cross_")}


@MODELS.exported("t5_decoder", exporter="trace", opset=17, cases=T5_STEP, dynamic=T5_STEP_AXES, outputs=STEP)
def t5_decoder() -> nn.Module:
    """T5-small's decoder: one more token."""
    model = T5ForConditionalGeneration(t5_config())
    return CrossDecoderStep(model.decoder, model.lm_head, 512)


KEY_HEADS, HEAD = 4, 64


def llama_model() -> nn.Module:
    """LLaMA of width 1,024, four heads of queries for one of keys and values."""
    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=1024, num_hidden_layers=LAYERS, num_attention_heads=16,
                         num_key_value_heads=KEY_HEADS, intermediate_size=2816)
    return LlamaForCausalLM(config)


@MODELS.exported("llama_prefill", exporter="trace", opset=17, cases=TEXT, dynamic=TEXT_AXES, outputs=("logits",))
def llama_prefill() -> nn.Module:
    """LLaMA: a whole text."""
    return Text(llama_model(), "logits")


LLAMA_STEP = {"one_token": {"input_ids": TOKEN, **cache(40, LAYERS, 1, KEY_HEADS, PAST, HEAD)}}


@MODELS.exported("llama_step", exporter="trace", opset=17, cases=LLAMA_STEP,
                 dynamic=cache_axes(LLAMA_STEP["one_token"]), outputs=STEP)
def llama_step() -> nn.Module:
    """LLaMA: one more token."""
    return DecoderStep(llama_model())
