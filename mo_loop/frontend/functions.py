"""ONNX functions: those of the model and those of operator schemas, expanded at each call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from mo_loop.conversion_limits import budget, exceeded
from mo_loop.errors import ModelError, UnsupportedError
from mo_loop.frontend.context import Context
from mo_loop.frontend.onnx_graphs import body_protos
from mo_loop.frontend.schemas import onnx_schema
from mo_loop.frontend.scope import Scope
from mo_loop.graph import Value
from mo_loop.graph.types import SequenceType, TensorType


class Calls:
    """The calls of functions in which a translation is."""

    def __init__(self, opsets: Mapping[str, int]) -> None:
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
            own = {("" if e.domain == "ai.onnx" else e.domain): e.version for e in function.opset_import}
            self._opsets_of[key] = {**self._opsets, **own}
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
                )  # fmt: skip
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
