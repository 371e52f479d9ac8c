"""The calls of translators and of functions.

The arguments of translators: the attributes of nodes as keywords, and the inputs, whose number and kind are checked.

    reader = AttributeReader(model.files)
    reader.keywords(node, translator, ignored=(), is_adapted=True)    # {"axis": 1, "body": Body}

A tensor becomes a Tensor, a graph a Body, text a string. The translator declares the attributes, their kinds
and in which range. A reference to an attribute of the enclosing function has the value of its call.
    given = arguments(translator, inputs, node)    # ModelError if there are too few or too many
    require_tensors(given, node)                   # ModelError for a sequence, TypeError_ for strings

mo_loop/ops/ranges.py checks the declarations of a translator about its inputs and attributes.

ONNX functions: those of the model and those of operator schemas, expanded at each call.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from mo_loop.conversion_limits import budget, exceeded
from mo_loop.errors import ModelError, TypeError_, UnsupportedError
from mo_loop.frontend.context import Body, Context
from mo_loop.frontend.declared_types import type_from
from mo_loop.frontend.external_files import ExternalFiles, dense_from_sparse, tensor_from
from mo_loop.frontend.onnx_graphs import body_name, body_protos, domain_of
from mo_loop.frontend.registry import IGNORED_ATTRIBUTES, Translator
from mo_loop.frontend.schemas import onnx_schema, schema_of
from mo_loop.frontend.scope import Scope
from mo_loop.frontend.strip_weights import FLOATS, INTS, STRINGS, Texts, listed
from mo_loop.frontend.translators import as_kind, kind_of
from mo_loop.graph import SequenceType, TensorType, Value, string
from mo_loop.ops.ranges import text_of_kinds
from mo_loop.origin import Origin

_FLOAT, _INT, _STRING, _TENSOR, _GRAPH, _FLOATS, _INTS, _STRINGS, _TENSORS, _GRAPHS, _SPARSE = range(1, 12)
_TYPE_PROTO = 13

_KINDS: dict[int, Any] = {
    _INT: int, _FLOAT: float, _STRING: str, _GRAPH: Body, _INTS: tuple[int, ...], _FLOATS: tuple[float, ...],
    _STRINGS: tuple[str, ...], _TYPE_PROTO: TensorType,
}
"""The annotation in translators for each kind of AttributeProto; that of tensors is Any."""
_LISTS = (_STRING, _INTS, _FLOATS, _STRINGS)
_IN_FILE = {_FLOATS: FLOATS, _INTS: INTS, _STRINGS: STRINGS}
"""Lists that may have stayed in the file, as a tensor of their bytes."""


class AttributeReader:
    """Reads the attributes of the nodes of one model."""

    def __init__(self, files: ExternalFiles) -> None:
        """`files` hold the external data of tensors."""
        self._files = files

    def keywords(
        self, context: Context, translator: Translator, ignored: Collection[str], *, is_adapted: bool
    ) -> dict[str, Any]:
        """The attributes of a node, and the constants that its translator is given, as keyword arguments.

        With `is_adapted`, a number of another kind is converted if that changes no value, with a warning.

        Raises:
            ModelError: an attribute is set twice, lacking, unknown, of another kind or out of its range.
            UnsupportedError: an attribute is of a kind that no operator here has.
        """
        keywords = dict(translator.given)
        set_before: set[str] = set()
        for attribute in context.proto.attribute:
            if attribute.name in ignored:
                continue
            if attribute.name in set_before:
                raise ModelError(f"{context.op_type} has the attribute {attribute.name!r} twice", code="ML227")
            set_before.add(attribute.name)
            source = attribute
            if attribute.ref_attr_name:
                source = context.scope.attributes.get(attribute.ref_attr_name)
                if source is None:
                    continue  # the caller omits it: the default is used
            if attribute.name in translator.attributes:
                value = self._value(source, attribute.name, context, translator, is_adapted)
                if attribute.name in translator.ranges:
                    translator.ranges[attribute.name].require(attribute.name, value)
                keywords[attribute.name] = value
            elif attribute.name not in IGNORED_ATTRIBUTES:
                raise ModelError(
                    f"{context.op_type} of opset {context.opset} has no attribute {attribute.name!r}", code="ML227"
                )
        for name in translator.needed:
            if name not in keywords:
                raise ModelError(f"{context.op_type} needs the attribute {name!r}", code="ML227")
        return keywords

    def _value(self, proto: Any, name: str, context: Context, translator: Translator, is_adapted: bool) -> Any:
        """The value of the attribute `name`, of the kind that the translator has for it."""
        kinds = translator.kinds[name]  # of an extension also none, for any kind
        fits = not kinds or _KINDS.get(proto.type or kind_of(proto), Any) in kinds
        value = self._attribute(proto, context, fits and name in translator.arrays)
        if fits:
            return value
        wanted = text_of_kinds(kinds)
        other = as_kind(value, kinds) if is_adapted else None
        if other is None:
            raise ModelError(f"the attribute {name!r} is not of the kind {wanted}", code="ML227")
        text = f"{context.path}: the attribute {name!r} of {context.op_type} is not of the kind {wanted}"
        context.translation.doubts.add(f"{text}: {value} is read as {other}", where=context.origin, code="ML517")
        return other

    def _attribute(self, proto: Any, context: Context, as_array: bool) -> Any:
        kind = proto.type or kind_of(proto)
        if kind == _INT:
            return proto.i
        if kind == _FLOAT:
            return proto.f
        if kind in _IN_FILE and proto.HasField("t"):
            value = listed(tensor_from(proto.t, self._files).array(), _IN_FILE[kind])
            context.scope.budget.attribute(
                proto.name, sum(map(len, value)) if isinstance(value, tuple) else value.nbytes, context.origin
            )
            return value if as_array or isinstance(value, tuple) else tuple(value.tolist())
        if kind in _LISTS:
            context.scope.budget.attribute(proto.name, _size(proto, kind), context.origin)
        if kind == _STRING:
            return proto.s.decode("utf-8", "replace")
        if kind == _INTS:
            return np.fromiter(proto.ints, np.int64, len(proto.ints)) if as_array else tuple(proto.ints)
        if kind == _FLOATS:
            return np.fromiter(proto.floats, np.float64, len(proto.floats)) if as_array else tuple(proto.floats)
        if kind == _STRINGS:
            return tuple(map(Texts().__getitem__, proto.strings))
        if kind == _TENSOR:
            return tensor_from(proto.t, self._files)
        if kind == _SPARSE:
            return dense_from_sparse(proto.sparse_tensor, self._files)
        if kind == _GRAPH:
            path = (*context.origin.inner_scope, body_name(context.proto, proto.name, proto.g))
            origin = Origin(path, operator=context.origin.operator)
            ranks = partial(context.scope.ranks.inside, context.proto) if context.scope.ranks is not None else dict
            return Body(context.translation, proto.g, context.scope, origin, ranks=ranks)
        if kind == _TYPE_PROTO:
            return type_from(proto.tp, symbolic=False)
        raise UnsupportedError(f"attribute {proto.name!r} is of a kind that no supported operator has", code="ML313")


def _size(proto: Any, kind: int) -> int:
    """The bytes of an attribute of numbers or text."""
    if kind == _STRING:
        return len(proto.s)
    return sum(map(len, proto.strings)) if kind == _STRINGS else 8 * (len(proto.ints) + len(proto.floats))


def arguments(translator: Translator, inputs: list[Value | None], context: Context) -> list[Value | None]:
    """The inputs as arguments of the translator. ModelError if there are too few or too many."""
    limit = len(translator.inputs)
    present = inputs
    if translator.variadic:
        if (not translator.inputs and not present) or (None in present[limit:] and not translator.takes_absent):
            raise ModelError(f"{context.op_type} of opset {context.opset} lacks an input", code="ML227")
    else:
        while present and present[-1] is None:
            present = present[:-1]
        if len(present) > limit:
            raise ModelError(
                f"{context.op_type} of opset {context.opset} takes at most {limit} inputs, not {len(present)}",
                code="ML227",
            )
    if len(present) < translator.required or None in present[: translator.required]:
        # An optional input has a default. None for a required input is an error of the model.
        wanted = ", ".join(translator.inputs[: translator.required])
        raise ModelError(f"{context.op_type} needs the inputs {wanted}", code="ML227")
    return present


def require_tensors(inputs: Iterable[Value | None], context: Context) -> None:
    """Raise ModelError for an input that is not a tensor, and TypeError_ for strings that the schema does not allow."""
    for value in inputs:
        if value is not None and not isinstance(value.type, TensorType):
            raise ModelError(f"{context.op_type} takes tensors, and an input is {value.type}", code="ML227")
        if value is not None and value.type.dtype is string:
            _require_texts(inputs, context)
            return


def _require_texts(inputs: Iterable[Value | None], context: Context) -> None:
    """Raise TypeError_ for an input of strings where the schema of the operator has none."""
    schema = schema_of(context.op_type, context.opset, context.domain)
    if schema is None and context.domain != "":
        return  # an operator of another domain: its translator checks its inputs
    ports = [] if schema is None else schema.inputs
    for place, value in enumerate(inputs):
        if value is not None and value.type.dtype is string:
            port = ports[min(place, len(ports) - 1)] if ports else None
            if port is None or "tensor(string)" not in port.types:
                name = str(place) if port is None else repr(port.name)
                raise TypeError_(f"the input {name} is {value.type}, and must not be strings", code="ML240")


class Calls:
    """The calls of functions in which a translation is."""

    def __init__(self, opsets: dict[str, int]) -> None:
        """`opsets` are those of the model."""
        self._opsets = opsets
        self._open: list[tuple[str, str, str]] = []
        self._opsets_of: dict[tuple[str, str, str], dict[str, int]] = {}

    @contextmanager
    def entered(
        self, function: Any, context: Context, inputs: Sequence[Value | None]
    ) -> Iterator[tuple[Sequence[Any], Scope]]:
        """The nodes of a function as this call runs them, and their scope: its names are its own.

        Raises:
            LimitError: the calls are too deep or too many.
            ModelError: the function calls itself.
        """
        key = (function.domain, function.name, getattr(function, "overload", ""))
        if key in self._open:
            chain = " -> ".join(name for _, name, _ in [*self._open, key])
            raise ModelError(f"functions call each other in a cycle: {chain}", code="ML228")
        limits = budget().limits
        if len(self._open) >= limits.call_depth:
            raise exceeded(limits, "call_depth", "functions call each other deeper", context.origin)
        budget().call(key, function.name)
        scope = Scope(context.graph, None, context.origin.inner_scope)
        scope.depth = context.scope.depth
        scope.least_ranks = context.scope.least_ranks
        scope.attributes = bound_attributes(function, context.proto, context.scope.attributes)
        for name, value in zip(function.input, inputs, strict=False):
            if value is not None:
                scope.values[name] = value
        if key not in self._opsets_of:  # a model may call a function thousands of times
            self._opsets_of[key] = self._opsets | {domain_of(each): each.version for each in function.opset_import}
        scope.opsets = self._opsets_of[key]
        scope.read_ranks(function, partial(_ranks_of_results, function, context))
        absent = set(function.input) - scope.values.keys()
        self._open.append(key)
        try:
            yield without_absent(function, absent), scope
        finally:
            self._open.pop()


def _ranks_of_results(function: Any, context: Context) -> dict[str, int]:
    """The ranks that the graph of a call declares for the outputs of the function."""
    ranks = context.scope.ranks
    pairs = zip(function.output, map(ranks.of, context.outputs), strict=False) if ranks is not None else ()
    return {name: found.rank for name, found in pairs if found is not None}


def bound_attributes(function: Any, call: Any, outer: Mapping[str, Any] | None) -> dict[str, Any]:
    """Attribute name -> AttributeProto inside a call: the value of the caller, or the default of the function."""
    bound = {default.name: default for default in function.attribute_proto}
    for attribute in call.attribute:
        if not attribute.ref_attr_name:
            bound[attribute.name] = attribute
        elif outer and attribute.ref_attr_name in outer:
            bound[attribute.name] = outer[attribute.ref_attr_name]
    return bound


def without_absent(function: Any, absent: Iterable[str]) -> Sequence[Any]:
    """The function's nodes, with an empty name for each input that the caller leaves out."""
    gone = set(absent)
    if not gone:
        return function.node
    import onnx

    nodes = []
    for node in function.node:
        if gone.isdisjoint(node.input):
            nodes.append(node)
            continue
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        del copy.input[:]
        copy.input.extend("" if name in gone else name for name in node.input)
        nodes.append(copy)
    return nodes


def schema_function(
    domain: str, call: Any, opset: int, inputs: Sequence[Value | None], outer: Mapping[str, Any]
) -> Any:
    """The function body in the ONNX schema of an operator, as a FunctionProto, or None.

    `outer` holds the attributes of the function that contains the call: the body may depend on them. Of several
    bodies it is the newest whose version is at most the opset.

    Raises:
        UnsupportedError: the schema has a body, but not for inputs of these types.
    """
    import onnx

    schema = onnx_schema(call.op_type, opset, domain)
    if schema is None or schema.deprecated:
        return None
    if schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= opset]
        if versions:
            return _parsed(onnx, schema, schema.get_function_with_opset_version(max(versions)))
    if schema.has_context_dependent_function:
        types = [_type_proto(onnx, value) for value in inputs]
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
        if versions and all(t is not None for t in types):
            node = resolved(call, outer).SerializeToString()
            given = [t.SerializeToString() for t in types if t is not None]
            made = schema.get_context_dependent_function_with_opset_version(max(versions), node, given)
            function = _parsed(onnx, schema, made)
            if not function.node:
                raise UnsupportedError(
                    f"the schema of {call.op_type} has no function body for these types and shapes", code="ML316",
                    hint="give the shapes of the inputs, if some are known only at run time",
                )
            return function
    return None


def resolved(node: Any, outer: Mapping[str, Any]) -> Any:
    """The node with each reference to an attribute of the enclosing function, in its bodies too, replaced by its value.

    A reference to an attribute that has no value is removed: the default of the operator is used.
    """
    copy = type(node)()
    copy.CopyFrom(node)
    pending = [copy]
    while pending:
        each = pending.pop()
        pending += [inner for body in body_protos(each) for inner in body.node]
        if not any(attribute.ref_attr_name for attribute in each.attribute):
            continue
        sources = [outer.get(given.ref_attr_name) if given.ref_attr_name else given for given in each.attribute]
        names = [given.name for given in each.attribute]
        del each.attribute[:]
        for name, source in zip(names, sources, strict=True):
            if source is not None:
                each.attribute.append(source)
                each.attribute[-1].name = name
    return copy


def _parsed(onnx: Any, schema: Any, data: bytes) -> Any:
    """The function, with the defaults of the schema for the attributes to which it gives none itself."""
    function = onnx.FunctionProto()
    function.ParseFromString(data)
    given = {each.name for each in function.attribute_proto}
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.name:
            function.attribute_proto.append(attribute.default_value)
    return function


def _type_proto(onnx: Any, value: Value | None) -> Any:
    if value is None:
        return onnx.TypeProto()
    sequence = value.type if isinstance(value.type, SequenceType) else None
    type_ = value.type if sequence is None else sequence.element
    if not isinstance(type_, TensorType) or type_.dtype is None:
        return None
    shape = type_.shape
    dims = None if shape is None else [dim if isinstance(dim, int) else None for dim in shape]
    made = onnx.helper.make_tensor_type_proto(type_.dtype.onnx, dims)
    return made if sequence is None else onnx.helper.make_sequence_type_proto(made)
