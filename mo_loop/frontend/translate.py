"""Translates an ONNX model into a Graph of mo_loop, node by node.

    graph = translate(load("model.onnx"))

Nodes that no converted output depends on are not translated. A node that cannot be translated becomes a `Failed` node,
and so does every node that depends on it; the last check raises the errors of all of them at once.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any

from mo_loop.conversion_limits import budget
from mo_loop.errors import (
    ExtensionError,
    InternalError,
    LimitError,
    ModelError,
    MoLoopError,
    UnsupportedError,
    error_of_numbers,
)
from mo_loop.frontend import boundary, calls, node_order, refusals, registry, translators
from mo_loop.frontend.calls import AttributeReader, arguments, require_tensors
from mo_loop.frontend.consumers_into_branches import sink_consumers, split_outputs
from mo_loop.frontend.context import Context, Translation, as_values
from mo_loop.frontend.cut import Cut
from mo_loop.frontend.declared_types import Ranks, contradictions
from mo_loop.frontend.external_files import ExternalFiles, dense_from_sparse, tensor_from
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.rank_variants import least_after, of_declared_ranks, output_of_one_rank
from mo_loop.frontend.refusals import as_declared, certain_refusal, failed, with_advice
from mo_loop.frontend.schemas import has_outputs
from mo_loop.frontend.scope import Doubts, Scope
from mo_loop.graph import UNKNOWN, Assumption, Graph, Tensor, TensorType, Value
from mo_loop.ops.base import Constant
from mo_loop.origin import Origin, current, new_origin

SLOW = frozenset({"TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"})
"""Operators whose translation can take minutes. They are not translated if it is certain that the model is refused."""


def translate(
    model: OnnxModel, cut: Cut | None = None, custom: translators.CustomTranslators | None = None, *,
    doubts: Doubts | None = None, packed: bool = False, continue_after_failures: bool = False,
    sizes: boundary.InputSizes | None = None,
) -> Graph:
    """The whole model as a Graph, `Failed` nodes included; `cut` has the tensors at which it starts and ends.

    With `packed`, a sequence at an input or output becomes two tensors. With `continue_after_failures`, the outputs of
    a node that fails have the types that the model declares, so that errors in later nodes are found too. `doubts` get
    the assumptions about the model, which are warnings without them. `sizes` are those that the model declares for its
    inputs and what is assumed of them; by default they are numbers.

    Raises:
        Assumption: a decision needs to assume more of the sizes.
        ExtensionError: one of the `custom` translators fails.
        ModelError: the graph itself is broken (a cycle, an output that no node computes).
    """
    cut = cut or Cut()
    proto = model.proto.graph
    graph = Graph(model.name)
    scope = Scope(graph)
    scope.opsets = model.opsets
    outputs = cut.outputs or [entry.name for entry in proto.output]
    translation = ModelTranslation(model, outputs, custom, trusts_declarations=cut.inputs is None, doubts=doubts)
    translation.continues_after_failures = continue_after_failures
    if not continue_after_failures and any(node.op_type in SLOW for node in proto.node):
        translation.refusal = certain_refusal(model, cut, translation.custom)
    sizes = sizes or boundary.InputSizes(all_fixed=True)
    starts = list(cut.parameters(model))
    scope.ranks = Ranks(proto, {each.name: getattr(each.type, "rank", None) for each in starts})
    for start in starts:
        translation.budget.name(start.name)
        start = boundary.with_rank(start, scope, translation)
        if start.if_needed:
            scope.lazy[start.name] = partial(boundary.made_start, graph, packed, sizes), start
        else:
            scope.values[start.name] = boundary.made_start(graph, packed, sizes, start.name, start)
    translation.top = scope
    translation.statements(proto, scope, outputs)
    boundary.require_sizes_of_failures(graph)
    translation.doubts.complete()
    for name in outputs:
        boundary.make_result(output_of_one_rank(name, scope, translation.doubts), name, packed)
    if doubts is None:
        translation.doubts.warn()
    metadata = {entry.key: entry.value for entry in model.proto.metadata_props}
    if metadata:
        graph.rt_info["framework"] = metadata
    return graph


class ModelTranslation(Translation):
    """The translation of one model."""

    def __init__(
        self, model: OnnxModel, outputs: Iterable[str], custom: translators.CustomTranslators | None = None, *,
        trusts_declarations: bool = True, doubts: Doubts | None = None,
    ) -> None:
        """With `trusts_declarations` False, the inputs have other types than the model declares."""
        self.doubts = doubts or Doubts()
        self.budget = budget()
        self.continues_after_failures = False
        self.refusal: MoLoopError | None = None
        self.model = model
        self._attributes = AttributeReader(model.files)
        self.custom = custom or translators.CustomTranslators()
        own = {(domain, name) for domain, name, _ in model.functions}
        self._translators = translators.TranslatorTable(self.custom, own)
        # By id. Each entry keeps its message alive, because protobuf makes a new wrapper for a released message.
        self.names_read = node_order.NamesRead()
        self._widened: dict[int, tuple[Any, list[TensorType | None]]] = {}
        self._calls = calls.Calls(model.opsets)
        self.trusts_declarations = trusts_declarations
        self.output_names = frozenset(outputs)
        self.top: Scope | None = None

    def statements(self, proto: Any, scope: Scope, outputs: Iterable[str] | None = None) -> None:
        """Translate the nodes that `outputs` (default: its own) of a GraphProto need; its inputs are in the scope
        already."""
        if scope.ranks is None:
            scope.read_ranks(proto, scope.outer_ranks)
        values, lazy, dense = scope.values, scope.lazy, partial(_initializer, scope, tensor_from, self.model.files)
        for each in proto.initializer:
            if each.name not in values:
                lazy[each.name] = dense, each
        sparse = partial(_initializer, scope, dense_from_sparse, self.model.files)
        for each in proto.sparse_initializer:
            if each.values.name not in values:
                lazy[each.values.name] = sparse, each
        if self.continues_after_failures:
            scope.declared.update((entry.name, entry.type) for entry in (*proto.value_info, *proto.output))
        given = {each.name for each in (*proto.input, *proto.initializer)} - {""}
        node_order.require_new_names(proto.node, given, scope.path)
        wanted = [entry.name for entry in proto.output] if outputs is None else outputs
        self.nodes(proto.node, wanted, scope)
        if self.trusts_declarations:
            # A body may be translated again with wider types: only the last result is checked.
            self.doubts.contradictions(proto, contradictions(proto, scope.values, scope.path, scope.least_ranks))

    def nodes(self, nodes: Sequence[Any], outputs: Iterable[str], scope: Scope) -> None:
        """Translate the nodes that `outputs` need, producers first. Names that the scope has already need no node."""
        outputs = list(outputs)
        kept, made = self._needed(nodes, outputs, scope)
        waiting: node_order.WaitingNodes | None = None
        for place, proto in enumerate(kept):
            if waiting is not None:
                if place not in waiting:
                    continue
                waiting.done(place)
            self._statement(Context(self, proto, scope, made[place]))
            kept[place] = None  # its memory is used again for the nodes of the graph
            if proto.op_type == "If" and not proto.domain and split_outputs(proto, scope):
                waiting = waiting or node_order.WaitingNodes(kept, self.names_read)
                sink_consumers(self, proto, waiting, outputs, scope)

    def is_read(self, name: str) -> bool:
        """Whether a node of the main graph, or a body in it, reads the tensor."""
        return any(name in self.names_read.listed(node) for node in self.model.proto.graph.node)

    def _needed(
        self, nodes: Sequence[Any], outputs: Iterable[str], scope: Scope
    ) -> tuple[list[Any], list[tuple[str, ...]]]:
        """The nodes, and the names of their outputs."""
        nodes, outputs = list(nodes), list(outputs)
        reads = [self.names_read.listed(node) for node in nodes]
        made = [tuple(node.output) for node in nodes]
        repeated = node_order.repeated_names(made)
        if repeated:
            texts = [node_order.described(name, nodes, places) for name, places in repeated.items()]
            nodes = node_order.without_repeated(nodes, reads, repeated, outputs, scope.path)
            reads = [self.names_read.listed(node) for node in nodes]
            made = [tuple(node.output) for node in nodes]
            where = Origin(scope.path)
            for each in texts:
                text = f"{each}; the one whose value is not read is left out"
                self.doubts.add(f"{where.path}: {text}" if scope.path else text, where=where, code="ML518")
        if not node_order.in_order(made, reads):
            order = node_order.listed_order(nodes, reads, scope.path)
            nodes, reads, made = [nodes[i] for i in order], [reads[i] for i in order], [made[i] for i in order]
        places = node_order.needed(made, outputs, scope.values, reads)
        return [nodes[i] for i in places], [made[i] for i in places]

    def widened(self, graph: Any) -> list[TensorType | None]:
        """The types that the states of a body turned out to need, remembered between its translations."""
        return self._widened.setdefault(id(graph), (graph, []))[1]

    def node(self, proto: Any, scope: Scope) -> None:
        """Translate one node and define its outputs; on failure they are those of a Failed node."""
        self._statement(Context(self, proto, scope, tuple(proto.output)))

    def _statement(self, context: Context) -> None:
        self.budget.node(context.name, context.op_type, context.outputs)
        outer = current.set((context.origin,))
        try:
            self._node(context)
        finally:
            current.reset(outer)

    def _node(self, context: Context) -> None:
        proto, scope = context.proto, context.scope
        known = scope.values
        inputs: list[Value | None] = []
        try:
            for name in proto.input:  # those before one that fails are inputs of the node that is refused
                inputs.append((known.get(name) or scope[name]) if name else None)
            for value in inputs:
                if value is not None and value.type is UNKNOWN:
                    self._define(context, failed(context, inputs, None))
                    return
            if self.refusal is not None and context.op_type in SLOW:
                self._define(context, failed(context, inputs, self.refusal))
                return
            boundary.require_sizes_of(registry.qualified(context.domain, context.op_type), inputs)
            if context.op_type in boundary.SHAPED:
                inputs = boundary.with_length(context, inputs)
            try:
                values = self._translated(context, inputs)
            except UnsupportedError as error:
                ranked = of_declared_ranks(inputs, proto.input, scope, self.doubts) if error.code == "ML328" else inputs
                if ranked == inputs:
                    raise
                values = self._translated(context, ranked)
        except (LimitError, Assumption):  # the first ends the conversion, after the other it begins again
            raise
        except ExtensionError as error:  # raised at once: its traceback is more useful than a list of further errors
            raise context.located(error) from error.__cause__
        except MoLoopError as error:
            values = failed(context, inputs, context.located(with_advice(error, inputs, scope)))
        except Exception as error:
            refused = error_of_numbers(error)
            if refused is not None:
                self._define(context, failed(context, inputs, context.located(refused)))
                return
            shown = ", ".join(str(value.type) if value is not None else "-" for value in inputs)
            raise InternalError(
                f"{type(error).__name__} while translating {proto.op_type}({shown}): {error}", where=context.origin
            ) from error
        if self.continues_after_failures:
            values = as_declared(context, values)
        try:
            self._define(context, values)
        except ModelError as error:
            self._define(context, failed(context, inputs, context.located(error)))

    def _translated(self, context: Context, inputs: list[Value | None]) -> Sequence[Value | None]:
        proto, domain = context.proto, context.domain
        custom = None
        translator = self._translators.usual(domain, context.op_type, context.opset)
        if translator is None:
            custom = self.custom.find(domain, proto.op_type, context.opset)
            function = self.model.functions.get((domain, proto.op_type, getattr(proto, "overload", "")))
            if function is not None and custom is None:
                return self._call(context, function, inputs)
            if custom is None:
                text, context.opset = self._translators.assumed(domain, context.op_type, context.opset)
                if text:
                    self.doubts.add(f"{context.path}: {text}", where=context.origin, code="ML516")
            translator = custom or registry.find(proto.op_type, context.opset, domain)
        if translator is None:
            expanded = calls.schema_function(domain, proto, context.opset, inputs, context.scope.attributes)
            if expanded is not None:
                return self._call(context, expanded, inputs)
            raise refusals.unsupported(domain, proto.op_type, context.opset, self.custom)
        ignored: Collection[str] = ()
        attributes = proto.attribute
        # Most nodes have all the inputs of the signature, so that nothing has to be found out about them.
        is_plain = translator.required <= len(inputs) <= len(translator.inputs) and not translator.variadic
        is_plain = is_plain and None not in inputs
        is_usual = custom is not None or (is_plain and not attributes)
        if not is_usual and not translators.has_form(translator, inputs, translators.attribute_names(proto)):
            reading = translators.Reading.of(context, translator, inputs)
            for text in reading.doubts:
                self.doubts.add(f"{context.path}: {text}", where=context.origin, code="ML517")
            translator, inputs, ignored = reading.translator, reading.inputs, reading.ignored
        try:
            given = inputs if is_plain else arguments(translator, inputs, context)
            for name, form in translator.forms.items():
                place = translator.inputs.index(name)
                form.require(name, given[place] if place < len(given) else None)
            if attributes or translator.needed:
                keywords = self._attributes.keywords(context, translator, ignored, is_adapted=custom is None)
            else:
                keywords = dict(translator.given)
        except ModelError as error:
            if custom is None:
                raise
            hint = f"the signature of its translator requires it: {translators.defined_at(custom.function)}"
            raise error.at(hint=hint) from error.__cause__
        if translator.wants_node:
            keywords["node"] = context
        if custom is None and context.op_type not in registry.TAKING_SEQUENCES:
            require_tensors(given, context)
        least = None
        ranks = context.scope.least_ranks
        if ranks and context.op_type not in ("If", "Loop", "Scan") and not ranks.keys().isdisjoint(inputs):
            least = least_after(registry.qualified(domain, context.op_type), inputs, keywords, ranks, context.opset)
        youngest = context.graph._next_id
        outputs: Sequence[Value | None]
        if custom is not None:
            outputs = translators.called(custom, given, keywords, context)
        else:
            outputs = as_values(translator(*given, **keywords))
        _name_nodes(context, outputs, youngest)
        for each in outputs if least is not None else ():
            if each is not None:
                context.scope.set_least_rank(each, least)
        return outputs

    def _call(self, context: Context, function: Any, inputs: list[Value | None]) -> Sequence[Value | None]:
        """Translate the body of a function in place of the call."""
        with self._calls.entered(function, context, inputs) as (nodes, scope):
            youngest = context.graph._next_id
            self.nodes(nodes, function.output, scope)
            outputs = [scope[name] if context.wants(i) else None for i, name in enumerate(function.output)]
        _name_nodes(context, outputs, youngest)
        return outputs

    def _define(self, context: Context, values: Sequence[Value | None]) -> None:
        outputs, known = context.outputs, context.scope.values
        for name, value in zip(outputs, values, strict=False):
            if not name or name in known:
                continue  # nothing reads it, or the model is cut here
            if value is None:
                raise InternalError(f"the output {name!r} was not made", where=context.origin)
            known[name] = value
            value.define(context.tensor(name), name)
        if len(outputs) <= len(values):
            return
        for name in filter(None, outputs[len(values) :]):
            in_model = (context.domain, context.op_type, getattr(context.proto, "overload", "")) in self.model.functions
            if in_model or not has_outputs(context.op_type, context.opset, context.domain, len(context.outputs)):
                raise ModelError(f"{context.op_type} (opset {context.opset}) has no output for {name!r}", code="ML227")
            raise InternalError(f"the output {name!r} was not made", where=context.origin)


def _initializer(
    scope: Scope, load: Callable[[Any, ExternalFiles], Tensor], files: ExternalFiles, name: str, proto: Any
) -> Value:
    scope.budget.name(name)
    origins = (new_origin(scope.path, "", "", name),)
    constant = Constant(load(proto, files), graph=scope.graph, name=name)
    constant.origins = origins  # faster than `made_for`, for each weight
    value = constant.outputs[0]
    value.names, value.origins = (name,), origins
    return value


def _name_nodes(context: Context, outputs: Sequence[Value | None], youngest: int) -> None:
    """Set friendly names as OpenVINO's front end does: the name of the node, or of its output if it has none."""
    if len(outputs) == 1:  # nearly every node
        value, name = outputs[0], context.outputs[0] if context.outputs else ""
        if value is not None and name and value.node.id >= youngest and value.node.graph is context.scope.graph:
            value.node.name = context.name or name
        return
    fresh_nodes = {
        value.node: name
        for value, name in zip(outputs, context.outputs, strict=False)
        if value is not None and name and value.node.id >= youngest and value.graph is context.graph
    }
    for node, output_name in fresh_nodes.items():
        node.name = context.name if context.name and len(fresh_nodes) == 1 else output_name
