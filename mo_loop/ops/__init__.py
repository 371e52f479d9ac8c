"""The operations of the IR, one class for each, in families. A family is loaded when one of its classes is used:

>>> from mo_loop import ops
>>> ops.Softmax.type
'SoftMax'
"""

from importlib import import_module
from typing import Any

FAMILIES: dict[str, str] = {
    "base": "Op Elementwise Movement SameElements View Parameter Result Constant Identity",
    "control": "Loop TensorIterator If Control Iteration",
    "port_map": "Invariant Merged Sliced Final Concatenated Branched Selected",
    "front": "AtLeast Barrier Failed Scan Opaque OpaqueSink",
    "sequences": "SequenceEmpty SequenceConstruct SequenceInsert SequenceErase SequenceAt SequenceLength "
    "SplitToSequence ConcatFromSequence SequenceExtend StackedSequence JoinedSequence PackedSequence PackSequence "
    "Optional OptionalHasElement OptionalGetElement",
    "arithmetic": "Unary Binary Add Subtract Multiply Divide FloorMod Mod Power Maximum Minimum SquaredDifference Abs "
    "Ceiling Floor Negative Sign Sqrt Exp Log Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Erf Round "
    "CumSum Convert Comparison Classification Equal NotEqual Greater GreaterEqual Less LessEqual LogicalAnd LogicalOr "
    "LogicalXor LogicalNot BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitwiseLeftShift BitwiseRightShift Select IsNaN "
    "IsInf IsFinite",
    "quantization": "FakeQuantize Quantize Dequantize DynamicQuantize IntegerMatMul RoundedOrExact",
    "reduction": "Reduction ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogicalAnd "
    "ReduceLogicalOr MVN BatchNormInference LRN NormalizeL2 GroupNormalization",
    "activation": "AlongAxis Scaled ReLU PReLU Sigmoid Elu Selu HardSigmoid Clamp HSigmoid HSwish Swish Mish SoftPlus "
    "SoftSign Gelu Softmax LogSoftmax",
    "linear": "MatMul Einsum Inverse ScaledDotProductAttention Fourier DFT IDFT RDFT IRDFT",
    "views": "ShapeOf Reshape Squeeze Unsqueeze",
    "movement": "Transpose Concat Split VariadicSplit Slice ReverseSequence SpaceToDepth DepthToSpace",
    "filling": "Broadcast Tile Pad Pad12 Range Eye RandomUniform",
    "indexing": "Gather GatherElements GatherND ScatterUpdate ScatterElementsUpdate ScatterElementsUpdate12 "
    "ScatterNDUpdate ScatterNDUpdate15 NonZero OneHot TopK TopK11 Unique EmbeddingBagOffsetsSum EmbeddingBagPackedSum",
    "convolution": "Filtered Convolution GroupConvolution ConvolutionBackpropData GroupConvolutionBackpropData Pooling "
    "MaxPool MaxPool8 MaxPool14 AvgPool AvgPool14",
    "detection": "NonMaxSuppression NonMaxSuppression9 ROIAlign ROIAlign9 ROIPooling GridSample DeformableConvolution "
    "Col2Im Resizing Interpolate Interpolate11",
    "proposals": "PriorBox PriorBoxClustered DetectionOutput GenerateProposals ExperimentalDetectronDetectionOutput "
    "ExperimentalDetectronGenerateProposalsSingleImage ExperimentalDetectronPriorGridGenerator "
    "ExperimentalDetectronROIFeatureExtractor ExperimentalDetectronTopKROIs",
    "strings": "StringTensorUnpack StringTensorPack OfTokenizers BPETokenizer CharsMapNormalization CombineSegments "
    "EqualStr RegexNormalization RegexSplit VocabEncoder WordpieceTokenizer",
    "recurrent": "LSTMCell GRUCell RNNCell LSTMSequence GRUSequence RNNSequence ReadValue Assign",
}
"""Family (module) -> the classes it defines."""

_FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    family = _FAMILY_OF.get(name)
    if family is None:
        raise AttributeError(f"there is no operation {name}")
    cls = getattr(import_module(f"mo_loop.ops.{family}"), name)
    globals()[name] = cls
    return cls


def __dir__() -> list[str]:
    return sorted(_FAMILY_OF)
