"""CustomTranslators: the translators that extensions register for one conversion.

    custom = CustomTranslators()
    custom.add("com.example", described("Twice", 1, function, "twice.py"))
    translate(model, custom=custom)

The signature is the schema, as in registry.py. `described` checks the signature when a translator is registered,
`called` checks the result. Both raise ExtensionError. TranslatorTable finds the translator of a node among
them and those of mo_loop, once for each operator and opset.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from types import NoneType
from typing import Any

from mo_loop.errors import ExtensionError, InternalError, MoLoopError, extension_failed
from mo_loop.frontend import registry
from mo_loop.frontend.context import Body, Context, as_values
from mo_loop.frontend.registry import Translator, describe, evaluated_parameters, newest, with_one
from mo_loop.frontend.tolerated_nodes import EXPERIMENTAL, assumed_version, version_read
from mo_loop.graph import Value
from mo_loop.ops.ranges import kinds_of, text_of_kinds

KINDS = (int, float, str, tuple[int, ...], tuple[float, ...], tuple[str, ...], Body, Any)
"""The annotations of attributes; each may have `| None`. `Any` allows tensors and values of every kind."""


class CustomTranslators:
    """The custom translators of one conversion. They precede functions of the model and the table of registry.py."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str], list[Translator]] = {}

    def add(self, domain: str, translator: Translator) -> None:
        """Add a translator; it replaces one of the same operator and version."""
        key = ("" if domain == "ai.onnx" else domain, translator.op)
        self._of[key] = with_one(self._of.get(key, ()), translator)

    def update(self, other: CustomTranslators) -> None:
        """Add all translators of `other`."""
        for (domain, _), listed in other._of.items():
            for each in listed:
                self.add(domain, each)

    def find(self, domain: str, op: str, opset: int) -> Translator | None:
        """The newest translator whose version is at most `opset`, or None."""
        return newest(self._of.get((domain, op), ()), opset)

    def oldest(self, domain: str, op: str) -> int | None:
        """The first version with a translator; None if there is none."""
        listed = self._of.get((domain, op))
        return listed[0].since if listed else None


def require_operator(op: Any, domain: Any, since: Any) -> None:
    """Raise ExtensionError unless the arguments name an operator and a version of its domain."""
    if not isinstance(op, str) or not op or not isinstance(domain, str):
        raise ExtensionError(
            f"{domain!r} and {op!r} are not a domain and an operator", code="ML263",
            hint='write: @extensions.translates("MyOp", domain="com.example", since=1)',
        )  # fmt: skip
    if not isinstance(since, int) or isinstance(since, bool) or since < 1:
        raise ExtensionError(f"the translator of {op} has since={since!r}, which is not a version", code="ML263")


def described(op: str, since: int, function: Callable[..., Any], origin: str) -> Translator:
    """A Translator from the signature of an extension's function. ExtensionError if the signature is not valid."""
    if not callable(function):
        raise ExtensionError(f"the translator of {op} is {function!r}, not a function", code="ML263")
    for parameter in evaluated_parameters(function):
        problem = _problem(parameter)
        if problem:
            raise ExtensionError(
                f"the translator of {op}: {problem}", where=defined_at(function), code="ML263",
                hint="positional parameters are inputs (None as default: optional), keyword-only ones are attributes",
            )  # fmt: skip
    said = describe(op, since, function)
    # Without an annotation, or with Any, an attribute may be of any kind.
    compared = {name: kinds if set(kinds) <= {*KINDS[:-1], NoneType} else () for name, kinds in said.kinds.items()}
    return replace(said, kinds=compared, origin=origin, takes_absent=bool(said.inputs))


def _problem(parameter: inspect.Parameter) -> str:
    if parameter.kind is parameter.VAR_KEYWORD:
        return f"**{parameter.name} names no attribute"
    if parameter.kind is parameter.VAR_POSITIONAL:
        return ""
    if parameter.kind is not parameter.KEYWORD_ONLY:
        if parameter.name == "node":
            return "`node` has to be keyword-only"
        return "" if parameter.default in (parameter.empty, None) else f"the input {parameter.name} has a default"
    kinds = kinds_of(parameter.annotation)
    if parameter.name == "node" or parameter.annotation is parameter.empty or set(kinds) <= {*KINDS, NoneType}:
        return ""
    wanted = ", ".join(text_of_kinds([kind]) for kind in KINDS)
    return f"the attribute {parameter.name} is annotated as {text_of_kinds(kinds)}; wanted is one of {wanted}"


def defined_at(function: Any) -> str:
    """`file:line` of a function's definition, where it has one."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def called(
    translator: Translator, given: Sequence[Value | None], keywords: Mapping[str, Any], context: Context
) -> list[Value | None]:
    """Call the translator of an extension for a node and return one value for each named output.

    Raises:
        ExtensionError: it raised an error that is not about the model, or returned other objects than values.
    """
    what = f"the translator of {translator.op}"
    try:
        values = as_values(translator(*given, **keywords))
    except Exception as error:
        if context.is_above(error) or (isinstance(error, MoLoopError) and not isinstance(error, InternalError)):
            raise
        raise extension_failed(what, translator.origin, error, "ML266") from error
    problem = _wrong(values, context)
    if problem:
        raise ExtensionError(
            f"{what} of {translator.origin} returned {problem}", code="ML266",
            hint=f"it is defined at {defined_at(translator.function)}; return a node, a value or a list of them",
        )  # fmt: skip
    return values


def _wrong(values: Sequence[Any], context: Context) -> str:
    for value in values:
        if value is not None and not isinstance(value, Value):
            return f"{value!r}, which is not a value of the graph"
        if value is not None and (value.node.graph is not context.graph or value.node not in context.graph):
            return f"{value!r}, which belongs to another graph"
    for index, name in enumerate(context.outputs):
        if name and (index >= len(values) or values[index] is None):
            return f"nothing for the output {name!r}, {len(values)} in all"
    return ""


class TranslatorTable:
    """The translators of one model, whose functions and `custom` translators go before those of this library."""

    def __init__(self, custom: CustomTranslators, functions: Set[tuple[str, str]]) -> None:
        """`functions` are the domains and names of the functions of the model."""
        self._custom = custom
        self._functions = functions
        self._usual: dict[tuple[str, str, int], registry.Translator | None] = {}

    def usual(self, domain: str, op: str, opset: int) -> registry.Translator | None:
        """The translator of this library; None for extensions, functions, and where something has to be assumed."""
        key = (domain, op, opset)
        if key in self._usual:
            return self._usual[key]
        found = None
        is_other = (domain, op) in self._functions or self._custom.find(domain, op, opset)
        if not is_other and registry.qualified(domain, op) not in EXPERIMENTAL:
            found = registry.find(op, opset, domain)
        self._usual[key] = found
        return found

    def assumed(self, domain: str, op: str, opset: int) -> tuple[str, int]:
        """The assumption under which an operator that the opset lacks is read, and the version that is read."""
        if registry.find(op, opset, domain) is None and self._custom.oldest(domain, op) is None:
            version = version_read(op, opset, domain)
            if version is not None:
                return assumed_version(op, opset, domain, version), version
        elif registry.qualified(domain, op) in EXPERIMENTAL:
            return f"{op} is an operator that ONNX did not keep: it is read as it was documented last", opset
        return "", opset
