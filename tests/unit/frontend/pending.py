"""Operators of ONNX Runtime that have neither a translator nor a reason why not."""

from __future__ import annotations

_DEFAULT_DOMAIN = ""
_MICROSOFT = (
    "AttnLSTM BifurcationDetector "
    "CDist CausalConvWithState ComplexMul ComplexMulConj "
    "ConvTransposeWithDynamicPads CropAndResize DecoderAttention DecoderMaskedMultiHeadAttention "
    "DecoderMaskedSelfAttention "
    "DynamicSparseAttention DynamicTimeWarping EngramGate "
    "ExpandDims GatedDeltaNet "
    "GatedRelativePositionBias GatherND "
    "GridSample HyperConnectionLowRankMix "
    "HyperConnectionPostMix HyperConnectionPreMix Inverse Irfft IsAllFinite LinearAttention LinearAttentionGate "
    "LongformerAttention "
    "MaxpoolWithMask MoE "
    "MurmurHash3 NGramHashMapping NhwcMaxPool PackedAttention "
    "PackedMultiHeadAttention Pad "
    "QEmbedLayerNormalization "
    "QMoE "
    "Range "
    "RelativePositionBias RemovePadding RestorePadding Rfft SampleOp "
    "SparseAttention "
    "SparseAttentionIndexer "
    "TorchEmbedding Trilu UnfoldTensor Unique "
    "WhisperBeamSearch WordConvEmbedding "
)
PENDING = {*_DEFAULT_DOMAIN.split(), *(f"com.microsoft::{name}" for name in _MICROSOFT.split())}
