"""The conversion of each version of each ONNX operator: the table of `mo-loop ops` and docs/operators.md.

    handled("Softmax")      # [Handling('', 'Softmax', 1, 'composed', ...), ...]

direct     one operation of the IR, always the same
composed   several operations, or one of several; attributes, types and shapes decide
lowered    a front operation that passes turn into operations of the IR: control flow, sequences
function   the function body in the ONNX schema of the operator, expanded; each of its operators is translated
refused    no translator exists: `note` gives the reason

operations_made.json lists the operations that each translator can make, with an entry for each version at which they
change. Tests compare the list with the operations that the translators make for the ONNX backend test suite;
`tools/record_operations.py` adds missing entries.

LIMITS: uses of supported operators that are refused or give other numbers, for the operator table.

    limits_of("Div")       # (Limit("Div Mod", "32-bit integers above 2^24", "the runtime divides in f32"),)

An unknown rank is refused wherever axes depend on it; no entry repeats that. The random configurations of
`tools/fuzz_ops.py` name the entry that explains a failure; every other failure is a bug.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from mo_loop.frontend import registry, schemas
from mo_loop.frontend.refusals import reason


@dataclass(frozen=True)
class Limit:
    """`operators` are names separated by spaces, with a domain that is not the default one; * means all."""

    operators: str
    condition: str
    reason: str

    def __str__(self) -> str:
        return f"{self.condition}: {self.reason}"


_RANK = "the rank of the result depends on it, and the runtime compiles only known ranks"
_NO_TYPE = "refused; the IR does not have them"
_LIBRARY = "the runtime needs the library of openvino_tokenizers (docs/text.md)"

LIMITS: dict[str, Limit] = {
    # -- all operators
    "strings": Limit("*", "strings", "the runtime's operations on strings corrupt memory, or do not exist"),
    "infinite doubles": Limit(
        "*", "f64 with infinities", "the runtime computes f64 in f32 and replaces infinities by its largest number",
    ),
    "wide integers": Limit(
        "*", "64-bit integers, or unsigned 32-bit integers, above 2^24",
        "the runtime stores integers as signed 32-bit numbers, and compares, divides and sums in f32",
    ),
    "unknown lengths": Limit("*", "axes, a shape or repeats whose number of elements is known only at run time", _RANK),
    # -- operators that ONNX does not have
    "operators of PyTorch": Limit(
        "ATen org.pytorch.aten::ATen", "other operators than embedding and embedding_bag",
        "refused; they have no translation",
    ),
    "order of prior boxes": Limit(
        "org.openvinotoolkit::PriorBox", "min_max_aspect_ratios_order of 0, and sizes known only at run time",
        "refused; the runtime does not compile it",
    ),
    # -- single operators
    "small floats": Limit(
        "Cast CastLike", "to 8-bit floats",
        "the runtime rounds to 16 bits first: a number close to the middle of two others may become the other one",
    ),
    "integer division": Limit("Div Mod", "32-bit integers above 2^24", "the runtime divides in f32"),
    "reducing no integers": Limit(
        "ReduceMax ReduceMin", "64-bit integers without any elements",
        "the limit of the type does not fit into the 32 bits of the runtime",
    ),
    "empty products": Limit(
        "Gemm", "a common dimension of 0", "the runtime returns uninitialised memory if a bias is added",
    ),
    "transposed products of nothing": Limit(
        "com.microsoft::FusedMatMul com.microsoft::TransposeMatMul", "a factor without elements",
        "the runtime loses sizes of the result, or does not compile the product",
    ),
    "no regions": Limit(
        "com.microsoft::CropAndResize", "no regions", "the runtime loses the sizes of a result without elements",
    ),
    "unknown depth": Limit(
        "GatherND com.microsoft::GatherND", "indices whose last dimension is known only at run time", _RANK,
    ),
    "squeezing unknown sizes": Limit(
        "Squeeze", "no axes, and a dimension that is known only at run time",
        "an output keeps it where it is 1 (ML527), unless the model declares the rank; refused before operators whose "
        "results depend on the rank, if it does not",
    ),
    "samples by region": Limit(
        "RoiAlign", "mode max without a number of samples",
        "the number of samples depends on the size of each region; the runtime computes another maximum",
    ),
    "NaN beside bounds": Limit("Clip Relu Max Min", "NaN", "the runtime's Clamp, Maximum and Minimum lose NaN"),
    "absent bounds": Limit(
        "Clip", "infinities, and an absent bound",
        "an absent bound does not limit infinities; ONNX uses the largest finite number",
    ),
    "unknown filters": Limit(
        "Conv ConvTranspose ConvInteger QLinearConv com.microsoft::QLinearConv",
        "filters, or their zero points, with a size that is known only at run time",
        "refused (ML329), unless the bias, the channels and kernel_shape determine them; the runtime has no such "
        "convolution",
    ),
    "far slices": Limit(
        "Slice", "bounds above 32 bits that are known only at run time", "the runtime truncates inputs to 32 bits",
    ),
    "searches of millions": Limit(
        "TopK", "more than 2^23 elements along the axis, a number that is known only at run time",
        "equal elements may come in another order; the runtime computes with places in f32",
    ),
    "empty batches": Limit(
        "MaxPool AveragePool LpPool GlobalAveragePool com.microsoft::QLinearAveragePool",
        "a batch size of 0 that is known only at run time", "the runtime refuses it",
    ),
    "no steps": Limit(
        "LSTM GRU RNN com.microsoft::DynamicQuantizeLSTM", "a length of 0",
        "the last states are zeros; ONNX Runtime does not support it for LSTM and GRU. All states of "
        "DynamicQuantizeLSTM in exact mode have no batch then",
    ),
    "no channels": Limit("BatchNormalization", "no channels", "the runtime needs at least one"),
    "places without padding": Limit(
        "MaxPool", "indices, and automatic padding that depends on a size known only at run time",
        "the runtime computes the indices without this padding",
    ),
    "one hidden unit": Limit(
        "LSTM GRU RNN com.microsoft::DynamicQuantizeLSTM", "a hidden size of 1",
        "the runtime does not compile two consecutive matrix products with inner dimensions of 1",
    ),
    "mean of nothing": Limit("ReduceMean", "no elements", "the runtime returns 0 as the mean of no elements"),
    "training on nothing": Limit(
        "BatchNormalization", "training mode with no elements", "the runtime returns 0 as the mean of no elements",
    ),
    "types of casts": Limit("Cast CastLike", "f8e4m3fnuz, f8e5m2fnuz, i2 and complex numbers", _NO_TYPE),
    "rounding of casts": Limit("Cast CastLike", "to f4e2m1 and f8e8m0", "refused; the runtime rounds differently"),
    "types of quantisation": Limit("QuantizeLinear DequantizeLinear", "f8e4m3fnuz, f8e5m2fnuz and i2", _NO_TYPE),
    "products of small floats": Limit("QLinearMatMul", "8-bit floats", "refused; use DequantizeLinear and MatMul"),
    "rounded activations": Limit(
        "com.microsoft::DynamicQuantizeLSTM com.microsoft::MatMulNBits",
        "activations of DynamicQuantizeLSTM without --quantization exact, and of MatMulNBits with accuracy_level 4",
        "ONNX Runtime rounds them to 8 bits; the IR does not",
    ),
    "bits of floats": Limit(
        "BitCast", "between floats and integers known only at run time", "refused; arithmetic loses the bits of NaN",
    ),
    "strings of words": Limit(
        "Equal TfIdfVectorizer ai.onnx.ml::ArrayFeatureExtractor ai.onnx.ml::LabelEncoder ai.onnx.ml::OneHotEncoder",
        "strings", _LIBRARY,
    ),
    "words of spaces": Limit(
        "ai.onnx.contrib::BertTokenizer ai.onnx.contrib::GPT2Tokenizer ai.onnx.contrib::HfBertTokenizer",
        "do_basic_tokenize 0; max_length for an unknown number of texts; offset_mapping of GPT-2, or of cut texts",
        "refused; declare the number (--input), or make the tokens in the application",
    ),
    "patterns of sets": Limit(
        "ai.onnx.contrib::StringRegexReplace",
        "patterns other than one set of characters, groups or more than 4 bytes in the new text",
        "refused; RE2 and the runtime may search differently",
    ),
    "computed axes": Limit(
        "ai.onnx.contrib::StringJoin",
        "a computed axis or separator, and several axes where one may have no elements",
        "refused; declare the sizes (--input)",
    ),
    "wide keys": Limit(
        "ai.onnx.ml::LabelEncoder ai.onnx.ml::OneHotEncoder", "keys above 32 bits",
        "refused; the runtime stores integers in 32 bits",
    ),
    "seeds": Limit(
        "RandomUniform RandomUniformLike RandomNormal RandomNormalLike Bernoulli Multinomial", "a seed",
        "the numbers are the same each time the model is loaded, but not those of other runtimes",
    ),
    "double thresholds": Limit(
        "ai.onnx.ml::TreeEnsemble ai.onnx.ml::TreeEnsembleClassifier ai.onnx.ml::TreeEnsembleRegressor",
        "f64 inputs that f32 does not hold",
        "the runtime rounds them to f32: a number between a threshold and the next f32 may take the other branch",
    ),
    "votes": Limit(
        "ai.onnx.ml::TreeEnsembleClassifier",
        "two classes, and leaves that vote neither for the first alone nor w and -w for both",
        "refused; runtimes contradict the specification",
    ),
    "maps": Limit("ai.onnx.ml::ZipMap", "maps that the model reads", "refused; the IR has no maps from keys to values"),
    "labels": Limit(
        "ai.onnx.ml::LinearClassifier ai.onnx.ml::SVMClassifier ai.onnx.ml::TreeEnsembleClassifier",
        "one label of strings for two classes", "refused; the scores alone are converted (--output)",
    ),
    "support vectors": Limit(
        "ai.onnx.ml::SVMClassifier", "no support vectors", "refused; runtimes contradict the specification",
    ),
    "deformed volumes": Limit("DeformConv", "tensors that are not images", "refused; the runtime supports only images"),
    "cubic volumes": Limit("GridSample", "cubic interpolation of volumes", "refused; linear and nearest are composed"),
    "unknown axes": Limit("Squeeze Unsqueeze Tile", "axes or repeats whose number is known only at run time", _RANK),
    "rotation in attention": Limit(
        "com.microsoft::Attention com.microsoft::DecoderMaskedSelfAttention", "do_rotary",
        "refused; export RotaryEmbedding and MultiHeadAttention",
    ),
    "switches of decoders": Limit(
        "com.microsoft::DecoderAttention",
        "static_kv, use_past, has_layer_state or has_key_padding_mask known only at run time",
        "refused; set them with --input",
    ),
    "flat packed heads": Limit(
        "com.microsoft::MultiHeadAttention", "queries, keys and values packed in 3 dimensions",
        "refused, as by ONNX Runtime; pack them in 5 dimensions",
    ),
    "caches of a window": Limit(
        "com.microsoft::GroupQueryAttention", "sliding_window_cache, or a quantised cache",
        "refused; export with a cache of floats of the whole length",
    ),
    "NaN of one token": Limit(
        "com.microsoft::LinearAttention com.microsoft::GatedDeltaNet", "NaN and infinities in queries, keys or values",
        "they affect all tokens of a chunk of 16, also earlier ones",
    ),
    "windows of states": Limit(
        "com.microsoft::LinearAttention com.microsoft::CausalConvWithState", "state_window",
        "refused, as by the CPU kernel of ONNX Runtime",
    ),
    "selected channels": Limit(
        "com.microsoft::CausalConvWithState",
        "ndim above 1, state_length, state_channels_last, input_channels, state_update_capacity",
        "refused, as by the CPU kernel of ONNX Runtime",
    ),
    "no positions": Limit(
        "com.microsoft::CausalConvWithState", "a length of 0 that is known only at run time",
        "OpenVINO 2025.1.0 and older ones report an error",
    ),
    "weights of each token": Limit(
        "com.microsoft::VarlenCausalConvWithState", "kernel_delta", "refused, as by the CPU kernel of ONNX Runtime",
    ),
    "biases of beams": Limit(
        "com.microsoft::DecoderMaskedMultiHeadAttention", "cache_indirection, and an attention_bias of each sequence",
        "each sequence has its own bias; ONNX Runtime reads that of another",
    ),
    "far trips": Limit(
        "Loop", "a trip count above 2^31 - 1 that is known only at run time",
        "the runtime cannot distinguish it from a negative one",
    ),
    "padded vocabulary": Limit(
        "com.microsoft::GreedySearch com.microsoft::BeamSearch com.microsoft::Sampling",
        "vocab_size below the number of logits",
        "later logits are left out; ONNX Runtime reads those of all rows but the first at wrong places",
    ),
    "greedy encoders": Limit(
        "com.microsoft::GreedySearch com.microsoft::Sampling", "model_type 1",
        "refused, as ONNX Runtime does: use BeamSearch with num_beams 1",
    ),
    "draws": Limit(
        "com.microsoft::Sampling", "more than one token is left", "drawn by other random numbers than ONNX Runtime's",
    ),
    "presence": Limit(
        "com.microsoft::Sampling", "presence_penalty with presence_mask, the output filtered_logits",
        "refused; ONNX Runtime does not compute the penalty as documented, and the output on GPUs only",
    ),
    "sparse mixers": Limit(
        "com.microsoft::MoE com.microsoft::QMoE", "use_sparse_mixer", "refused; ONNX Runtime ignores it on CPUs",
    ),
    "rounded tokens": Limit(
        "com.microsoft::QMoE", "blocks of 2-bit or 8-bit weights",
        "activations are not rounded; ONNX Runtime rounds them to 8 bits",
    ),
    "experts of devices": Limit(
        "com.microsoft::QMoE", "quant_type other than int, weights_prepacked 1, weights of 3 bits", "refused",
    ),
    "Whisper": Limit(
        "com.microsoft::WhisperBeamSearch", "the output cross_qk, extra_decoding_ids",
        "refused; ONNX Runtime has them on GPUs only",
    ),
    "older Whisper": Limit(
        "com.microsoft::BeamSearch", "model_type 2 with logits_processor 1",
        "refused, as ONNX Runtime does: use WhisperBeamSearch",
    ),
}
"""Name -> limit. Those of all operators come first."""


def limits_of(operator: str) -> tuple[Limit, ...]:
    """The limits of one operator, named with its domain unless that is the default one; with * those of all."""
    return tuple(limit for limit in LIMITS.values() if operator in limit.operators.split())


DIRECT, COMPOSED, LOWERED, FUNCTION, REFUSED = "direct", "composed", "lowered", "function", "refused"
HOW = (DIRECT, COMPOSED, LOWERED, FUNCTION, REFUSED)

ITERATIONS = ("Loop-5", "TensorIterator-1")
LOWERED_OPERATORS: dict[str, tuple[str, ...]] = {
    "Loop": ITERATIONS, "Scan": ITERATIONS, "SequenceMap": ITERATIONS, "If": ("If-8",),
    **dict.fromkeys(registry.FAMILIES["sequences"].split(), ()),
    **dict.fromkeys(registry.GENERATION.split(), ITERATIONS),
}


@dataclass(frozen=True)
class Handling:
    """The conversion of an operator in the versions `version` to `until` of its domain; `until` is None for the newest.

    `becomes` names the operations of the IR that it can turn into, with their opsets. `note` gives the reason for a
    refusal, or the uses of a translated operator that are refused or give other numbers.
    """

    domain: str
    operator: str
    version: int
    how: str
    becomes: tuple[str, ...] = ()
    note: str = ""
    until: int | None = None

    @property
    def name(self) -> str:
        """The operator with its domain, as messages write it."""
        return registry.qualified(self.domain, self.operator)

    @property
    def opsets(self) -> str:
        """The versions of the domain as text: `13+`, `1-12`, `7`."""
        if self.until is None:
            return f"{self.version}+"
        return str(self.version) if self.until == self.version else f"{self.version}-{self.until}"


def handled(operator: str | None = None, domain: str | None = None) -> list[Handling]:
    """All versions of one operator, or of all operators; by domain, name and version.

    They are those of the installed onnx package, and ONNX Runtime's own.
    """
    import onnx

    listed = [
        schema
        for schema in (*onnx.defs.get_all_schemas_with_history(), *schemas.contrib_schemas())
        if operator in (None, schema.name) and domain in (None, schema.domain)
    ]
    listed.sort(key=lambda schema: (schema.domain, schema.name, schema.since_version))
    found = []
    for schema, after in zip(listed, [*listed[1:], None], strict=True):
        if schema.deprecated:
            continue
        follows = after is not None and (after.domain, after.name) == (schema.domain, schema.name)
        found.append(replace(_handling(schema), until=after.since_version - 1 if follows else None))
    return found


def merged(rows: Iterable[Handling]) -> list[Handling]:
    """The rows of `handled`, with consecutive versions joined where they are converted in the same way."""
    found: list[Handling] = []
    for row in rows:
        last = found[-1] if found else None
        if last is not None and replace(row, version=last.version, until=last.until) == last:
            found[-1] = replace(last, until=row.until)
        else:
            found.append(row)
    return found


def _handling(schema: Any) -> Handling:
    domain, name, version = schema.domain, schema.name, schema.since_version
    qualified = registry.qualified(domain, name)
    note = "; ".join(map(str, limits_of(qualified)))
    if qualified in LOWERED_OPERATORS:
        return Handling(domain, name, version, LOWERED, LOWERED_OPERATORS[qualified], note)
    translator = registry.find(name, version, domain)
    if translator is not None:
        becomes = operations_of(translator)
        return Handling(domain, name, version, DIRECT if len(becomes) == 1 else COMPOSED, becomes, note)
    if schema.has_function or schema.has_context_dependent_function:
        return Handling(domain, name, version, FUNCTION, note=note)
    return Handling(domain, name, version, REFUSED, note=reason(domain, name))


def operations_of(translator: registry.Translator) -> tuple[str, ...]:
    """The operations of the IR that a translator can make, with their opsets, without Constant."""
    versions = _table().get(registry.qualified(translator.domain, translator.op), {})
    listed = [each for each in versions if each <= translator.since]
    return versions[max(listed)] if listed else ()


@cache
def _table() -> dict[str, dict[int, tuple[str, ...]]]:
    """Operator -> version of its domain -> operations, until the next version that is listed."""
    found = json.loads(Path(__file__).with_name("operations_made.json").read_text("utf-8"))
    return {
        name: {int(version): tuple(made.split()) for version, made in versions.items()}
        for name, versions in found.items()
    }
