"""How tools write quantised networks: types, scales, and the places of QuantizeLinear and DequantizeLinear."""

from dataclasses import dataclass

ALL, READ, NONE = "all tensors", "inputs of products and sums", "none"
INTEGERS, NUMBERS, TRANSPOSED = "integers", "numbers in f32, then QuantizeLinear", "integers, transposed after"


@dataclass(frozen=True)
class Style:
    """The form of the files of one tool.

    `activations` and `weights` are element types, "" for none; `where` are the tensors that are quantised, `weights_as`
    is the form of the weights, `is_symmetric` means zero points of 0, for activations, and `by_range` means u8 for
    activations that are never negative. `dynamic` is the type of weights if activations are quantised at run time.
    `bias` is the element type of a bias. `separate` means a pair for each reader.
    """

    activations: str = "uint8"
    weights: str = "int8"
    where: str = ALL
    weights_as: str = INTEGERS
    is_symmetric: bool = False
    by_range: bool = False
    by_channel: bool = False
    block: int = 0
    dynamic: str = ""
    bias: str = "float32"
    separate: bool = False
    is_half: bool = False
    opset: int = 21


STYLES = {
    # ONNX Runtime, static quantisation: a pair around each layer, the bias in i32
    "ort_u8s8": Style(bias="int32", opset=13),
    "ort_u8u8": Style(weights="uint8", bias="int32", opset=13),
    "ort_s8s8": Style("int8", is_symmetric=True, bias="int32", opset=13),
    "ort_by_channel": Style(by_channel=True, bias="int32", separate=True, opset=13),
    "ort_u16": Style("uint16", bias="int32"),
    "ort_s16": Style("int16", is_symmetric=True, by_channel=True, bias="int32"),
    # ONNX Runtime, dynamic quantisation: weights have the whole range, so that sums can saturate on some CPUs
    "ort_dynamic": Style(dynamic="QInt8"),
    "ort_dynamic_by_channel": Style(dynamic="QInt8", by_channel=True),
    "ort_dynamic_u8": Style(dynamic="QUInt8"),
    # PyTorch, pt2e: before products and sums only, nothing between a product and its Relu
    "pt2e": Style("int8", where=READ, separate=True),
    "pt2e_by_channel": Style("int8", where=READ, by_channel=True, separate=True),
    "pt2e_weights": Style("", where=NONE, by_channel=True),
    # TensorFlow by tf2onnx: each FakeQuant is a pair; TFLite has weights by channel, and a Transpose after them
    "tf_fake_quant": Style("uint8", weights="uint8", weights_as=NUMBERS, opset=13),
    "tflite": Style("int8", by_channel=True, weights_as=TRANSPOSED, bias="int32", opset=13),
    # NNCF: zero points are 0 for u8 activations after a Relu, weights are quantised in the graph
    "nncf": Style(where=READ, weights_as=NUMBERS, is_symmetric=True, by_range=True, by_channel=True, opset=13),
    "nncf_asymmetric": Style(where=READ, weights_as=NUMBERS, by_channel=True, opset=13),
    # NVIDIA ModelOpt: explicit pairs without zero points, also of 8-bit floats, in f16, and blocks of 4 bits
    "modelopt_int8": Style("int8", where=READ, weights_as=NUMBERS, is_symmetric=True, by_channel=True, opset=19),
    "modelopt_int8_f16": Style("int8", where=READ, is_symmetric=True, by_channel=True, is_half=True),
    "modelopt_fp8": Style("float8e4m3fn", weights="float8e4m3fn", where=READ, weights_as=NUMBERS, opset=19),
    "modelopt_fp8_f16": Style("float8e4m3fn", weights="float8e4m3fn", where=READ, is_half=True),
    "fp8_e5m2": Style("float8e5m2", weights="float8e5m2", where=READ, opset=19),
    "modelopt_int4": Style("", weights="int4", where=NONE, block=16),
    "modelopt_int4_f16": Style("", weights="int4", where=NONE, block=16, is_half=True),
}
"""The styles by name. Patterns are those that the tools write, made here by hand."""
