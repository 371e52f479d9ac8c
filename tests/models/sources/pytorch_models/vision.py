"""Networks on images: convolutions of every kind, resampling, pooling, and what follows a detector."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.models.sources.exporting.inputs import normal
from tests.models.sources.exporting.pytorch import Catalogue

MODELS = Catalogue()

IMAGES = {"two_images": {"x": normal(1, 2, 4, 8, 8)}, "one_image": {"x": normal(2, 1, 4, 8, 8)},
          "five_images": {"x": normal(3, 5, 4, 8, 8)}}
SIZES = {"two_of_eight": {"x": normal(1, 2, 4, 8, 8)}, "one_wide": {"x": normal(2, 1, 4, 6, 11)},
         "three_high": {"x": normal(3, 3, 4, 9, 5)}}
BATCH = {"x": {0: "batch"}}
BATCH_AND_SIZE = {"x": {0: "batch", 2: "height", 3: "width"}}


@MODELS.exported("conv_transpose", exporter="trace", opset=11, cases=SIZES, dynamic=BATCH_AND_SIZE)
def conv_transpose() -> nn.Module:
    """Transposed convolutions with stride, output padding, groups and dilation, and an instance normalisation."""
    return nn.Sequential(nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
                         nn.InstanceNorm2d(6, affine=True), nn.LeakyReLU(0.1),
                         nn.ConvTranspose2d(6, 2, (2, 3), stride=(1, 2), dilation=2, bias=False))


@MODELS.exported("grouped", exporter="trace", opset=15, cases=IMAGES, dynamic=BATCH)
@MODELS.exported("grouped_dynamo", exporter="dynamo", opset=21, cases=IMAGES, dynamic=BATCH)
class Grouped(nn.Module):
    """Depthwise and dilated convolutions, reflected borders, and pooling to 2 by 2, to 1 by 1, and in ceiling mode."""

    def __init__(self) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(4, 8, 3, padding=1, groups=4)
        self.gate = nn.Conv2d(8, 8, 1)
        self.dilated = nn.Conv2d(8, 6, (3, 2), dilation=2, padding=(2, 1), groups=2)
        self.slope = nn.PReLU(6)

    def forward(self, x: Tensor) -> Tensor:
        x = F.hardswish(self.depthwise(x))
        x = x * torch.sigmoid(self.gate(F.adaptive_avg_pool2d(x, 1)))
        x = self.slope(self.dilated(x))
        wide = F.pad(x, (1, 0, 2, 1), mode="reflect")
        pooled = F.avg_pool2d(wide, 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)
        parts = F.adaptive_avg_pool2d(x, 2), F.adaptive_max_pool2d(x, 1), pooled
        return torch.cat([part.flatten(1) for part in parts], dim=1)


@MODELS.exported("upsampling", exporter="trace", opset=13, cases=SIZES, dynamic=BATCH_AND_SIZE)
@MODELS.exported("upsampling_dynamo", exporter="dynamo", opset=18, cases=SIZES, dynamic=BATCH_AND_SIZE)
class Upsampling(nn.Module):
    """Two scales down and up again: resampled to the size of the skip connections, linear, cubic and nearest."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(4, 4, 3, padding=1)
        self.down = nn.Conv2d(4, 4, 3, stride=2, padding=1)
        self.deep = nn.Conv2d(4, 4, 3, stride=2, padding=1)
        self.join = nn.Conv2d(8, 4, 1)
        self.last = nn.Conv2d(4, 8, 1)

    def forward(self, x: Tensor) -> Tensor:
        fine = F.relu(self.first(x))
        middle = F.relu(self.down(fine))
        coarse = F.silu(self.deep(middle))
        up = F.interpolate(coarse, size=middle.shape[2:], mode="bilinear", align_corners=False)
        up = F.interpolate(self.join(torch.cat((up, middle), dim=1)), size=fine.shape[2:], mode="nearest")
        wide = F.interpolate(fine + up, scale_factor=2, mode="bicubic", align_corners=True)
        return F.pixel_shuffle(self.last(wide), 2)


@MODELS.exported("conv_1d_3d", exporter="trace", opset=17, cases={
    "two_of_six": {"x": normal(1, 2, 3, 6, 4, 4)}, "one_of_four": {"x": normal(2, 1, 3, 4, 4, 4)},
    "three_of_nine": {"x": normal(3, 3, 3, 9, 4, 4)},
}, dynamic={"x": {0: "batch", 2: "time"}})
class Conv1d3d(nn.Module):
    """Convolution, transposed convolution and pooling over three axes, then a circular convolution over one."""

    def __init__(self) -> None:
        super().__init__()
        self.space = nn.Conv3d(3, 4, (1, 3, 3), padding=(0, 1, 1))
        self.wider = nn.ConvTranspose3d(4, 4, (3, 1, 1), padding=(1, 0, 0), groups=4)
        self.time = nn.Conv1d(4, 2, 3, padding=1, padding_mode="circular")

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool3d(torch.relu(self.space(x)), (1, 2, 2))
        x = F.avg_pool3d(self.wider(x), (1, 2, 2), padding=(0, 1, 1))
        return self.time(x.amax(dim=(3, 4)))


class NonMaxSuppression(torch.autograd.Function):
    """ONNX's NonMaxSuppression: (image, class, box) of the boxes kept, best scores of each image and class first."""

    @staticmethod
    def forward(ctx: Any, boxes: Tensor, scores: Tensor, most: int, overlap: float, least: float) -> Tensor:
        """boxes [images, boxes, 4] as corners, scores [images, classes, boxes]; the result is [kept, 3]."""
        kept = []
        for image, classes in enumerate(scores):
            for kind, row in enumerate(classes):
                chosen: list[int] = []
                for box in row.argsort(descending=True).tolist():
                    if row[box] <= least or len(chosen) == most:
                        break
                    if all(_overlap(boxes[image, box], boxes[image, other]) <= overlap for other in chosen):
                        chosen.append(box)
                kept += [(image, kind, box) for box in chosen]
        return torch.tensor(kept, dtype=torch.int64).reshape(-1, 3)

    @staticmethod
    def symbolic(g: Any, boxes: Any, scores: Any, most: int, overlap: float, least: float) -> Any:
        """The node that TorchScript writes."""
        limits = [g.op("Constant", value_t=torch.tensor([each])) for each in (most, overlap, least)]
        return g.op("NonMaxSuppression", boxes, scores, *limits)


def _overlap(a: Tensor, b: Tensor) -> float:
    """Intersection over union of two boxes of corners."""
    both = float((torch.minimum(a[2:], b[2:]) - torch.maximum(a[:2], b[:2])).clamp(min=0).prod())
    return both / (float((a[2:] - a[:2]).prod()) + float((b[2:] - b[:2]).prod()) - both)


@MODELS.exported("detection", exporter="trace", opset=12, cases=IMAGES, dynamic=BATCH,
                 outputs=("boxes", "scores", "classes", "images"))
class Detection(nn.Module):
    """Boxes and scores of a small detector; the best of them, without those that overlap, of all classes and images."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(4, 6, 3, padding=1, stride=2)
        self.boxes = nn.Conv2d(6, 4, 1)
        self.classes = nn.Conv2d(6, 3, 1)
        rows, columns = torch.meshgrid(torch.arange(4.0), torch.arange(4.0), indexing="ij")
        self.centres = torch.stack((rows, columns), dim=-1).reshape(16, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        features = torch.relu(self.body(x))
        raw = self.boxes(features).flatten(2).transpose(1, 2)
        middle = self.centres + torch.tanh(raw[..., :2])
        half = torch.exp(0.25 * raw[..., 2:])
        corners = torch.cat((middle - half, middle + half), dim=-1)
        scores = torch.sigmoid(self.classes(features).flatten(2))
        _, likely = scores.amax(dim=1).topk(10)
        corners = corners.gather(1, likely.unsqueeze(-1).expand(-1, -1, 4))
        scores = scores.gather(2, likely.unsqueeze(1).expand(-1, 3, -1))
        images, kinds, boxes = NonMaxSuppression.apply(corners, scores, 4, 0.3, 0.2).unbind(1)
        return corners[images, boxes], scores[images, kinds, boxes], kinds, images
