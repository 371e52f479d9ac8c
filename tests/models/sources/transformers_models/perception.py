"""Models of images and sound: ViT, CLIP and Whisper."""

from __future__ import annotations

from torch import nn
from transformers import CLIPConfig, CLIPModel, ViTConfig, ViTModel, WhisperConfig, WhisperForConditionalGeneration

from tests.models.sources.exporting.inputs import exact, normal, tokens
from tests.models.sources.exporting.pytorch import Catalogue
from tests.models.sources.transformers_models.wrappers import (
    CACHE_AXES,
    HEADS,
    HIDDEN,
    LAYERS,
    STEP_OUTPUTS,
    VOCABULARY,
    Decoder,
    EncodedStep,
    Picture,
    Sound,
    TextAndPicture,
    cache,
    encoder_states,
    weights,
)

MODELS = Catalogue(weights)

SIDE, PATCH = 16, 4
SIZES = {"hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
         "intermediate_size": 2 * HIDDEN}
PICTURES = {"two_pictures": {"pixel_values": normal(1, 2, 3, SIDE, SIDE)},
            "one_picture": {"pixel_values": normal(2, 1, 3, SIDE, SIDE)},
            "five_pictures": {"pixel_values": normal(3, 5, 3, SIDE, SIDE)}}
PICTURE_AXES = {"pixel_values": {0: "batch"}}
VIT_OUTPUTS = ("last_hidden_state", "pooled")


@MODELS.exported("vit", exporter="trace", opset=14, cases=PICTURES, dynamic=PICTURE_AXES, outputs=VIT_OUTPUTS)
@MODELS.exported("vit_dynamo", exporter="dynamo", opset=18, cases=PICTURES, dynamic=PICTURE_AXES, outputs=VIT_OUTPUTS)
def vit() -> nn.Module:
    """ViT: patches of images, a class token, an encoder and a pooled output."""
    config = ViTConfig(**SIZES, image_size=SIDE, patch_size=PATCH)
    return Picture(ViTModel(config), "last_hidden_state", "pooler_output")


# Each text ends with the highest token: CLIP reads it at the place of its end.
LAST = VOCABULARY - 1
PAIRS = {
    "three_texts": {
        "input_ids": exact([[1, 8, 9, 7, LAST, 0, 0], [1, 30, 31, 32, 33, 34, LAST], [1, 5, LAST, 0, 0, 0, 0]]),
        "attention_mask": exact([[1] * 5 + [0] * 2, [1] * 7, [1] * 3 + [0] * 4]),
        "pixel_values": normal(1, 2, 3, SIDE, SIDE),
    },
    "one_text": {"input_ids": exact([[1, 12, 40, LAST]]), "attention_mask": exact([[1] * 4]),
                 "pixel_values": normal(2, 1, 3, SIDE, SIDE)},
    "two_texts": {"input_ids": exact([[1, 3, 4, 5, 6, 7, 8, 9, LAST], [1, 20, 21, LAST, 0, 0, 0, 0, 0]]),
                  "attention_mask": exact([[1] * 9, [1] * 4 + [0] * 5]), "pixel_values": normal(3, 4, 3, SIDE, SIDE)},
}
PAIR_AXES = {"input_ids": {0: "texts", 1: "time"}, "attention_mask": {0: "texts", 1: "time"},
             "pixel_values": {0: "pictures"}}
CLIP_OUTPUTS = ("logits_per_image", "text_embeds", "image_embeds")


@MODELS.exported("clip", exporter="trace", opset=16, cases=PAIRS, dynamic=PAIR_AXES, outputs=CLIP_OUTPUTS)
@MODELS.exported("clip_dynamo", exporter="dynamo", opset=20, cases=PAIRS, dynamic=PAIR_AXES, outputs=CLIP_OUTPUTS)
def clip() -> nn.Module:
    """CLIP: similarity of texts and images, and the embeddings of both."""
    text = SIZES | {"vocab_size": VOCABULARY, "max_position_embeddings": 16}
    text |= {"bos_token_id": 1, "eos_token_id": LAST, "pad_token_id": 0}
    image = SIZES | {"image_size": SIDE, "patch_size": PATCH}
    return TextAndPicture(CLIPModel(CLIPConfig(text_config=text, vision_config=image, projection_dim=8)), *CLIP_OUTPUTS)


BINS, FRAMES = 8, 20
SOUNDS = {"two_sounds": {"input_features": normal(1, 2, BINS, FRAMES)},
          "one_sound": {"input_features": normal(2, 1, BINS, FRAMES)},
          "five_sounds": {"input_features": normal(3, 5, BINS, FRAMES)}}
SOUND_AXES = {"input_features": {0: "batch"}}


def whisper() -> WhisperForConditionalGeneration:
    """Whisper for spectra of 20 frames."""
    config = WhisperConfig(vocab_size=VOCABULARY, d_model=HIDDEN, encoder_layers=LAYERS, decoder_layers=LAYERS,
                           encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, encoder_ffn_dim=2 * HIDDEN,
                           decoder_ffn_dim=2 * HIDDEN, num_mel_bins=BINS, max_source_positions=FRAMES // 2,
                           max_target_positions=16, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                           decoder_start_token_id=3)
    return WhisperForConditionalGeneration(config)


@MODELS.exported("whisper_encoder", exporter="trace", opset=15, cases=SOUNDS, dynamic=SOUND_AXES, outputs=("states",))
@MODELS.exported("whisper_encoder_dynamo", exporter="dynamo", opset=19, cases=SOUNDS, dynamic=SOUND_AXES,
                 outputs=("states",))
def whisper_encoder() -> nn.Module:
    """Whisper's encoder: convolutions over time, then attention."""
    return Sound(whisper().model.encoder, "last_hidden_state")


TRANSCRIPTS = {"two_of_six": {"input_ids": tokens(1, 2, 6, VOCABULARY), "encoder_states": encoder_states(4, 2, 10)},
               "one_of_two": {"input_ids": tokens(2, 1, 2, VOCABULARY), "encoder_states": encoder_states(5, 1, 10)},
               "three_of_nine": {"input_ids": tokens(3, 3, 9, VOCABULARY), "encoder_states": encoder_states(6, 3, 10)}}
TRANSCRIPT_AXES = {"input_ids": {0: "batch", 1: "time"}, "encoder_states": {0: "batch"}}


@MODELS.exported("whisper_decoder", exporter="trace", opset=17, cases=TRANSCRIPTS, dynamic=TRANSCRIPT_AXES,
                 outputs=("logits",))
@MODELS.exported("whisper_decoder_dynamo", exporter="dynamo", opset=21, cases=TRANSCRIPTS, dynamic=TRANSCRIPT_AXES,
                 outputs=("logits",))
def whisper_decoder() -> nn.Module:
    """Whisper's decoder: causal attention, and attention to the encoder's states."""
    model = whisper()
    return Decoder(model.model.decoder, model.proj_out)


STEPS = {
    name: {"input_ids": tokens(number, batch, 1, VOCABULARY), "encoder_states": encoder_states(6 + number, batch, 10)}
    | cache(10 * number, batch, past)
    for number, (name, batch, past) in enumerate((("after_five", 2, 5), ("after_two", 1, 2), ("after_nine", 3, 9)), 1)
}
STEP_AXES = {"input_ids": {0: "batch"}, "encoder_states": {0: "batch"}, **CACHE_AXES}


@MODELS.exported("whisper_step", exporter="trace", opset=17, cases=STEPS, dynamic=STEP_AXES, outputs=STEP_OUTPUTS)
@MODELS.exported("whisper_step_dynamo", exporter="dynamo", opset=21, cases=STEPS, dynamic=STEP_AXES,
                 outputs=STEP_OUTPUTS)
def whisper_step() -> nn.Module:
    """Whisper's decoder: one more token, with the earlier keys and values, and attention to the encoder's states."""
    model = whisper()
    return EncodedStep(model.model.decoder, model.proj_out)
