"""REASONS: why an operator is not supported, for the operator table and for the error, which `unsupported` makes.

An operator that is neither listed here nor translated is unknown, or is expanded into the function body of its schema.

A node that cannot be translated becomes a Failed node, with the known facts about its outputs:

    values = failed(node, inputs, error)     # outputs of unknown type
    values = as_declared(node, values)       # of the types that the model declares, so that later nodes are translated

Translation skips nodes that depend on a failure. `unsupported_operators` checks every node without translating it, so
that one run reports all missing operators.

`with_cut` names the tensors at which a cut removes the strings of a model, as an option that can be pasted:

    with_cut(errors, model, cut)       # help: convert the part after the strings: --input 'ids[?,16],length[?]'

The first tensors of numbers that nodes with strings make, and that the outputs depend on, become inputs. What the user
gave for inputs of numbers stays in the option.
"""

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from mo_loop.errors import MoLoopError, UnsupportedError
from mo_loop.frontend import registry
from mo_loop.frontend.context import Context
from mo_loop.frontend.cut import Cut
from mo_loop.frontend.declared_types import is_valid, type_from, with_inferred_types
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.node_order import NamesRead, WaitingNodes, needed
from mo_loop.frontend.onnx_graphs import OnnxGraph, called, domain_of, function_graph, label, main_graph
from mo_loop.frontend.registry import FAMILIES, qualified
from mo_loop.frontend.schemas import onnx_schema
from mo_loop.frontend.scope import Scope
from mo_loop.frontend.translators import CustomTranslators, version_read
from mo_loop.graph import Value
from mo_loop.graph.types import BY_ONNX, UNKNOWN, TensorType
from mo_loop.ops.front import Failed
from mo_loop.ops.unknown_rank import advice
from mo_loop.preprocessing import split
from mo_loop.printable import did_you_mean
from mo_loop.support.traversal import reached

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
_HASHES = (
    "the runtime has no integer arithmetic that wraps around: compute the hashes in the application, and make them an "
    "input with --input"
)

REASONS: dict[str, str] = {
    "GRUUnit": "its documentation does not define its result: export the model with GRU",
    "ImageDecoder": "the IR has no operation that decodes images: pass pixels to the model",
    "ai.onnx.ml::CastMap": _MAPS,
    "ai.onnx.ml::DictVectorizer": _MAPS,
    "ai.onnx.preview.training::Gradient": "the IR has no differentiation: export the gradient as a graph",
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


_ROWS = "[?,?] [?,?] [?,?,2]"
_TOKENS = {
    "BertTokenizer": "[?] [?] [?] [?,2]", "CLIPTokenizer": _ROWS, "GPT2Tokenizer": _ROWS,
    "HfBertTokenizer": "[1,?] [1,?] [1,?]", "RobertaTokenizer": _ROWS, "SpmTokenizer": _ROWS,
    "SentencepieceTokenizer": "[?]{i32} [?] [?]{i32}",
}
"""Tokenizers of onnxruntime-extensions -> the sizes of their outputs, which are i64 if they have no other type."""


def _tokens(domain: str, op: str) -> str:
    return _TOKENS.get(op, "") if domain in ("ai.onnx.contrib", "com.microsoft.extensions") else ""


def reason(domain: str, op: str) -> str:
    """Why the operator is not translated; empty for an unknown operator."""
    if _tokens(domain, op):
        return "it is a tokenizer of onnxruntime-extensions: make the tokens in the application"
    return REASONS.get(qualified(domain, op), DOMAINS.get(domain, "").format(op=op, domain=domain))


def unsupported(domain: str, op: str, opset: int, custom: CustomTranslators) -> UnsupportedError:
    """The error for an operator without a translator."""
    since = custom.oldest(domain, op)
    if since is not None:
        imported = f"imports version {opset}" if opset else "does not import the domain"
        return UnsupportedError(
            f"operator {domain or 'ai.onnx'}::{op} (opset {opset}) is not supported", code="ML302",
            hint=f"the extension translates it from version {since} on, and the model {imported}",
        )
    why = reason(domain, op)
    message = f"operator {qualified(domain, op)} (opset {opset}) is not supported{why and f': {why}'}"
    return UnsupportedError(message, code="ML302", hint="" if why else _hint_for_unknown(domain, op))


def _hint_for_unknown(domain: str, op: str) -> str:
    """An operator of a similar name in the domain; functions and extensions can add operators to other domains."""
    every = (name.rpartition("::") for names in FAMILIES.values() for name in names.split())
    question = did_you_mean(op, sorted({name for each, _, name in every if each == domain}), cutoff=0.8)
    if not domain:
        return question
    start = f"{question} Else give" if question else "give"
    return f"{start} the model a function of that name, or a translator by --extension (docs/passes.md)"


def failed(context: Context, inputs: Sequence[Value | None], error: MoLoopError | None) -> list[Value]:
    """The outputs of a Failed node in place of a node; without an error it depends on another Failed node."""
    count = max(len(context.outputs), 1)
    return list(Failed(*inputs, graph=context.graph, error=error, count=count, name=context.path).outputs)


def as_declared(context: Context, values: Sequence[Value | None]) -> Sequence[Value | None]:
    """The values with outputs of a Failed node replaced by outputs of the types that the model declares."""
    node = values[0].node if values and values[0] is not None else None
    if not isinstance(node, Failed) or list(values) != list(node.outputs) or any(each.is_used for each in node.outputs):
        return values
    types = [_declared(context.scope, name) for name in context.outputs]
    if len(types) != len(values) or all(each is UNKNOWN for each in types):
        return values
    context.graph.remove(node)
    made = Failed(*node.inputs, graph=context.graph, error=node.error, count=len(types), name=node.name, assumed=types)
    return list(made.outputs)


def _declared(scope: Scope, name: str) -> TensorType:
    """The type that the model declares for a tensor, if it has an element type and a rank."""
    proto = scope.declared.get(name)
    if proto is None or not proto.HasField("tensor_type") or proto.tensor_type.elem_type not in BY_ONNX:
        return UNKNOWN
    type_: TensorType = type_from(proto, symbolic=not scope.depth)
    return UNKNOWN if type_.shape is None else type_


def with_advice(error: MoLoopError, inputs: Iterable[Value | None], scope: Scope) -> MoLoopError:
    """An error about an unknown rank, with the inputs of the model to declare."""
    unknown = [each for each in inputs if each is not None and isinstance(each.type, TensorType) and each.rank is None]
    return error.at(hint=advice(unknown[0], scope.all_captured())) if error.code == "ML314" and unknown else error


def unsupported_operators(model: OnnxModel, custom: CustomTranslators) -> list[UnsupportedError]:
    """One error for each unsupported node, also in bodies and called functions. `custom` translators are considered."""
    return list(_errors(model, custom, main_graph(model), frozenset()))


def certain_refusal(model: OnnxModel, cut: Cut, custom: CustomTranslators) -> UnsupportedError | None:
    """The error of an unsupported node of the main graph that an output depends on, whichever branches are taken."""
    graph = main_graph(model)
    kinds = {(domain_of(node), node.op_type): node for node in reversed(graph.nodes)}
    refused = {key for key, node in kinds.items() if _refusal(model, custom, graph, node) is not None}
    if not refused:
        return None
    made = [node.output for node in graph.nodes]
    live = needed(made, cut.outputs or graph.output_names, cut.inputs or (), [node.input for node in graph.nodes])
    nodes = (graph.nodes[place] for place in live)
    first = next((node for node in nodes if (domain_of(node), node.op_type) in refused), None)
    return None if first is None else _refusal(model, custom, graph, first)


def _errors(
    model: OnnxModel, custom: CustomTranslators, graph: OnnxGraph, calls: frozenset[int]
) -> Iterator[UnsupportedError]:
    """The errors of a graph, its bodies and the functions it calls; `calls` are the ids of the functions around it."""
    for node in graph.nodes:
        function = called(model, node)
        if function is not None and custom.find(*_operator(graph, node)) is None and id(function) not in calls:
            inner = function_graph(model, function, graph.origin_of(node).inner_scope)
            yield from _errors(model, custom, inner, calls | {id(function)})
        elif (error := _refusal(model, custom, graph, node)) is not None:
            yield error
        for body in graph.bodies(node):
            yield from _errors(model, custom, body, calls)


def _operator(graph: OnnxGraph, node: Any) -> tuple[str, str, int]:
    """The domain, the operator, and the version of the domain that the graph imports; 0 for none."""
    domain = domain_of(node)
    return domain, node.op_type, graph.opsets.get(domain, 0)


def _refusal(model: OnnxModel, custom: CustomTranslators, graph: OnnxGraph, node: Any) -> UnsupportedError | None:
    """The error of a node that is neither translated nor a call of a function."""
    domain, op, opset = _operator(graph, node)
    is_other = custom.find(domain, op, opset) is not None or called(model, node) is not None
    if is_other or _is_translated(domain, op, opset):
        return None
    return unsupported(domain, op, opset, custom).at(graph.origin_of(node))


def _is_translated(domain: str, op: str, opset: int) -> bool:
    if registry.find(op, opset, domain) is not None or version_read(op, opset, domain) is not None:
        return True
    schema = onnx_schema(op, opset, domain)
    if schema is None:
        return False
    return not schema.deprecated and (schema.has_function or schema.has_context_dependent_function)


_STRING = 8  # TensorProto.STRING
_NUMBER = 7  # TensorProto.INT64


def with_cut(errors: Sequence[MoLoopError], model: OnnxModel, cut: Cut) -> list[MoLoopError]:
    """The errors; those of nodes with strings name the cut that removes the strings, if there is one."""
    refused = [_node_of(each) for each in errors]
    if not any(refused) or not is_valid(model):
        return [*errors]
    places, option = _Strings(model, cut).cut_after(set(refused))
    is_text = cut.given is None or isinstance(cut.given, str)
    way = f"--input {shlex.quote(option)}" if is_text else f"add {option} to the inputs"
    way = f"convert the part after the strings: {way}"
    found = zip(errors, refused, strict=True)
    return [each.at(hint=way) if option and name in places else each for each, name in found]


def _node_of(error: MoLoopError) -> str:
    """The name of the node of the main graph that an error is about, if it is about an operator or strings."""
    if error.origin is None or error.code not in ("ML302", "ML303"):
        return ""
    return error.origin.scope[0] if error.origin.scope else error.origin.node


class _Strings:
    """The nodes and types of the main graph."""

    def __init__(self, model: OnnxModel, cut: Cut) -> None:
        self._inputs: Collection[str] = cut.inputs or ()
        self._given = list(split(cut.given)) if isinstance(cut.given, str) else []
        self._model = model
        self._outputs = cut.outputs or [each.name for each in model.proto.graph.output]

    def cut_after(self, refused: Collection[str]) -> tuple[Collection[str], str]:
        """The names of those nodes that have strings, and the entries of --input that make them unnecessary; empty if
        strings reach an output, or no node is left."""
        graph = self._model.proto.graph
        typed = with_inferred_types(self._model).proto.graph
        self._kinds = {each.name: _kind(each.type) for each in (*typed.input, *typed.value_info, *typed.output)}
        self._kinds |= {each.name: each.data_type for each in graph.initializer}
        tokens = {
            name: f"{_quoted(name)}{sizes if '{' in sizes else sizes + '{i64}'}" for node in graph.node
            for name, sizes in zip(node.output, _tokens(domain_of(node), node.op_type).split(), strict=False)
            if name not in self._kinds
        }
        self._kinds |= dict.fromkeys(tokens, _NUMBER)
        nodes = WaitingNodes(graph.node, NamesRead())
        start = [
            place for place, node in enumerate(graph.node)
            if label(node) in refused and any(map(self._is_string, (*nodes.reads[place], *node.output)))
        ]
        cuts, without = self._first_numbers(start, nodes)
        used = self._needed(cuts, without, nodes)
        shapes = {each.name: each.type.tensor_type for each in (*typed.value_info, *typed.output)}
        new = [name for node in graph.node for name in node.output if name in used and name not in self._inputs]
        entries = [tokens.get(name) or _entry(name, shapes[name]) for name in new]
        kept = [
            f"{_quoted(name)}{text}" if text.startswith(("[", "(")) else text
            for text, name in zip(self._given, self._inputs, strict=False) if not self._is_string(name)
        ]
        return {label(graph.node[place]) for place in start}, ",".join(kept + entries if entries else ())

    def _is_string(self, name: str) -> bool:
        return self._kinds.get(name) == _STRING

    def _first_numbers(self, start: Iterable[int], nodes: WaitingNodes) -> tuple[set[str], set[int]]:
        """The tensors of numbers that follow these nodes without others between, and the nodes before them."""

        def after(place: int) -> list[int]:
            return nodes.readers(name for name in nodes.makes[place] if self._kinds.get(name, _STRING) == _STRING)

        without = set(reached(start, after))
        made = {name for place in without for name in nodes.makes[place]}
        return {name for name in made if self._kinds.get(name, _STRING) != _STRING}, without

    def _needed(self, cuts: set[str], without: Collection[int], nodes: WaitingNodes) -> Collection[str]:
        """Those of the cuts on which the outputs depend; none if they depend on strings too, or on no node."""
        makers = {name: place for place, names in nodes.makes.items() for name in names}
        used, kept, pending = set[str](), set[int](), list(self._outputs)
        while pending:
            name = pending.pop()
            if name in cuts:
                used.add(name)
            elif self._is_string(name) or makers.get(name) in without:
                return ()
            elif name in makers and makers[name] not in kept and name not in self._inputs:
                kept.add(makers[name])
                pending += nodes.reads[makers[name]]
        return used if kept else ()


def _kind(type_: Any) -> int:
    """The number of the element type, also of a sequence; -1 where it is not known."""
    while type_.WhichOneof("value") in ("sequence_type", "optional_type"):
        type_ = getattr(type_, type_.WhichOneof("value")).elem_type
    return type_.tensor_type.elem_type or _STRING if type_.HasField("tensor_type") else -1


def _entry(name: str, type_: Any) -> str:
    """A tensor with its shape as --input spells it."""
    if not type_.HasField("shape"):
        return _quoted(name)
    dims = [str(each.dim_value) if each.HasField("dim_value") else "?" for each in type_.shape.dim]
    return f"{_quoted(name)}[{','.join(dims)}]"


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[\w./-]+", name) else f"'{name}'" if '"' in name else f'"{name}"'
