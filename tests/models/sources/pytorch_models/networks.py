"""Ordinary networks: perceptron, convolutions, attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.models.sources.exporting.inputs import exact, normal
from tests.models.sources.exporting.pytorch import Catalogue
from tests.models.sources.pytorch_models.recurrent import BATCH_AND_TIME, SEQUENCES

MODELS = Catalogue()


IMAGES = {"two_images": {"x": normal(1, 2, 3, 8, 8)}, "one_image": {"x": normal(2, 1, 3, 8, 8)},
          "five_images": {"x": normal(3, 5, 3, 8, 8)}}


@MODELS.exported("cnn_dynamo", exporter="dynamo", opset=18, cases=IMAGES, dynamic={"x": {0: "batch"}})
@MODELS.exported("cnn", exporter="trace", opset=13, cases=IMAGES, dynamic={"x": {0: "batch"}})
def cnn() -> nn.Module:
    """A small image classifier; one batch normalisation follows a ReLU, so that no exporter can fold it away."""
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.BatchNorm2d(4),
                         nn.MaxPool2d(2), nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), nn.ReLU(), nn.Flatten(),
                         nn.Linear(24, 5))


@MODELS.exported("mlp", exporter="trace", opset=17, cases=SEQUENCES, dynamic=BATCH_AND_TIME)
def mlp() -> nn.Module:
    """A perceptron with LayerNorm, GELU and softmax."""
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3), nn.Softmax(dim=-1))


@MODELS.exported("encoder_layer", exporter="dynamo", opset=21, cases={
    "two_of_five": {"src": normal(1, 2, 5, 8)}, "one_of_three": {"src": normal(2, 1, 3, 8)},
    "three_of_nine": {"src": normal(3, 3, 9, 8)},
}, dynamic={"src": {0: "batch", 1: "time"}})
def encoder_layer() -> nn.Module:
    """nn.TransformerEncoderLayer: self-attention of two heads, batch first."""
    return nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16, batch_first=True)


ALL, FOUR, TWO = [False] * 5, [False] * 4 + [True], [False] * 2 + [True] * 3


@MODELS.exported("transformer_encoder", exporter="trace", opset=16, cases={
    "nothing_padded": {"x": normal(1, 2, 5, 8), "padded": exact([ALL, ALL])},
    "last_padded": {"x": normal(2, 1, 5, 8), "padded": exact([FOUR])},
    "some_padded": {"x": normal(3, 3, 5, 8), "padded": exact([TWO, ALL, FOUR])},
}, dynamic={"x": {0: "batch"}, "padded": {0: "batch"}})
class TransformerEncoder(nn.Module):
    """nn.TransformerEncoder: normalised first, GELU, with a mask of padded positions."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, num_layers=1, norm=nn.LayerNorm(8), enable_nested_tensor=False)

    def forward(self, x: Tensor, padded: Tensor) -> Tensor:
        return self.layers(x, src_key_padding_mask=padded)


@MODELS.exported("transformer_decoder", exporter="dynamo", opset=19, cases={
    "four_of_six": {"x": normal(1, 2, 4, 8), "memory": normal(2, 2, 6, 8)},
    "two_of_nine": {"x": normal(3, 1, 2, 8), "memory": normal(4, 1, 9, 8)},
    "seven_of_three": {"x": normal(5, 3, 7, 8), "memory": normal(6, 3, 3, 8)},
}, dynamic={"x": {0: "batch", 1: "time"}, "memory": {0: "batch", 1: "read"}})
class TransformerDecoder(nn.Module):
    """nn.TransformerDecoder: causal self-attention and attention to a memory."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
        self.layers = nn.TransformerDecoder(layer, num_layers=1)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        time = x.shape[1]
        future = torch.ones(time, time, dtype=torch.bool).triu(1)
        return self.layers(x, memory, tgt_mask=future, tgt_is_causal=False)
