"""Language models: BERT, GPT-2, T5 and LLaMA, whole sequences and single steps with a cache."""

from __future__ import annotations

from torch import nn
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5EncoderModel,
    T5ForConditionalGeneration,
)

from tests.models.sources.exporting.inputs import tokens
from tests.models.sources.exporting.pytorch import Catalogue
from tests.models.sources.transformers_models.wrappers import (
    CACHE_AXES,
    HEADS,
    HIDDEN,
    LAYERS,
    STEP_OUTPUTS,
    TEXT_AXES,
    TEXTS,
    VOCABULARY,
    EncodedStep,
    Step,
    Text,
    cache,
    encoder_states,
    weights,
)

MODELS = Catalogue(weights)

STEPS = {"after_five": {"input_ids": tokens(1, 2, 1, VOCABULARY), **cache(10, 2, 5)},
         "after_two": {"input_ids": tokens(2, 1, 1, VOCABULARY), **cache(20, 1, 2)},
         "after_eleven": {"input_ids": tokens(3, 3, 1, VOCABULARY), **cache(30, 3, 11)}}
STEP_AXES = {"input_ids": {0: "batch"}, **CACHE_AXES}


@MODELS.exported("bert", exporter="trace", opset=14, cases=TEXTS, dynamic=TEXT_AXES,
                 outputs=("last_hidden_state", "pooled"))
@MODELS.exported("bert_dynamo", exporter="dynamo", opset=18, cases=TEXTS, dynamic=TEXT_AXES,
                 outputs=("last_hidden_state", "pooled"))
def bert() -> nn.Module:
    """BERT: encoder with learnt positions and a pooled output."""
    config = BertConfig(vocab_size=VOCABULARY, hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                        intermediate_size=2 * HIDDEN, max_position_embeddings=32)
    return Text(BertModel(config), "last_hidden_state", "pooler_output")


def gpt2_model() -> nn.Module:
    """GPT-2 with the head of a language model."""
    config = GPT2Config(vocab_size=VOCABULARY, n_embd=HIDDEN, n_layer=LAYERS, n_head=HEADS, n_positions=32,
                        bos_token_id=1, eos_token_id=2)
    return GPT2LMHeadModel(config)


@MODELS.exported("gpt2", exporter="trace", opset=15, cases=TEXTS, dynamic=TEXT_AXES, outputs=("logits",))
@MODELS.exported("gpt2_dynamo", exporter="dynamo", opset=19, cases=TEXTS, dynamic=TEXT_AXES, outputs=("logits",))
def gpt2() -> nn.Module:
    """GPT-2: causal attention over a whole text, scores of every next token."""
    return Text(gpt2_model(), "logits")


@MODELS.exported("gpt2_step", exporter="trace", opset=16, cases=STEPS, dynamic=STEP_AXES, outputs=STEP_OUTPUTS)
@MODELS.exported("gpt2_step_dynamo", exporter="dynamo", opset=20, cases=STEPS, dynamic=STEP_AXES, outputs=STEP_OUTPUTS)
def gpt2_step() -> nn.Module:
    """GPT-2: one more token, with the keys and values of the earlier ones."""
    return Step(gpt2_model())


def t5_config() -> T5Config:
    """T5 with gated GELU."""
    return T5Config(vocab_size=VOCABULARY, d_model=HIDDEN, d_kv=HIDDEN // HEADS, d_ff=2 * HIDDEN, num_layers=LAYERS,
                    num_heads=HEADS, feed_forward_proj="gated-gelu", attn_implementation="eager")


@MODELS.exported("t5_encoder", exporter="trace", opset=17, cases=TEXTS, dynamic=TEXT_AXES, outputs=("states",))
@MODELS.exported("t5_encoder_dynamo", exporter="dynamo", opset=20, cases=TEXTS, dynamic=TEXT_AXES, outputs=("states",))
def t5_encoder() -> nn.Module:
    """T5's encoder: relative positions in buckets, RMS normalisation."""
    return Text(T5EncoderModel(t5_config()), "last_hidden_state")


T5_STEPS = {
    name: {"input_ids": case["input_ids"],
           "encoder_states": encoder_states(40 + i, len(case["input_ids"].array()), 4 + i)}
    | {key: value for key, value in case.items() if key != "input_ids"}
    for i, (name, case) in enumerate(STEPS.items())
}
T5_STEP_AXES = {**STEP_AXES, "encoder_states": {0: "batch", 1: "read"}}


@MODELS.exported("t5_step", exporter="trace", opset=18, cases=T5_STEPS, dynamic=T5_STEP_AXES, outputs=STEP_OUTPUTS)
@MODELS.exported("t5_step_dynamo", exporter="dynamo", opset=21, cases=T5_STEPS, dynamic=T5_STEP_AXES,
                 outputs=STEP_OUTPUTS)
def t5_step() -> nn.Module:
    """T5's decoder: one more token, with the earlier keys and values, and attention to the encoder's states."""
    model = T5ForConditionalGeneration(t5_config())
    return EncodedStep(model.decoder, model.lm_head)


KEY_HEADS = 1
LLAMA_STEPS = {"after_five": {"input_ids": tokens(1, 2, 1, VOCABULARY), **cache(50, 2, 5, KEY_HEADS)},
               "after_two": {"input_ids": tokens(2, 1, 1, VOCABULARY), **cache(60, 1, 2, KEY_HEADS)},
               "after_eleven": {"input_ids": tokens(3, 3, 1, VOCABULARY), **cache(70, 3, 11, KEY_HEADS)}}


def llama_model() -> nn.Module:
    """LLaMA with two heads of queries for one of keys and values."""
    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                         num_key_value_heads=KEY_HEADS, intermediate_size=2 * HIDDEN, max_position_embeddings=32)
    return LlamaForCausalLM(config)


@MODELS.exported("llama", exporter="trace", opset=19, cases=TEXTS, dynamic=TEXT_AXES, outputs=("logits",))
@MODELS.exported("llama_dynamo", exporter="dynamo", opset=21, cases=TEXTS, dynamic=TEXT_AXES, outputs=("logits",))
def llama() -> nn.Module:
    """LLaMA: rotary positions, RMS normalisation, gated SiLU, grouped queries."""
    return Text(llama_model(), "logits")


@MODELS.exported("llama_step", exporter="trace", opset=20, cases=LLAMA_STEPS, dynamic=STEP_AXES, outputs=STEP_OUTPUTS)
@MODELS.exported("llama_step_dynamo", exporter="dynamo", opset=18, cases=LLAMA_STEPS, dynamic=STEP_AXES,
                 outputs=STEP_OUTPUTS)
def llama_step() -> nn.Module:
    """LLaMA: one more token, with the keys and values of the earlier ones."""
    return Step(llama_model())
