"""Small networks of the kinds that registries hold, with random weights: what their inputs mean is hard to see.

    for name, make in KINDS.items():
        model = make()

Each has the inputs, the windows and the divisors of its kind: lengths, sampling rates, sizes of images, prompts.
"""

from collections.abc import Callable

import numpy as np
import onnx
from onnx import numpy_helper, parser

from tests.models.sources.voice_detector import voice_detector
from tests.texts import texts

TEXTS = texts(__file__)


def _model(text: str, **weights: np.ndarray | tuple[int, ...]) -> onnx.ModelProto:
    """A model of opset 18; a weight is an array, or the shape of random numbers."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}')
    rng = np.random.default_rng(len(text.rstrip()))
    for name, weight in weights.items():
        array = weight
        if isinstance(weight, tuple):
            array = (rng.standard_normal(weight) / np.sqrt(max(1, np.prod(weight[1:])))).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    onnx.checker.check_model(model)
    return model


def ocr_recogniser() -> onnx.ModelProto:
    """Lines of text of height 48 and any width: pools that halve the height alone, then a class for each column."""
    return _model(TEXTS["ocr recogniser"], w0=(8, 3, 3, 3), w1=(16, 8, 3, 3), w2=(16, 97))


def keypoint_detector() -> onnx.ModelProto:
    """Heat maps of 17 joints; the place of the largest element, and its value."""
    return _model(TEXTS["keypoint detector"], w0=(8, 3, 7, 7), w1=(8, 8, 3, 3), w2=(17, 8, 1, 1))


def speech_decoder() -> onnx.ModelProto:
    """Text to speech: phonemes are repeated as long as they last, up to the longest of the batch."""
    return _model(TEXTS["speech decoder"], embedding=(40, 16), w0=(16, 16), w1=(16, 1), w2=(16, 1, 8))


def mel_spectrogram() -> onnx.ModelProto:
    """Audio, reflected at both ends, in windows of 400 samples every 160."""
    return _model(TEXTS["mel spectrogram"], re=(64, 1, 400), im=(64, 1, 400),
                  bank=np.abs(np.random.default_rng(3).standard_normal((40, 64))).astype("f"))


def object_detector() -> onnx.ModelProto:
    """Two scales that are joined, so both sides have to be multiples of 16; the boxes that remain."""
    return _model(TEXTS["object detector"], w0=(8, 3, 3, 3), w1=(8, 8, 3, 3), w2=(6, 16, 1, 1))


def windowed_attention() -> onnx.ModelProto:
    """Super-resolution: windows of 8 by 8 pixels; both sides are multiples of 8."""
    return _model(
        TEXTS["windowed attention"],
        w0=(16, 3, 3, 3), w1=(12, 16, 3, 3), wq=(16, 16), wk=(16, 16), wv=(16, 16), two1=np.array([2]),
        three1=np.array([3]), four1=np.array([4]),
    )


def prompted_segmentation() -> onnx.ModelProto:
    """A mask for points with labels, in the size of the original image, which is an input of floats."""
    return _model(TEXTS["prompted segmentation"], w0=(2, 16), wn=(1, 1, 16),
                  w1=(16, 1, 4, 4))


def boxes_in_pixels() -> onnx.ModelProto:
    """A detector with queries, whose boxes are in pixels of the sizes that an input gives."""
    return _model(TEXTS["boxes in pixels"], w0=(16, 3, 8, 8), w1=(16, 5), w2=(16, 4),
                  twice=np.array([1, 2]))


def sequence_tagger() -> onnx.ModelProto:
    """Characters with lengths, read in both directions; hidden and cell states are outputs."""
    return _model(TEXTS["sequence tagger"], embedding=(60, 12), w=(2, 32, 12), r=(2, 32, 8), w1=(16, 15))


def speaker_embedding() -> onnx.ModelProto:
    """Mean and deviation over time of a network with dilations of up to 3."""
    return _model(TEXTS["speaker embedding"], w0=(16, 80, 5), w1=(16, 16, 3), w2=(32, 32))


def transducer_step() -> onnx.ModelProto:
    """Streaming speech recognition: a chunk of features, and caches of the past frames with their number."""
    return _model(TEXTS["transducer step"], w0=(40, 24))


def image_classifier() -> onnx.ModelProto:
    """Images as bytes, channels last, which the model prepares itself."""
    return _model(TEXTS["image classifier"], w0=(16, 3, 3, 3), w1=(10, 16), two1=np.array([2]),
                  four1=np.array([4]))


def table_recogniser() -> onnx.ModelProto:
    """A cell with attention that writes the structure of a table, until its end or 20 tokens."""
    return _model(TEXTS["table recogniser"], w0=(16, 3, 16, 16), w1=(16, 16), w2=(16, 16), w3=(16, 12),
                  start=(1, 16))


def recommender() -> onnx.ModelProto:
    """Ids of users and of up to 6 items with weights, and a flag; tables of different lengths."""
    return _model(TEXTS["recommender"], users=(7, 16),
                  item_table=(30, 16), bias=(7,))


KINDS: dict[str, Callable[[], onnx.ModelProto]] = {
    "ocr_recogniser": ocr_recogniser, "keypoint_detector": keypoint_detector, "speech_decoder": speech_decoder,
    "mel_spectrogram": mel_spectrogram, "object_detector": object_detector, "windowed_attention": windowed_attention,
    "prompted_segmentation": prompted_segmentation, "boxes_in_pixels": boxes_in_pixels,
    "sequence_tagger": sequence_tagger, "speaker_embedding": speaker_embedding, "transducer_step": transducer_step,
    "image_classifier": image_classifier, "table_recogniser": table_recogniser, "recommender": recommender,
    "voice_detector": voice_detector, "voice_detector_split": lambda: voice_detector(split=True),
}
