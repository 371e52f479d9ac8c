"""REASONS: why an operator is not supported, for the operator table and for the error, which `unsupported` makes.

An operator that is neither listed here nor translated is unknown, or is expanded into the function body of its schema.
"""

from __future__ import annotations

from difflib import get_close_matches

from mo_loop.errors import UnsupportedError
from mo_loop.frontend.custom_translators import CustomTranslators
from mo_loop.frontend.registry import FAMILIES, qualified

_CHARACTERS = "the IR has string tensors, but no operation that reads or makes characters"
_MAPS = "the IR has only tensors, and no maps from keys to values"
_ENGINE = "the file contains a program for another device: convert the model from which it was made"
_TENSORRT = "it is a plugin of TensorRT: export the model without the plugins of TensorRT"
_TRAINING = "it is for training: export the model for inference"
_SERVER = (
    "it reads memory that a server of language models manages on a GPU: export the model with GroupQueryAttention or "
    "MultiHeadAttention and a cache in tensors"
)
_PACKED = "its weights have a layout for kernels of ONNX Runtime: export the model with MatMulNBits or QMoE"
_ORDERED = (
    "its tensors have a layout for tensor cores of NVIDIA GPUs: quantise the model for the CPU provider, with "
    "QuantizeLinear and DequantizeLinear around the operators"
)
_BLOCK_FLOATS = (
    "its numbers share exponents in bytes that only the hardware describes: export the model without block floating "
    "point"
)
_GPU_WEIGHTS = "it is for GPUs, and its weights are {0}: export the model with MatMulNBits"
_EXPERTS = "it is a step of a packed mixture of experts: export the model with MoE or QMoE"
_TOKENS = _CHARACTERS + ": cut the model after it (--input), and pass numbers of tokens"
_HASHES = (
    "the runtime has no integer arithmetic that wraps around: compute the hashes in the application, and make them an "
    "input with --input"
)

REASONS: dict[str, str] = {
    "GRUUnit": "its documentation does not define its result: export the model with GRU",
    "ImageDecoder": "the IR has no operation that decodes images: pass pixels to the model",
    "RegexFullMatch": _CHARACTERS,
    "StringConcat": _CHARACTERS,
    "StringNormalizer": _CHARACTERS,
    "StringSplit": _CHARACTERS,
    "ai.onnx.ml::CastMap": _MAPS,
    "ai.onnx.ml::CategoryMapper": "the IR has no operation that converts strings to numbers or numbers to strings",
    "ai.onnx.ml::DictVectorizer": _MAPS,
    "ai.onnx.preview.training::Gradient": "the IR has no differentiation: export the gradient as a graph",
    "com.microsoft::Tokenizer": _TOKENS,
    "com.microsoft::AttnLSTM": "it is an LSTM that reads its memory by attention at each step: export it as a Loop of "
    "standard operators",
    "com.microsoft::BifurcationDetector": "it searches tokens between two runs of a decoder: cut it off the model with "
    "--output, and compute it in the application",
    "com.microsoft::DynamicTimeWarping": "it follows a path of unknown length back through a matrix: cut it off "
    "the model with --output, and compute the path in the application",
    "com.microsoft::MurmurHash3": _HASHES,
    "com.microsoft::NGramHashMapping": _HASHES,
    "com.microsoft::WordConvEmbedding": "it embeds words letter by letter: export it as Gather, Conv and ReduceMax",
    "com.microsoft::RMSNormRotary": "it rounds as kernels for CUDA do: export the model for the CPU provider, with "
    "SimplifiedLayerNormalization and RotaryEmbedding instead",
    "com.microsoft::SparseAttentionIndexer": "it selects keys for an attention on GPUs, and keeps parts of pooled keys "
    "as its state: export the model with attention to all keys, or pass the selection to the model (--input)",
    "com.microsoft::SparseToDenseMatMul": "the IR has no sparse tensors: store the matrix as a dense one for MatMul",
}
"""Operator, with its domain unless that is the default one -> why it is not translated."""

_ALIKE = {
    _ORDERED: "com.microsoft::QOrderedAttention com.microsoft::QOrderedGelu com.microsoft::QOrderedLayerNormalization "
    "com.microsoft::QOrderedLongformerAttention com.microsoft::QOrderedMatMul com.microsoft::QuantizeWithOrder "
    "com.microsoft::DequantizeWithOrder",
    _BLOCK_FLOATS: "com.microsoft::QuantizeBFP com.microsoft::DequantizeBFP",
    _GPU_WEIGHTS.format("8-bit floats"): "com.microsoft::GemmFloat8 com.microsoft::MatMulBlockQuantizedFp8Weight",
    _GPU_WEIGHTS.format("4-bit floats"): "com.microsoft::MatMulBlockQuantizedFp4Weight",
    "it joins several MatMulNBits for one GPU: export the model for the CPU provider, where they are operators of "
    "their own": "com.microsoft::MatMulNBitsMlp com.microsoft::MatMulNBitsQLoRA com.microsoft::MatMulNBitsQkv",
    "the layout of its weights is not documented: export the model with MatMulNBits": "com.microsoft::MatMulFpQ4",
    _TENSORRT: "DisentangledAttention_TRT EfficientNMS_TRT MultilevelCropAndResize_TRT PyramidROIAlign_TRT",
    _ENGINE: "com.microsoft::EPContext com.microsoft::Snpe",
    _TRAINING: "com.microsoft::BitmaskBiasDropout com.microsoft::BitmaskDropout",
    _SERVER: "com.microsoft::PagedAttention com.microsoft::SparsePagedAttention "
    "com.microsoft::PackedSparseAttentionIndexer com.microsoft::PackedSparseAttentionIndexerMerge "
    "com.microsoft::ConvStateReplay com.microsoft::GatedDeltaNetStateReplay com.microsoft::Mamba2Verify "
    "com.microsoft::SpeculativePrefixCommit "
    "com.microsoft::VarlenNGramHashMapping",
    _PACKED: "com.microsoft::GatherPacked com.microsoft::MatMulPacked com.microsoft::MoEPacked",
    _EXPERTS: "com.microsoft::MoEGroupRouter com.microsoft::RouterGateUpProj",
}
REASONS |= {name: text for text, names in _ALIKE.items() for name in names.split()}

_OPTIMISED = (
    "this file was optimised for one machine ({op} of {domain}): export it again with the level basic "
    "(ORT_ENABLE_BASIC), or convert the file from which it was made"
)
DOMAINS: dict[str, str] = {"com.microsoft.nchwc": _OPTIMISED, "com.ms.internal.nhwc": _OPTIMISED}
"""Domain -> why none of its operators is translated."""


def reason(domain: str, op: str) -> str:
    """Why the operator is not translated; empty for an unknown operator."""
    return REASONS.get(qualified(domain, op), DOMAINS.get(domain, "").format(op=op, domain=domain))


def unsupported(domain: str, op: str, opset: int, custom: CustomTranslators) -> UnsupportedError:
    """The error for an operator without a translator."""
    since = custom.oldest(domain, op)
    if since is not None:
        imported = f"imports version {opset}" if opset else "does not import the domain"
        return UnsupportedError(
            f"operator {domain or 'ai.onnx'}::{op} (opset {opset}) is not supported", code="ML302",
            hint=f"the extension translates it from version {since} on, and the model {imported}",
        )  # fmt: skip
    why = reason(domain, op)
    message = f"operator {qualified(domain, op)} (opset {opset}) is not supported{why and f': {why}'}"
    return UnsupportedError(message, code="ML302", hint="" if why else _hint_for_unknown(domain, op))


def _hint_for_unknown(domain: str, op: str) -> str:
    """An operator of a similar name in the domain; functions and extensions can add operators to other domains."""
    every = (name.rpartition("::") for names in FAMILIES.values() for name in names.split())
    close = get_close_matches(op, sorted({name for each, _, name in every if each == domain}), 1, 0.8)
    question = f"did you mean {close[0]!r}?" if close else ""
    if not domain:
        return question
    start = f"{question} Else give" if question else "give"
    return f"{start} the model a function of that name, or a translator by --extension (docs/passes.md)"
