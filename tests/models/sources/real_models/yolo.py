"""A detector in the manner of YOLOv8n: backbone, pyramid of features both ways, heads without anchors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.models.sources.exporting.inputs import normal
from tests.models.sources.exporting.pytorch import Catalogue
from tests.models.sources.real_models.weights import steady_weights

MODELS = Catalogue(steady_weights)

SIDE, CLASSES, BINS = 416, 80, 16
STRIDES = (8, 16, 32)


class Unit(nn.Sequential):
    """Convolution, batch normalisation, SiLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, stride: int = 1) -> None:
        convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        super().__init__(convolution, nn.BatchNorm2d(outputs), nn.SiLU())


class Bottleneck(nn.Module):
    """Two 3 x 3 units, added to their input where asked for."""

    def __init__(self, width: int, adds: bool) -> None:
        super().__init__()
        self.body = nn.Sequential(Unit(width, width, 3), Unit(width, width, 3))
        self.adds = adds

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) if self.adds else self.body(x)


class Stage(nn.Module):
    """Half of the channels pass through bottlenecks; every intermediate result is concatenated."""

    def __init__(self, inputs: int, outputs: int, depth: int, adds: bool) -> None:
        super().__init__()
        half = outputs // 2
        self.split = Unit(inputs, outputs)
        self.blocks = nn.ModuleList(Bottleneck(half, adds) for _ in range(depth))
        self.join = Unit(half * (2 + depth), outputs)

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.split(x).chunk(2, dim=1))
        for block in self.blocks:
            parts.append(block(parts[-1]))
        return self.join(torch.cat(parts, dim=1))


class Pooling(nn.Module):
    """Three poolings in a row, concatenated with their input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.narrow = Unit(width, width // 2)
        self.pool = nn.MaxPool2d(5, stride=1, padding=2)
        self.join = Unit(width * 2, width)

    def forward(self, x: Tensor) -> Tensor:
        parts = [self.narrow(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.join(torch.cat(parts, dim=1))


class Head(nn.Module):
    """For one scale: the distribution of each side of a box, and the scores of the classes."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.sides = nn.Sequential(Unit(inputs, 64, 3), Unit(64, 64, 3), nn.Conv2d(64, 4 * BINS, 1))
        self.scores = nn.Sequential(Unit(inputs, CLASSES, 3), Unit(CLASSES, CLASSES, 3), nn.Conv2d(CLASSES, CLASSES, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.sides(x).flatten(2), self.scores(x).flatten(2)


@MODELS.exported("yolo", exporter="trace", opset=17, cases={"one_picture": {"x": normal(1, 1, 3, SIDE, SIDE)}})
class Yolo(nn.Module):
    """A detector of the size of YOLOv8n: boxes and scores of all places of three scales."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(Unit(3, 16, 3, 2), Unit(16, 32, 3, 2), Stage(32, 32, 1, True))
        self.eighth = nn.Sequential(Unit(32, 64, 3, 2), Stage(64, 64, 2, True))
        self.sixteenth = nn.Sequential(Unit(64, 128, 3, 2), Stage(128, 128, 2, True))
        self.last = nn.Sequential(Unit(128, 256, 3, 2), Stage(256, 256, 1, True), Pooling(256))
        self.up = nn.Upsample(scale_factor=2.0, mode="nearest")
        self.down_16 = Stage(256 + 128, 128, 1, False)
        self.down_8 = Stage(128 + 64, 64, 1, False)
        self.reduce_16 = Unit(64, 64, 3, 2)
        self.up_16 = Stage(64 + 128, 128, 1, False)
        self.reduce_32 = Unit(128, 128, 3, 2)
        self.up_32 = Stage(128 + 256, 256, 1, False)
        self.heads = nn.ModuleList(Head(width) for width in (64, 128, 256))
        self.register_buffer("bins", torch.arange(BINS).view(1, 1, BINS, 1), persistent=False)
        centres = torch.cat([_centres(SIDE // stride) for stride in STRIDES], 1)
        self.register_buffer("centres", centres, persistent=False)
        steps = torch.cat([torch.full((1, (SIDE // stride) ** 2), float(stride)) for stride in STRIDES], 1)
        self.register_buffer("steps", steps, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        eighth = self.eighth(self.stem(x))
        sixteenth = self.sixteenth(eighth)
        last = self.last(sixteenth)
        middle = self.down_16(torch.cat([self.up(last), sixteenth], 1))
        fine = self.down_8(torch.cat([self.up(middle), eighth], 1))
        middle = self.up_16(torch.cat([self.reduce_16(fine), middle], 1))
        coarse = self.up_32(torch.cat([self.reduce_32(middle), last], 1))
        found = [head(level) for head, level in zip(self.heads, (fine, middle, coarse), strict=True)]
        sides = torch.cat([each for each, _ in found], 2)
        scores = torch.cat([each for _, each in found], 2)
        return torch.cat([self.boxes(sides), scores.sigmoid()], 1)

    def boxes(self, sides: Tensor) -> Tensor:
        """Centre and size of each box, from the expected distance of its sides."""
        odds = sides.view(sides.size(0), 4, BINS, -1).softmax(2)
        near, far = (odds * self.bins).sum(2).chunk(2, 1)
        low, high = self.centres - near, self.centres + far
        return torch.cat([(low + high) / 2, high - low], 1) * self.steps


def _centres(side: int) -> Tensor:
    """The middle of every place of a square grid, [2, side * side]."""
    places = torch.arange(side) + 0.5
    rows, columns = torch.meshgrid(places, places, indexing="ij")
    return torch.stack([columns.flatten(), rows.flatten()])
