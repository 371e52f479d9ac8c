"""Operators of ONNX Runtime that have neither a translator nor a reason why not."""

from __future__ import annotations

_DEFAULT_DOMAIN = (
    "Affine Crop DisentangledAttention_TRT DynamicSlice EfficientNMS_TRT GRUUnit GivenTensorFill ImageScaler "
    "MultilevelCropAndResize_TRT ParametricSoftplus PyramidROIAlign_TRT Scale ScaledTanh SimplifiedLayerNormalization "
)
_MICROSOFT = (
    "Attention AttnLSTM BeamSearch BiasAdd BiasDropout BiasSoftmax BiasSplitGelu BifurcationDetector "
    "BitmaskBiasDropout BitmaskDropout BranchwiseRMSNorm CDist CausalConvWithState ComplexMul ComplexMulConj "
    "ConvStateReplay ConvTransposeWithDynamicPads CropAndResize DecoderAttention DecoderMaskedMultiHeadAttention "
    "DecoderMaskedSelfAttention DequantizeBFP DequantizeLinear DequantizeWithOrder DynamicQuantizeLSTM "
    "DynamicQuantizeMatMul DynamicSparseAttention DynamicTimeWarping EPContext EmbedLayerNormalization EngramGate "
    "ExpandDims FusedConv FusedGemm FusedMatMul FusedMatMulActivation GatedAdd GatedDeltaNet GatedDeltaNetStateReplay "
    "GatedRMSNorm GatedRelativePositionBias GatherBlockQuantized GatherND GatherPacked GemmFastGelu GemmFloat8 "
    "GemmaRotaryEmbedding GridSample GroupNorm GroupQueryAttention HyperConnectionLowRankMix "
    "HyperConnectionPostMix HyperConnectionPreMix Inverse Irfft IsAllFinite LinearAttention LinearAttentionGate "
    "LongformerAttention MRotaryEmbedding Mamba2Verify MatMulBlockQuantizedFp4Weight MatMulBlockQuantizedFp8Weight "
    "MatMulBnb4 MatMulFpQ4 MatMulInteger16 MatMulIntegerToFloat MatMulNBitsMlp MatMulNBitsQLoRA "
    "MatMulNBitsQkv MatMulPacked MaxpoolWithMask MoE MoEGroupRouter MoEPacked MulInteger MultiHeadAttention "
    "MurmurHash3 NGramHashMapping NGramRepeatBlock NhwcConv NhwcFusedConv NhwcMaxPool PackedAttention "
    "PackedMultiHeadAttention PackedSparseAttentionIndexer PackedSparseAttentionIndexerMerge Pad PagedAttention "
    "QAttention QEmbedLayerNormalization QGemm QLinearAdd QLinearAveragePool QLinearConcat QLinearConv "
    "QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul QLinearReduceMean QLinearSigmoid QLinearSoftmax "
    "QLinearWhere QMoE QOrderedAttention QOrderedGelu QOrderedLayerNormalization QOrderedLongformerAttention "
    "QOrderedMatMul QuantizeBFP QuantizeLinear QuantizeWithOrder RMSNormRotary Range ReduceSumInteger "
    "RelativePositionBias RemovePadding RestorePadding Rfft RotaryEmbedding RouterGateUpProj SampleOp Sampling "
    "ScaledSiLU SkipGroupNorm SkipLayerNormalization SkipSimplifiedLayerNormalization Snpe SparseAttention "
    "SparseAttentionIndexer SparsePagedAttention SparseToDenseMatMul SpeculativePrefixCommit SwiGLU Tokenizer "
    "TorchEmbedding TransposeMatMul Trilu UnfoldTensor Unique VarlenCausalConvWithState VarlenNGramHashMapping "
    "WhisperBeamSearch WordConvEmbedding "
)
PENDING = {*_DEFAULT_DOMAIN.split(), *(f"com.microsoft::{name}" for name in _MICROSOFT.split())}
