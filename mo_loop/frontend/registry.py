"""The table of translators: which function translates which ONNX operator. The signature is the schema:

    @translates("Softmax", since=13)
    def softmax(x, *, axis: int = -1):            # positional: inputs (None if absent, *xs if variadic)
        return ops.Softmax(x, axis=axis)          # keyword-only: attributes, with ONNX's defaults

`since` is the first opset of a function; the newest function whose `since` is at most the model's opset is used. A
parameter named `node` receives the Context. Annotations declare the ranges of attributes and the forms of inputs
(mo_loop/ops/ranges.py). Versions whose schemas differ but whose translation is the same share a function; the decorator
of each version lists the differences from the signature:

    @translates("QuantizeLinear", since=10, without="axis saturate")     # parameters that this version lacks
    @translates("QuantizeLinear", since=13, without="saturate")
    @translates("QuantizeLinear", since=19)
    def quantize(x, y_scale, y_zero_point=None, *, axis: int = 1, saturate: int = 1): ...

Attributes that several operators have are the fields of a subclass of Attributes, which annotates one parameter:

    @translates("MaxPool", since=10)
    def max_pool(x, *, kernel_shape: Positives, given: WindowAttributes): ...

A test compares every version with the schemas of the onnx package.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache, cached_property, reduce
from importlib import import_module
from types import NoneType
from typing import Any, TypeVar, get_type_hints

from mo_loop.ops.ranges import Form, Range, form_of, is_array, kinds_of, range_of

F = TypeVar("F", bound=Callable[..., Any])

FAMILIES: dict[str, str] = {
    "control": "Loop Scan SequenceMap",
    "conditional": "If",
    "tensors": "Constant ConstantOfShape Identity Cast CastLike Shape Size RandomUniform RandomUniformLike "
    "RandomNormal RandomNormalLike Bernoulli Multinomial",
    "arithmetic": "Add Sub Mul Div Abs Ceil Floor Neg Sign Sqrt Exp Log Sin Cos Tan Asin Acos Atan Sinh "
    "Cosh Tanh Asinh Acosh Atanh Erf Round Reciprocal Pow Mod Max Min Sum Mean CumSum CumProd Equal Greater "
    "GreaterOrEqual Less LessOrEqual And Or Xor Not Where IsNaN IsInf BitwiseAnd BitwiseOr BitwiseXor BitwiseNot "
    "BitShift BitCast",
    "activation": "Relu LeakyRelu PRelu Elu Celu Selu ThresholdedRelu Sigmoid HardSigmoid HardSwish "
    "Softplus Softsign Mish Gelu Swish Shrink Clip Softmax LogSoftmax Hardmax",
    "reduction": "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum "
    "ReduceLogSumExp ArgMax ArgMin",
    "linear": "MatMul Gemm Einsum Det",
    "attention.dot_product_attention": "Attention",
    "normalisation": "BatchNormalization InstanceNormalization LayerNormalization GroupNormalization RMSNormalization "
    "SimplifiedLayerNormalization LpNormalization LRN MeanVarianceNormalization Dropout",
    "images.convolution": "Conv ConvTranspose",
    "images.pooling": "MaxPool MaxUnpool AveragePool LpPool GlobalAveragePool GlobalMaxPool GlobalLpPool",
    "recurrent": "LSTM GRU RNN",
    "images.resize": "Resize Upsample",
    "images.detection": "NonMaxSuppression RoiAlign MaxRoiPool GridSample DeformConv Col2Im",
    "images.sampling": "AffineGrid",
    "quantization.quantization": "QuantizeLinear DynamicQuantizeLinear DequantizeLinear ConvInteger MatMulInteger "
    "QLinearConv QLinearMatMul com.amd.quark::ExtendedQuantizeLinear com.amd.quark::ExtendedDequantizeLinear",
    "movement": "Reshape Flatten Squeeze Unsqueeze Transpose Concat Split Slice DepthToSpace SpaceToDepth "
    "ReverseSequence",
    "filling": "Expand Tile Pad CenterCropPad Range EyeLike Trilu",
    "indexing": "Gather GatherElements GatherND Scatter ScatterElements ScatterND NonZero Compress OneHot TopK Unique "
    "TensorScatter",
    "signal": "DFT STFT MelWeightMatrix",
    "classical.features": "TfIdfVectorizer ai.onnx.ml::ArrayFeatureExtractor ai.onnx.ml::Binarizer "
    "ai.onnx.ml::FeatureVectorizer ai.onnx.ml::Imputer ai.onnx.ml::Normalizer "
    "ai.onnx.ml::OneHotEncoder ai.onnx.ml::Scaler ai.onnx.ml::ZipMap ai.onnx.ml::LabelEncoder "
    "ai.onnx.ml::CategoryMapper",
    "classical.predictors": "ai.onnx.ml::LinearRegressor ai.onnx.ml::LinearClassifier ai.onnx.ml::SVMRegressor "
    "ai.onnx.ml::SVMClassifier",
    "classical.trees": "ai.onnx.ml::TreeEnsemble ai.onnx.ml::TreeEnsembleRegressor ai.onnx.ml::TreeEnsembleClassifier",
    "texts.text_operators": "RegexFullMatch StringConcat StringNormalizer StringSplit ai.onnx.contrib::StringConcat "
    "ai.onnx.contrib::StringEqual ai.onnx.contrib::StringJoin ai.onnx.contrib::StringLength "
    "ai.onnx.contrib::StringLower ai.onnx.contrib::StringMapping ai.onnx.contrib::StringRegexReplace "
    "ai.onnx.contrib::StringStrip ai.onnx.contrib::StringToVector ai.onnx.contrib::StringUpper",
    "texts.tokenizers": "ai.onnx.contrib::BertTokenizer ai.onnx.contrib::GPT2Tokenizer "
    "ai.onnx.contrib::HfBertTokenizer",
    "sequences": "SequenceEmpty SequenceConstruct SequenceInsert SequenceAt SequenceErase SequenceLength "
    "SplitToSequence ConcatFromSequence Optional OptionalHasElement OptionalGetElement",
    "attention.gated_delta_net": "CausalConvWithState",
    "legacy": "Affine ConstantFill Crop DynamicSlice GivenTensorFill ImageScaler ParametricSoftplus Scale ScaledTanh "
    "ATen org.pytorch.aten::ATen",
    "other_domains": "ai.onnx.preview.training::Adagrad ai.onnx.preview.training::Adam "
    "ai.onnx.preview.training::Momentum",
}
CONTRIB: dict[str, str] = {
    "attention.multi_head_attention": "Attention MultiHeadAttention QAttention PackedAttention "
    "PackedMultiHeadAttention RemovePadding RestorePadding RelativePositionBias GatedRelativePositionBias",
    "attention.decoder_attention": "DecoderAttention GroupQueryAttention DecoderMaskedMultiHeadAttention "
    "DecoderMaskedSelfAttention",
    "attention.sparse_attention": "SparseAttention DynamicSparseAttention LongformerAttention",
    "images.detection": "GridSample",
    "images.image_operators": "MaxpoolWithMask FusedConv NhwcConv NhwcFusedConv FusedGemm FusedMatMul TransposeMatMul "
    "FusedMatMulActivation GemmFastGelu CropAndResize ConvTransposeWithDynamicPads NhwcMaxPool",
    "tensor_operators": "NGramRepeatBlock BiasAdd BiasSplitGelu BiasSoftmax BiasDropout SwiGLU ScaledSiLU GatedAdd "
    "Pad Unique ExpandDims UnfoldTensor TorchEmbedding IsAllFinite Inverse CDist ComplexMul ComplexMulConj Rfft Irfft",
    "tensors": "SampleOp",
    "filling": "Trilu Range",
    "indexing": "GatherND",
    "attention.linear_attention": "LinearAttention LinearAttentionGate",
    "attention.gated_delta_net": "GatedDeltaNet CausalConvWithState VarlenCausalConvWithState",
    "attention.heads": "RotaryEmbedding MRotaryEmbedding GemmaRotaryEmbedding",
    "activation": "Gelu BiasGelu FastGelu QuickGelu",
    "skip_normalisation": "EngramGate HyperConnectionPreMix HyperConnectionPostMix HyperConnectionLowRankMix "
    "SkipLayerNormalization SkipSimplifiedLayerNormalization EmbedLayerNormalization QEmbedLayerNormalization "
    "GroupNorm SkipGroupNorm BranchwiseRMSNorm GatedRMSNorm",
    "quantization.packed_weights": "MatMulNBits GatherBlockQuantized MatMulBnb4",
    "greedy_search": "GreedySearch Sampling",
    "quantization.quantization": "QuantizeLinear DequantizeLinear QLinearConv",
    "quantization.quantized_operators": "QLinearAdd QLinearMul QLinearConcat QLinearWhere QLinearSigmoid "
    "QLinearLeakyRelu QLinearSoftmax QLinearAveragePool QLinearGlobalAveragePool QLinearReduceMean "
    "DynamicQuantizeMatMul MatMulIntegerToFloat QGemm MatMulInteger16 MulInteger ReduceSumInteger DynamicQuantizeLSTM",
    "beam_search": "BeamSearch WhisperBeamSearch",
    "quantization.experts": "MoE QMoE",
    "texts.text_operators": "Tokenizer",
}
"""Module of mo_loop.frontend.ops -> the operators of com.microsoft that it translates."""

OPENVINO = (
    "DeformableConv2D DetectionOutput ExperimentalDetectronDetectionOutput "
    "ExperimentalDetectronGenerateProposalsSingleImage ExperimentalDetectronGroupNorm "
    "ExperimentalDetectronPriorGridGenerator ExperimentalDetectronROIFeatureExtractor ExperimentalDetectronTopKROIs "
    "FakeQuantize GenerateProposals GroupNorm Normalize PriorBox PriorBoxClustered Swish"
)
"""The operators of the domain org.openvinotoolkit."""

FAMILIES["other_domains"] += "".join(f" org.openvinotoolkit::{name}" for name in OPENVINO.split())
for _module, _names in CONTRIB.items():
    _contrib = [f"com.microsoft::{name}" for name in _names.split()]
    FAMILIES[_module] = " ".join([FAMILIES[_module], *_contrib] if _module in FAMILIES else _contrib)
"""Family (module of mo_loop.frontend.ops) -> the operators that it translates, with a domain that is not the default
one. A family is imported on first use."""

GENERATION = " ".join(names for family, names in FAMILIES.items() if family.endswith("_search"))
"""The operators that generate text: they hold decoders, and become loops."""

TAKING_SEQUENCES = frozenset(("Identity", "Loop", "If", "Scan", "SequenceMap", *FAMILIES["sequences"].split()))
"""Operators whose inputs, or whose bodies' outer values, may be sequences or optionals."""

REQUIRED = inspect.Parameter.empty
"""The value in `Translator.attributes` of an attribute without a default."""

IGNORED_ATTRIBUTES = frozenset({"consumed_inputs"})
"""Attributes of opset 1 that are hints to runtimes and do not change the values."""


@dataclass(frozen=True)
class Attributes:
    """Base of attributes that several operators have."""


@dataclass(frozen=True)
class Translator:
    """One registered function, and the inputs and attributes in its signature."""

    op: str
    since: int
    function: Callable[..., Any]
    inputs: tuple[str, ...]
    required: int
    variadic: bool
    attributes: Mapping[str, Any]
    kinds: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """The types that an attribute may have."""
    ranges: Mapping[str, Range] = field(default_factory=dict)
    arrays: frozenset[str] = frozenset()
    """The attributes whose lists are arrays."""
    forms: Mapping[str, Form] = field(default_factory=dict)
    wants_node: bool = False
    takes_absent: bool = False
    """Whether variadic inputs may be absent: `*xs: Value | None`."""
    origin: str = ""
    """The extension that registered it; empty for translators of mo_loop."""
    domain: str = ""
    ignored: tuple[str, ...] = ()
    """Inputs and attributes that the function does not read."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """The values of attributes that the node does not set and whose defaults differ from those of the function."""
    elementwise: bool = False
    one_rank: tuple[str, ...] = ()
    """The inputs that have the rank of the first output."""
    groups: Mapping[str, type[Attributes]] = field(default_factory=dict)
    """The parameters of the function that group several attributes."""

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        """Call the function with attributes by name."""
        for name, group in self.groups.items():
            own = {each.name: keywords.pop(each.name) for each in fields(group) if each.name in keywords}
            keywords[name] = group(**own)
        return self.function(*inputs, **keywords)

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The attributes without a default."""
        return tuple(name for name, default in self.attributes.items() if default is REQUIRED)


_registered: dict[str, list[Callable[[], Translator]]] = {}
"""By the operator's name with its domain. Signatures are read for the operators of a model alone."""


def qualified(domain: str, op: str) -> str:
    """The operator as in `FAMILIES`: with its domain unless that is the default one."""
    return f"{domain}::{op}" if domain else op


def translates(
    op: str, *, since: int, domain: str = "", without: str = "", required: str = "",
    defaults: Mapping[str, Any] | None = None, fixed: Mapping[str, Any] | None = None,
    ignored: str = "", elementwise: bool = False, one_rank: str = "",
) -> Callable[[F], F]:
    """Register the decorated function for the ONNX operator `op` from version `since` of its domain on.

    Args:
        without: optional inputs and attributes of the function that this version lacks, separated by spaces.
        required: optional inputs of the function that this version requires.
        defaults: attributes that have another default in this version.
        fixed: attributes that this version lacks, and the values that the function receives for them.
        ignored: inputs and attributes that the function does not read, because the result does not depend on them.
        elementwise: the inputs are broadcast, or there is one: leading axes of size 1 keep their meaning.
        one_rank: inputs that have the rank of the first output, separated by spaces; the first input is one of them.
    """

    def register(function: F) -> F:
        @cache
        def made() -> Translator:
            described = replace(
                describe(op, since, function), domain=domain, ignored=tuple(ignored.split()), elementwise=elementwise,
                one_rank=tuple(one_rank.split()),
            )
            return _variant(described, set(without.split()), required.split(), defaults or {}, fixed or {})

        if without or required or defaults or fixed:
            made()  # ValueError for names that are not in the signature
        _registered.setdefault(qualified(domain, op), []).append(made)
        return function

    return register


def _variant(
    translator: Translator, without: set[str], required: Sequence[str], defaults: Mapping[str, Any],
    fixed: Mapping[str, Any],
) -> Translator:
    """The translator for a version whose schema differs from the signature of the function."""
    attributes, inputs = translator.attributes, translator.inputs
    unknown = {*without, *required} - {*attributes, *inputs} | {*defaults, *fixed} - attributes.keys()
    if unknown:
        raise ValueError(f"{translator.op} of version {translator.since}: there is no parameter {sorted(unknown)}")
    gone = without | fixed.keys()
    kept = [name for name in inputs if name not in gone]
    return replace(
        translator, inputs=tuple(kept), forms={name: form for name, form in translator.forms.items() if name in kept},
        required=max([translator.required, *(inputs.index(name) + 1 for name in required)]),
        attributes={name: each for name, each in {**attributes, **defaults}.items() if name not in gone},
        kinds={name: kind for name, kind in translator.kinds.items() if name not in gone}, given={**defaults, **fixed},
    )


def with_one(translators: Sequence[Translator], translator: Translator) -> list[Translator]:
    """The translators of one operator, oldest first, with one added; it replaces one of the same opset."""
    kept = [each for each in translators if each.since != translator.since]
    return sorted([*kept, translator], key=lambda each: each.since)


def describe(op: str, since: int, function: Callable[..., Any]) -> Translator:
    """The inputs and attributes in the signature of a function, as a Translator."""
    parameters = evaluated_parameters(function)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "node"]
    groups = {p.name: p.annotation for p in named if isinstance(p.annotation, type)}
    groups = {name: kind for name, kind in groups.items() if issubclass(kind, Attributes)}
    keywords = [each for p in named for each in (_members(p.annotation) if p.name in groups else [p])]
    ranges = {p.name: range_of(p.annotation) for p in keywords}
    forms = {p.name: form_of(p.annotation) for p in positional}
    return Translator(
        op, since, function, inputs=tuple(p.name for p in positional),
        required=sum(p.default is p.empty for p in positional),
        variadic=any(p.kind is p.VAR_POSITIONAL for p in parameters), attributes={p.name: p.default for p in keywords},
        kinds={p.name: kinds_of(p.annotation) for p in keywords},
        ranges={name: each for name, each in ranges.items() if each is not None},
        arrays=frozenset(p.name for p in keywords if is_array(p.annotation)),
        forms={name: each for name, each in forms.items() if each is not None},
        wants_node=any(p.name == "node" for p in parameters),
        takes_absent=any(p.kind is p.VAR_POSITIONAL and NoneType in kinds_of(p.annotation) for p in parameters),
        groups=groups,
    )


def _members(group: type[Attributes]) -> list[inspect.Parameter]:
    """The attributes of a group, as parameters."""
    kinds = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, annotation=kinds[each.name],
            default=REQUIRED if each.default is MISSING else each.default,
        )
        for each in fields(group)
    ]


def evaluated_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function. Annotations that are text are evaluated, if their names are those of its module."""
    names = getattr(inspect.unwrap(function), "__globals__", {})

    def evaluated(parameter: inspect.Parameter) -> inspect.Parameter:
        if not isinstance(parameter.annotation, str):
            return parameter
        with suppress(Exception):
            return parameter.replace(annotation=eval(parameter.annotation, names))
        return parameter

    return [evaluated(each) for each in inspect.signature(function).parameters.values()]


def one_to_one(table: Mapping[str, Callable[..., Any]], *, inputs: int = 1, since: int = 1) -> None:
    """Register operators of elements, without attributes, that become one IR operation with the same inputs."""
    for op, cls in table.items():
        translates(op, since=since, elementwise=True)(_unary(cls) if inputs == 1 else _binary(cls))


def _unary(cls: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: cls(x)


def _binary(cls: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: cls(a, b)


_FAMILY_OF = {op: family for family, names in FAMILIES.items() for op in names.split()}


def find(op: str, opset: int, domain: str = "") -> Translator | None:
    """The translator for `op` at version `opset` of its domain, or None."""
    return newest(listed(op, domain), opset)


def listed(op: str, domain: str = "") -> Sequence[Translator]:
    """The translators of all versions of an operator, oldest first."""
    name = qualified(domain, op)
    if name not in _registered and name in _FAMILY_OF:
        import_module(f"mo_loop.frontend.ops.{_FAMILY_OF[name]}")
    return reduce(with_one, (made() for made in _registered.get(name, ())), list[Translator]())


def is_elementwise(op: str) -> bool:
    """Whether an operator of ONNX broadcasts its inputs, or has one, and works element by element."""
    return any(each.elementwise for each in listed(op))


def ports_of_one_rank(op: str) -> tuple[int, ...]:
    """The inputs of an operator of ONNX that have the rank of its first output."""
    declared = (each for each in listed(op) if each.one_rank)
    return tuple(each.inputs.index(name) for each in declared for name in each.one_rank)


def newest(translators: Iterable[Translator], opset: int) -> Translator | None:
    """The last of the translators, oldest first, whose `since` is at most `opset`."""
    best = None
    for translator in translators:
        if translator.since <= opset:
            best = translator
    return best


def every() -> Iterable[Translator]:
    """All translators of all families."""
    for family in FAMILIES:
        import_module(f"mo_loop.frontend.ops.{family}")
    return [each for name in tuple(_registered) for each in listed(*reversed(name.rpartition("::")[::2]))]
