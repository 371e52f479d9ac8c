"""The arguments of translators: the attributes of nodes as keywords, and the inputs, whose number and kind are checked.

    reader = AttributeReader(model.files)
    reader.keywords(node, translator, ignored=(), is_adapted=True)    # {"axis": 1, "body": Body}

A tensor becomes a Tensor, a graph a Body, text a string. The translator declares the attributes, their kinds
and in which range. A reference to an attribute of the enclosing function has the value of its call.
    given = arguments(translator, inputs, node)    # ModelError if there are too few or too many
    require_tensors(given, node)                   # ModelError for a sequence, TypeError_ for strings

mo_loop/ops/ranges.py checks the declarations of a translator about its inputs and attributes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from typing import Any

import numpy as np

from mo_loop.errors import ModelError, TypeError_, UnsupportedError
from mo_loop.frontend.context import Body, Context
from mo_loop.frontend.declared_types import type_from
from mo_loop.frontend.external_files import ExternalFiles, dense_from_sparse, tensor_from
from mo_loop.frontend.onnx_graphs import body_name
from mo_loop.frontend.registry import IGNORED_ATTRIBUTES, Translator
from mo_loop.frontend.schemas import schema_of
from mo_loop.frontend.strip_weights import FLOATS, INTS, STRINGS, Texts, listed
from mo_loop.frontend.translators import as_kind, kind_of
from mo_loop.graph import Value
from mo_loop.graph.types import TensorType, string
from mo_loop.ops.ranges import text_of_kinds
from mo_loop.origin import Origin

_FLOAT, _INT, _STRING, _TENSOR, _GRAPH, _FLOATS, _INTS, _STRINGS, _TENSORS, _GRAPHS, _SPARSE = range(1, 12)
_TYPE_PROTO = 13

_KINDS: dict[int, Any] = {
    _INT: int, _FLOAT: float, _STRING: str, _GRAPH: Body, _INTS: tuple[int, ...], _FLOATS: tuple[float, ...],
    _STRINGS: tuple[str, ...], _TYPE_PROTO: TensorType,
}  # fmt: skip
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
        raise UnsupportedError(f"attribute {proto.name!r} is of a kind that no operator here uses", code="ML313")


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
    domain = "" if context.domain == "ai.onnx" else context.domain
    schema = schema_of(context.op_type, context.opset, domain)
    if schema is None and domain != "":
        return  # an operator of another domain: its translator checks its inputs
    ports = [] if schema is None else schema.inputs
    for place, value in enumerate(inputs):
        if value is not None and value.type.dtype is string:
            port = ports[min(place, len(ports) - 1)] if ports else None
            if port is None or "tensor(string)" not in port.types:
                name = str(place) if port is None else repr(port.name)
                raise TypeError_(f"the input {name} is {value.type}, and must not be strings", code="ML240")
