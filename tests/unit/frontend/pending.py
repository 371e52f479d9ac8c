"""Operators of ONNX Runtime that have neither a translator nor a reason why not."""

from __future__ import annotations

_DEFAULT_DOMAIN = ""
_MICROSOFT = (
    "Attention AttnLSTM BiasAdd BiasSoftmax BiasSplitGelu BifurcationDetector "
    "CDist CausalConvWithState ComplexMul ComplexMulConj "
    "ConvTransposeWithDynamicPads CropAndResize DecoderAttention DecoderMaskedMultiHeadAttention "
    "DecoderMaskedSelfAttention DequantizeBFP DequantizeWithOrder "
    "DynamicSparseAttention DynamicTimeWarping EngramGate "
    "ExpandDims FusedConv FusedGemm FusedMatMul FusedMatMulActivation GatedAdd GatedDeltaNet "
    "GatedRelativePositionBias GatherND GemmFastGelu GemmFloat8 "
    "GemmaRotaryEmbedding GridSample GroupQueryAttention HyperConnectionLowRankMix "
    "HyperConnectionPostMix HyperConnectionPreMix Inverse Irfft IsAllFinite LinearAttention LinearAttentionGate "
    "LongformerAttention MRotaryEmbedding MatMulBlockQuantizedFp4Weight MatMulBlockQuantizedFp8Weight "
    "MatMulFpQ4 MatMulNBitsMlp MatMulNBitsQLoRA "
    "MatMulNBitsQkv MaxpoolWithMask MoE MultiHeadAttention "
    "MurmurHash3 NGramHashMapping NGramRepeatBlock NhwcConv NhwcFusedConv NhwcMaxPool PackedAttention "
    "PackedMultiHeadAttention Pad "
    "QAttention QEmbedLayerNormalization "
    "QMoE QOrderedAttention QOrderedGelu QOrderedLayerNormalization QOrderedLongformerAttention "
    "QOrderedMatMul QuantizeBFP QuantizeWithOrder Range "
    "RelativePositionBias RemovePadding RestorePadding Rfft RotaryEmbedding SampleOp Sampling "
    "ScaledSiLU SparseAttention "
    "SparseAttentionIndexer SwiGLU "
    "TorchEmbedding TransposeMatMul Trilu UnfoldTensor Unique "
    "WhisperBeamSearch WordConvEmbedding "
)
PENDING = {*_DEFAULT_DOMAIN.split(), *(f"com.microsoft::{name}" for name in _MICROSOFT.split())}
