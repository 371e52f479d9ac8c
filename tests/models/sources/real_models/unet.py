"""A UNet: segmentation of images, with transposed convolutions on the way up."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.models.sources.exporting.inputs import normal
from tests.models.sources.exporting.pytorch import Catalogue
from tests.models.sources.real_models.weights import steady_weights

MODELS = Catalogue(steady_weights)

WIDTHS = (32, 64, 128, 256, 512)


def pair(inputs: int, outputs: int) -> nn.Sequential:
    """Two 3 x 3 convolutions, each with batch normalisation and ReLU."""
    layers: list[nn.Module] = []
    for width in (inputs, outputs):
        layers += [nn.Conv2d(width, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers)


@MODELS.exported("unet", exporter="trace", opset=17, cases={"one_picture": {"x": normal(1, 1, 3, 192, 192)}})
class UNet(nn.Module):
    """UNet of five levels, from 32 to 512 channels."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(pair(a, b) for a, b in zip((3, *WIDTHS), WIDTHS, strict=False))
        steps = list(zip(WIDTHS[:0:-1], WIDTHS[-2::-1], strict=True))
        self.widen = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in steps)
        self.up = nn.ModuleList(pair(2 * b, b) for _, b in steps)
        self.pool = nn.MaxPool2d(2)
        self.last = nn.Conv2d(WIDTHS[0], 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        levels = []
        for number, stage in enumerate(self.down):
            x = stage(self.pool(x) if number else x)
            levels.append(x)
        for widen, stage, level in zip(self.widen, self.up, levels[-2::-1], strict=True):
            x = stage(torch.cat([level, widen(x)], dim=1))
        return self.last(x)
