"""One valid application, or more, of every operation: attributes, and inputs as types.

    Example("ReduceSum", {"keep_dims": True}, "f32[2,3]", [1])

An input is a type as the text of graphs writes it, or values of i64 (a list or a number), which are then known; None is
an absent one. Operations with bodies are whole graphs in `BODIES`, whose Parameters are the inputs.
"""

from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.graph.tensor import ArrayTensor
from mo_loop.graph.types import TensorType, boolean, f32, i32, i64, u8
from mo_loop.ops.base import Op, type_of_tensor
from mo_loop.text.spelling import Scanner, parse_type
from tests.texts import texts

TEXTS = texts(__file__)

Given = str | list[Any] | int | None


class Example:
    """An operation applied to types. The lengths of the `counted` inputs are the numbers of outputs."""

    def __init__(self, name: str, attributes: dict[str, Any] | None = None, *inputs: Given) -> None:
        self.name = name
        self.attributes = attributes or {}
        self.types = [typed(each) for each in inputs]
        self.counted = {2} if name == "VariadicSplit" else set()

    def infer(self, types: list[TensorType | None]) -> list[TensorType]:
        """The types of the outputs for other types of the inputs. MoLoopError when the operation refuses them."""
        node: Any = object.__new__(getattr(ops, self.name))
        node.name = ""
        node._set_attributes(self.attributes)
        return list(node._inferred(types))

    def __repr__(self) -> str:
        return f"{self.name} {self.attributes} {self.types}"


def typed(given: Given) -> TensorType | None:
    """The type that an input of an example describes."""
    if given is None:
        return None
    if isinstance(given, str):
        found: TensorType = parse_type(Scanner(given))
        return found
    return type_of_tensor(ArrayTensor(np.asarray(given, np.int64)))


_TEXT = ("i32[4]", "i32[4]", "u8[9]")
"""Four strings: where they begin and end, and their bytes."""


def operations() -> list[str]:
    """The names of all operations that infer types from inputs, except those on sequences, which are not tensors."""
    names = [name for key, family in ops.FAMILIES.items() for name in family.split() if key != "sequences"]
    classes = {name: getattr(ops, name) for name in names}
    return [name for name, cls in classes.items() if isinstance(cls, type) and issubclass(cls, Op) and not cls.abstract]


SOURCES = {"Parameter", "Constant", "Failed", "Opaque", "OpaqueSink", "ReadValue", "Result"}
"""Operations whose types are attributes, not inferred."""

_WINDOW: dict[str, Any] = {"strides": (2, 1), "pads_begin": (1, 0), "pads_end": (1, 0)}
_DETECTRON = {
    "score_threshold": 0.05, "nms_threshold": 0.5, "max_delta_log_wh": 4.1, "num_classes": 2, "post_nms_count": 10,
    "max_detections_per_image": 5, "deltas_weights": (10.0, 10.0, 5.0, 5.0),
}
_CONVOLUTION = {**_WINDOW, "dilations": (1, 2)}
_POOL = {**_WINDOW, "kernel": (3, 2)}
_RESIZE = {"shape_calculation_mode": "sizes", "mode": "nearest"}
_REGIONS = {"pooled_h": 2, "pooled_w": 3, "sampling_ratio": 0, "spatial_scale": 1.0, "mode": "avg"}
_CELL = {"hidden_size": 3}
_SEQUENCE = {"hidden_size": 3, "direction": "bidirectional"}

_FLOATS = [
    "Floor", "Ceiling", "Sqrt", "Exp", "Log", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh",
    "Asinh", "Acosh", "Atanh", "Erf", "Round", "Sigmoid", "HSigmoid", "HSwish", "Swish", "Mish", "SoftPlus",
    "SoftSign", "Gelu", "Softmax", "LogSoftmax", "IsNaN", "IsInf", "IsFinite", "Identity",
]
_INTEGERS = ["Abs", "Negative", "Sign", "ReLU", "Floor", "Ceiling", "Identity", "BitwiseNot"]
_ARITHMETIC = [
    "Add", "Subtract", "Multiply", "Divide", "FloorMod", "Mod", "Power", "Maximum", "Minimum", "SquaredDifference",
    "Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
    "BitwiseLeftShift", "BitwiseRightShift",
]
_LOGICAL = ["LogicalAnd", "LogicalOr", "LogicalXor"]
_REDUCTIONS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2"]

EXAMPLES = [
    *(Example(name, {}, "f32[2,3,1]") for name in _FLOATS),
    *(Example(name, {}, [3, -2, 0]) for name in _INTEGERS),
    *(
        Example(name, {}, *(f"{'i32' if name.startswith('Bitwise') else 'f32'}[{dims}]" for dims in ("2,1,3", "4,1")))
        for name in _ARITHMETIC
    ),
    *(Example(name, {}, [[3, 2, 0], [1, 5, 7]], [2, 2, 3]) for name in _ARITHMETIC),
    *(Example(name, {}, [-7], [2]) for name in _ARITHMETIC),
    *(Example(name, {}, "boolean[2,1,3]", "boolean[4,1]") for name in _LOGICAL),
    Example("LogicalNot", {}, "boolean[2,3]"),
    *(Example(name, {}, "f32[2,3,4]", [0, -1]) for name in _REDUCTIONS),
    *(Example(name, {"keep_dims": True}, "f32[2,3,4]", [1]) for name in _REDUCTIONS),
    *(Example(name, {}, [4, 2, 3], [0]) for name in _REDUCTIONS),
    *(Example(name, {"keep_dims": True}, [4, 2, 3], [0]) for name in _REDUCTIONS),
    *(Example(name, {}, "boolean[2,3]", [0]) for name in ("ReduceLogicalAnd", "ReduceLogicalOr")),
    Example("CumSum", {}, "f32[2,3]", 1),
    Example("AtLeast", {"sizes": (1, 3)}, "f32[N,3]"),
    Example("Barrier", {"hides": "bounds"}, [1, 2]),
    Example("Barrier", {"hides": "bounds", "axes": (0, -1)}, "f32[2,3,4]"),
    Example("Barrier", {"hides": "symbols", "axes": (0,)}, "f32[2,3,4]"),
    Example("Barrier", {"hides": "value"}, 3),
    Example("Barrier", {"hides": "memory"}, "f32[2,3]"),
    Example("Select", {}, "boolean[3]", [1, 2, 3], [4, 2, 6]),
    Example("Select", {}, "boolean[2,1]", "f32[3]", "f32[4,1,1]"),
    *(Example("Convert", {"destination_type": to}, [0, 1, 300]) for to in (i32, boolean, f32, u8)),
    Example("Quantize", {"to": u8, "axis": -1}, "f32[2,3]", "f32[3]", "u8[3]"),
    Example("Dequantize", {"block_size": 2}, "i8[2,3]", "f32[2,2]"),
    Example("DynamicQuantize", {}, "f32[2,3]"),
    Example("IntegerMatMul", {}, "u8[2,3]", "i8[3,4]", "u8[]"),
    Example("RoundedOrExact", {}, "i32[2,3]", "i32[2,3]"),
    Example("FakeQuantize", {"levels": 256}, "f32[2,3]", *["f32[1,1]"] * 4),
    Example("PReLU", {}, "f32[2,3,4]", "f32[3]"),
    Example("Elu", {"alpha": 1.0}, "f32[2,3]"),
    Example("Selu", {}, "f32[2,3]", "f32[1]", "f32[1]"),
    Example("HardSigmoid", {}, "f32[2,3]", "f32[]", "f32[]"),
    Example("Clamp", {"min": 0.0, "max": 5.0}, [-3, 2, 9]),
    Example("Clamp", {"min": -0.5, "max": 5.0}, "f32[2,3]"),
    Example("MatMul", {}, "f32[2,1,3,4]", "f32[5,4,6]"),
    Example("MatMul", {"transpose_a": True, "transpose_b": True}, "f32[4,3]", "f32[6,4]"),
    Example("MatMul", {}, "f32[4]", "f32[2,4,3]"),
    Example("Inverse", {}, "f32[2,3,3]"),
    Example("ScaledDotProductAttention", {}, "f32[2,4,3,8]", "f32[2,4,5,8]", "f32[2,4,5,6]"),
    Example("ScaledDotProductAttention", {"causal": True}, "f32[1,3,8]", "f32[1,5,8]", "f32[1,5,8]"),
    Example(
        "ScaledDotProductAttention", {}, "f32[2,4,3,8]", "f32[2,4,5,8]", "f32[2,4,5,6]", "boolean[2,1,1,5]", "f32[]"),
    Example("Einsum", {"equation": "bij,bjk->ik"}, "f32[2,3,4]", "f32[2,4,5]"),
    Example("Einsum", {"equation": "...ij,jk"}, "f32[7,2,3]", "f32[3,4]"),
    Example("MVN", {}, "f32[2,3,4]", [1, 2]),
    Example("BatchNormInference", {"epsilon": 1e-5}, "f32[2,3,4]", "f32[3]", "f32[3]", "f32[3]", "f32[3]"),
    Example("LRN", {"alpha": 1.0, "beta": 1.0, "bias": 1.0, "size": 3}, "f32[2,3,4]", [1]),
    Example("NormalizeL2", {"eps": 1e-5}, "f32[2,3,4]", [1]),
    Example("GroupNormalization", {"num_groups": 2, "epsilon": 1e-5}, "f32[2,4,3]", "f32[4]", "f32[4]"),
    Example("Reshape", {}, "f32[2,3,4]", [4, -1]),
    Example("Reshape", {}, "f32[2,3,4]", [6, 4]),
    Example("Reshape", {"special_zero": True}, "f32[2,3,4]", [0, 2, -1]),
    Example("Reshape", {}, [1, 2, 3, 4], [2, 2]),
    Example("Squeeze", {}, "f32[1,3,1]", [0, -1]),
    Example("Squeeze", {}, "f32[1,3,1]"),
    Example("Squeeze", {}, [7], [0]),
    Example("Unsqueeze", {}, "f32[2,3]", [0, -1]),
    Example("Unsqueeze", {}, 7, [0]),
    Example("Transpose", {}, "f32[2,3,4]", [2, 0, 1]),
    Example("Transpose", {}, [[1, 2], [3, 4]], [1, 0]),
    Example("Concat", {"axis": 1}, "f32[2,3]", "f32[2,4]", "f32[2,0]"),
    Example("Concat", {"axis": 0}, [1, 2], [3], [-1]),
    Example("Split", {"num_splits": 2}, "f32[2,6]", 1),
    Example("Split", {"num_splits": 2}, [5, 6, 7, 8], 0),
    Example("VariadicSplit", {}, "f32[2,6]", 1, [2, -1, 1]),
    Example("VariadicSplit", {}, [5, 6, 7], 0, [1, 2]),
    Example("Slice", {}, "f32[9,8,7]", [1, -2], [2**40, -5], [3, -1], [0, 2]),
    Example("Slice", {}, "f32[9,8]", [-3], [5], [1], [0]),
    Example("Slice", {}, "f32[9,8]", [0, 2], [-1, 6], [1, 2]),
    Example("Slice", {}, [5, 6, 7, 8], [-1], [-(2**40)], [-1], [0]),
    Example("ShapeOf", {}, "f32[2,3]"),
    Example("ReverseSequence", {}, "f32[2,3,4]", "i64[2]"),
    Example("StringTensorUnpack", {}, "string[2,3]"),
    Example("StringTensorPack", {}, "i32[2,3]", "i32[2,3]", "u8[9]"),
    Example("BPETokenizer", {}, "i32[4]", "i32[4]", *_TEXT, *("i32[2]", "i32[2]", "u8[5]") * 4, "i32[2]"),
    Example("CharsMapNormalization", {}, *_TEXT, "u8[64]"),
    Example("CombineSegments", {}, "i32[2]", "i32[2]", "i32[9]", "i32[2]", "i32[2]", "i32[7]", "i32[2]"),
    Example("EqualStr", {}, *_TEXT, *_TEXT),
    Example("RegexNormalization", {}, *_TEXT, "u8[4]", "u8[0]"),
    Example("RegexSplit", {"invert": True}, "i32[4]", "i32[4]", *_TEXT, "u8[3]"),
    Example("VocabEncoder", {}, *_TEXT, "i32[2]", "i32[2]", "u8[5]", "i64[2]", "i64[1]"),
    Example("WordpieceTokenizer", {}, "i32[4]", "i32[4]", *_TEXT, "i32[2]", "i32[2]", "u8[5]", "i32[]"),
    Example("SpaceToDepth", {"mode": "blocks_first", "block_size": 2}, "f32[2,3,4,6]"),
    Example("DepthToSpace", {"mode": "depth_first", "block_size": 2}, "f32[2,8,3,5]"),
    Example("Broadcast", {}, "f32[3,1]", [2, 3, 4]),
    Example("Broadcast", {"mode": "bidirectional"}, "f32[3,1]", [2, 1, 4]),
    Example("Broadcast", {"mode": "explicit"}, "f32[3]", [2, 3, 4], [1]),
    Example("Broadcast", {}, 7, [3]),
    Example("Tile", {}, "f32[2,3]", [1, 2, 3]),
    Example("Tile", {}, [1, 2], [2]),
    Example("Pad", {}, "f32[2,3]", [1, 0], [0, 2], "f32[]"),
    Example("Pad", {}, [1, 2], [1], [2], 9),
    Example("Pad12", {}, "f32[2,5]", [1, -1], [0, -2], "f32[]"),
    Example("Range", {"output_type": i64}, 2, 9, 3),
    Example("Range", {"output_type": i64}, 9, 2, -2),
    Example("Range", {"output_type": f32}, "f32[]", "f32[]", "f32[]"),
    Example("Eye", {"output_type": f32}, 3, 4, 1),
    Example("Gather", {}, "f32[2,3,4]", "i64[5,6]", 1),
    Example("Gather", {"batch_dims": 1}, "f32[2,3,4]", "i64[2,6]", 1),
    Example("Gather", {}, [5, 6, 7], [2, 0], 0),
    Example("Gather", {}, [5, 6, 7], -1, 0),
    Example("GatherElements", {"axis": 1}, "f32[2,3]", "i64[2,5]"),
    Example("GatherND", {}, "f32[2,3,4]", "i64[5,2]"),
    Example("GatherND", {"batch_dims": 1}, "f32[2,3,4]", "i64[2,5,1]"),
    Example("PriorBox", {"min_size": (8.0,), "aspect_ratio": (2.0,), "flip": True, "offset": 0.5}, [4, 5], [32, 40]),
    Example("PriorBoxClustered", {"width": (8.0, 4.0), "height": (4.0, 3.0), "offset": 0.5}, [4, 5], [32, 40]),
    Example("DetectionOutput", {"keep_top_k": (9,), "nms_threshold": 0.4}, "f32[2,64]", "f32[2,32]", "f32[1,2,80]"),
    Example(
        "GenerateProposals", {"min_size": 1.0, "nms_threshold": 0.7, "pre_nms_count": 9, "post_nms_count": 5},
        "f32[2,3]", "f32[4,5,3,4]", "f32[2,12,4,5]", "f32[2,3,4,5]"),
    Example("ExperimentalDetectronDetectionOutput", _DETECTRON, "f32[10,4]", "f32[10,8]", "f32[10,2]", "f32[1,3]"),
    Example(
        "ExperimentalDetectronGenerateProposalsSingleImage",
        {"min_size": 0.0, "nms_threshold": 0.7, "post_nms_count": 9, "pre_nms_count": 20},
        "f32[3]", "f32[60,4]", "f32[12,4,5]", "f32[3,4,5]"),
    Example("ExperimentalDetectronPriorGridGenerator", {}, "f32[3,4]", "f32[1,8,4,5]", "f32[1,3,32,40]"),
    Example("ExperimentalDetectronPriorGridGenerator", {"flatten": False}, "f32[3,4]", "f32[1,8,4,5]", "f32[1,3,9,9]"),
    Example(
        "ExperimentalDetectronROIFeatureExtractor",
        {"output_size": 7, "sampling_ratio": 2, "pyramid_scales": (4, 8)}, "f32[9,4]", "f32[1,8,16,16]", "f32[1,8,8,8]",
    ),
    Example("ExperimentalDetectronTopKROIs", {"max_rois": 5}, "f32[10,4]", "f32[10]"),
    Example("EmbeddingBagOffsetsSum", {}, "f32[7,3]", "i64[5]", "i64[2]", "i64[]", "f32[5]"),
    Example("EmbeddingBagPackedSum", {}, "f32[7,3]", "i64[2,5]", "f32[2,5]"),
    Example("ScatterUpdate", {}, [1, 2, 3], [0, 2], [8, 9], 0),
    Example("ScatterUpdate", {}, "f32[4,3]", "i64[2]", "f32[2,3]", 0),
    Example("ScatterElementsUpdate", {}, [1, 2, 3], [0, 2], [8, 9], 0),
    Example("ScatterElementsUpdate12", {"reduction": "sum"}, "f32[4]", "i64[2]", "f32[2]", 0),
    Example("ScatterNDUpdate", {}, [1, 2, 3], [[0], [2]], [8, 9]),
    Example("ScatterNDUpdate15", {"reduction": "sum"}, "f32[4,3]", "i64[2,1]", "f32[2,3]"),
    Example("NonZero", {}, "f32[2,3]"),
    Example("NonZero", {}, [0, 3, 0, 1]),
    Example("OneHot", {"axis": 1}, "i64[2,3]", 5, "f32[]", "f32[]"),
    *(Example(name, {"axis": 1, "mode": "max"}, "f32[2,5]", 3) for name in ("TopK", "TopK11")),
    Example("Unique", {}, "f32[2,3]"),
    Example("Unique", {}, "f32[2,3]", 1),
    Example("Convolution", _CONVOLUTION, "f32[2,3,9,8]", "f32[5,3,3,2]"),
    Example("Convolution", {**_CONVOLUTION, "auto_pad": "same_upper"}, "f32[2,3,9,8]", "f32[5,3,3,2]"),
    Example("Convolution", {**_CONVOLUTION, "auto_pad": "valid"}, "f32[2,3,9,8]", "f32[5,3,3,2]"),
    Example("GroupConvolution", _CONVOLUTION, "f32[2,6,9,8]", "f32[2,5,3,3,2]"),
    Example("ConvolutionBackpropData", {**_CONVOLUTION, "output_padding": (1, 0)}, "f32[2,3,9,8]", "f32[3,5,3,2]"),
    Example(
        "ConvolutionBackpropData", {**_CONVOLUTION, "output_padding": (0, 0)}, "f32[2,3,9,8]", "f32[3,5,3,2]", [17, 9]
    ),
    Example(
        "GroupConvolutionBackpropData", {**_CONVOLUTION, "output_padding": (1, 0)}, "f32[2,6,9,8]", "f32[2,3,5,3,2]"),
    *(
        Example("MaxPool14", {**_POOL, "dilations": (1, 2), "rounding_type": rounding}, "f32[2,3,9,8]")
        for rounding in ("floor", "ceil", "ceil_torch")
    ),
    Example("MaxPool", {**_POOL, "auto_pad": "same_lower"}, "f32[2,3,9,8]"),
    Example("MaxPool8", {**_POOL, "dilations": (1, 2)}, "f32[2,3,9,8]"),
    Example("AvgPool", {**_POOL, "exclude_pad": True, "rounding_type": "ceil"}, "f32[2,3,9,8]"),
    Example("AvgPool14", {**_POOL, "exclude_pad": True, "rounding_type": "ceil_torch"}, "f32[2,3,9,8]"),
    Example("Interpolate", _RESIZE, "f32[2,3,4,5]", [8, 10], "f32[2]", [2, 3]),
    Example("Interpolate11", _RESIZE, "f32[2,3]", [8, 10]),
    Example("NonMaxSuppression", {}, "f32[1,6,4]", "f32[1,2,6]", 3, "f32[]", "f32[]"),
    Example("NonMaxSuppression9", {}, "f32[1,6,4]", "f32[1,2,6]"),
    Example("ROIAlign", _REGIONS, "f32[2,3,8,8]", "f32[5,4]", "i64[5]"),
    Example("ROIAlign9", _REGIONS, "f32[2,3,8,8]", "f32[5,4]", "i64[5]"),
    Example("ROIPooling", {"pooled_h": 2, "pooled_w": 3, "spatial_scale": 1.0}, "f32[2,3,8,8]", "f32[5,5]"),
    Example("GridSample", {}, "f32[2,3,8,8]", "f32[2,5,6,2]"),
    Example("DeformableConvolution", _CONVOLUTION, "f32[2,3,9,8]", "f32[2,12,5,6]", "f32[5,3,3,2]", "f32[2,6,5,6]"),
    Example(
        "Col2Im", {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)},
        "f32[2,12,16]", [5, 5], [2, 2]),
    Example("DFT", {}, "f32[2,6,2]", [1], [4]),
    Example("IDFT", {}, "f32[2,6,2]", [0, 1]),
    Example("RDFT", {}, "f32[2,6]", [1], [4]),
    Example("RDFT", {}, "f32[4,8]", [1, 0], [-1, 6]),
    Example("IRDFT", {}, "f32[2,6,2]", [1], [9]),
    Example("IRDFT", {}, "f32[4,8,2]", [1, 0]),
    Example("RandomUniform", {"output_type": f32}, [2, 3], "f32[]", "f32[]"),
    Example("Assign", {"variable_id": "v", "variable_type": f32, "variable_shape": (2, 3)}, "f32[2,3]"),
    Example("LSTMCell", _CELL, "f32[2,4]", "f32[2,3]", "f32[2,3]", "f32[12,4]", "f32[12,3]", "f32[12]"),
    Example("GRUCell", _CELL, "f32[2,4]", "f32[2,3]", "f32[9,4]", "f32[9,3]", "f32[9]"),
    Example("RNNCell", _CELL, "f32[2,4]", "f32[2,3]", "f32[3,4]", "f32[3,3]", "f32[3]"),
    Example(
        "LSTMSequence", _SEQUENCE, "f32[2,5,4]", "f32[2,2,3]", "f32[2,2,3]", "i64[2]", "f32[2,12,4]", "f32[2,12,3]",
        "f32[2,12]"),
    Example("GRUSequence", _SEQUENCE, "f32[2,5,4]", "f32[2,2,3]", "i64[2]", "f32[2,9,4]", "f32[2,9,3]", "f32[2,9]"),
    Example("RNNSequence", _SEQUENCE, "f32[2,5,4]", "f32[2,2,3]", "i64[2]", "f32[2,3,4]", "f32[2,3,3]", "f32[2,3]"),
]

_STATES = TEXTS["states"]

BODIES = {
    "Loop": _STATES.format(
        loop="Loop(%n, true, %x, %w, %xs)", sliced="Invariant(%piece)", extra=", condition: @go",
        condition="Result(true) @go"),
    "TensorIterator": _STATES.format(
        loop="TensorIterator(%x, %w, %xs)", sliced="Sliced(%piece, axis: 0)", extra="", condition=""),
    "Scan": _STATES.format(loop="Scan(%x, %w, %xs)", sliced="Sliced(%piece, axis: 0)", extra="", condition=""),
    "If": TEXTS["If"],
}
"""A graph for every operation with bodies."""
