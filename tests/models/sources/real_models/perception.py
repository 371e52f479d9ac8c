"""Transformers for images and sound: the widths of the originals, four layers."""

from __future__ import annotations

from torch import nn
from transformers import ViTConfig, ViTModel, WhisperConfig, WhisperForConditionalGeneration

from tests.models.sources.exporting.inputs import normal, tokens
from tests.models.sources.exporting.pytorch import Catalogue
from tests.models.sources.real_models.steps import CrossDecoderStep, cache, cache_axes, step_outputs
from tests.models.sources.real_models.weights import steady_weights
from tests.models.sources.transformers_models.wrappers import Picture, Sound

MODELS = Catalogue(steady_weights)

LAYERS, HEADS, WIDTH, VOCABULARY = 4, 6, 384, 8192
PICTURE = {"one_picture": {"pixel_values": normal(1, 1, 3, 224, 224)}}
SOUND = {"one_sound": {"input_features": normal(1, 1, 80, 3000)}}


@MODELS.exported("vit", exporter="trace", opset=17, cases=PICTURE, dynamic={"pixel_values": {0: "batch"}},
                 outputs=("states",))
def vit() -> nn.Module:
    """ViT-B/16."""
    return Picture(ViTModel(ViTConfig(num_hidden_layers=LAYERS)), "last_hidden_state")


def whisper() -> WhisperForConditionalGeneration:
    """Whisper, tiny."""
    config = WhisperConfig(vocab_size=VOCABULARY, d_model=WIDTH, encoder_layers=LAYERS, decoder_layers=LAYERS,
                           encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, encoder_ffn_dim=4 * WIDTH,
                           decoder_ffn_dim=4 * WIDTH, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                           decoder_start_token_id=3)
    return WhisperForConditionalGeneration(config)


@MODELS.exported("whisper_encoder", exporter="trace", opset=17, cases=SOUND, dynamic={"input_features": {0: "batch"}},
                 outputs=("states",))
def whisper_encoder() -> nn.Module:
    """Whisper's encoder: 30 seconds of sound."""
    return Sound(whisper().model.encoder, "last_hidden_state")


STEP = {
    "one_token": {"input_ids": tokens(2, 1, 1, VOCABULARY), **cache(10, LAYERS, 1, HEADS, 32, WIDTH // HEADS),
                  **cache(20, LAYERS, 1, HEADS, 1500, WIDTH // HEADS, kind="cross_")}
}


@MODELS.exported("whisper_decoder", exporter="trace", opset=17, cases=STEP, dynamic=cache_axes(STEP["one_token"]),
                 outputs=step_outputs(LAYERS))
def whisper_decoder() -> nn.Module:
    """Whisper's decoder: one more token."""
    model = whisper()
    return CrossDecoderStep(model.model.decoder, model.proj_out, WIDTH)
