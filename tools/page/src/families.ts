// Kinds of operators, which have a colour each.

const FAMILIES: Record<string, string> = {
  matrix: "MatMul Gemm FullyConnected Einsum Convolution GroupConvolution ConvolutionBackpropData GroupConvolutionBackpropData BinaryConvolution DeformableConvolution Conv ConvTranspose ConvInteger MatMulInteger QLinearConv QLinearMatMul LSTM LSTMCell LSTMSequence GRU GRUCell GRUSequence RNN RNNCell RNNSequence ScaledDotProductAttention Attention MultiHeadAttention",
  shape: "Reshape Transpose Squeeze Unsqueeze Concat Split VariadicSplit Gather GatherND GatherElements GatherTree Slice StridedSlice Tile Broadcast Expand Pad ScatterUpdate ScatterNDUpdate ScatterElementsUpdate Scatter ScatterND ScatterElements ShapeOf Shape Size Flatten Reverse ReverseSequence SpaceToDepth DepthToSpace SpaceToBatch BatchToSpace ShuffleChannels Range ConstantOfShape OneHot EyeLike Eye Roll Trilu Col2Im ExtractImagePatches Interpolate Resize Upsample NonZero Unique SequenceAt SequenceInsert SequenceEmpty SequenceConstruct ConcatFromSequence SplitToSequence",
  reduce: "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare ReduceLogicalAnd ReduceLogicalOr Softmax SoftMax LogSoftmax Hardmax MVN NormalizeL2 BatchNormInference BatchNormalization LayerNormalization InstanceNormalization GroupNormalization LRN TopK ArgMax ArgMin CumSum CumProd MaxPool AvgPool MaxPool AveragePool GlobalAveragePool GlobalMaxPool AdaptiveAvgPool AdaptiveMaxPool NonMaxSuppression",
  quantised: "FakeQuantize FakeConvert QuantizeLinear DequantizeLinear DynamicQuantizeLinear Convert ConvertLike Cast CastLike",
  control: "Loop TensorIterator If Scan Call",
  logic: "Equal NotEqual Less LessEqual Greater GreaterEqual LessOrEqual GreaterOrEqual LogicalAnd LogicalOr LogicalNot LogicalXor And Or Not Xor Select Where IsNaN IsInf IsFinite BitwiseAnd BitwiseOr BitwiseNot BitwiseXor",
};

const FAMILY_OF = new Map(Object.entries(FAMILIES).flatMap(([family, names]) => names.split(" ").map((name) => [name, family])));

/** The family of an operator; elementwise mathematics is what has no other family. */
export function familyOf(operator: string): string {
  return FAMILY_OF.get(operator) ?? "math";
}
