"""Classifiers of images, as torchvision defines them."""

from __future__ import annotations

from torch import nn
from torchvision import models

from tests.models.sources.exporting.inputs import normal
from tests.models.sources.exporting.pytorch import Catalogue
from tests.models.sources.real_models.weights import steady_weights

MODELS = Catalogue(steady_weights)

PICTURE = {"one_picture": {"x": normal(1, 1, 3, 224, 224)}}


@MODELS.exported("resnet50", exporter="trace", opset=17, cases=PICTURE)
def resnet50() -> nn.Module:
    """ResNet-50."""
    return models.resnet50(weights=None)


@MODELS.exported("mobilenet_v2", exporter="trace", opset=17, cases=PICTURE)
def mobilenet_v2() -> nn.Module:
    """MobileNetV2: depthwise convolutions, ReLU6."""
    return models.mobilenet_v2(weights=None)


@MODELS.exported("mobilenet_v3", exporter="trace", opset=17, cases=PICTURE)
def mobilenet_v3() -> nn.Module:
    """MobileNetV3, large: squeeze and excitation, hard swish."""
    return models.mobilenet_v3_large(weights=None)


@MODELS.exported("efficientnet_b0", exporter="trace", opset=17, cases=PICTURE)
def efficientnet_b0() -> nn.Module:
    """EfficientNet-B0: squeeze and excitation, SiLU."""
    return models.efficientnet_b0(weights=None)
