"""The translator of a node: one of mo_loop, or one that an extension registers for one conversion.

    custom = CustomTranslators()
    custom.add("com.example", described("Twice", 1, function, "twice.py"))
    translate(model, custom=custom)

The signature is the schema, as in registry.py. `described` checks the signature when a translator is registered,
`called` checks the result. Both raise ExtensionError. TranslatorTable finds the translator of a node among
them and those of mo_loop, once for each operator and opset.

Old exporters and tools write nodes that their opset does not allow. They are understood:

    version_read("Gelu", 17, "")              # 20: the first version of an operator that is newer than the opset
    reading = Reading.of(node, translator, inputs)
    reading.translator, reading.inputs        # those of a version that has this form, and what the node leaves out
    reading.doubts                            # what was assumed, as sentences

Each assumption is a warning, and an error of a strict conversion.
"""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache
from types import NoneType
from typing import Any

import numpy as np

from mo_loop.errors import ExtensionError, InternalError, MoLoopError, extension_failed
from mo_loop.frontend import registry
from mo_loop.frontend.context import Body, Context, as_values
from mo_loop.graph import Value
from mo_loop.ops.ranges import kinds_of, text_of_kinds

OMITTED: Mapping[str, Mapping[int, int | tuple[int, ...]]] = {"CumSum": {1: 0}, "ConstantOfShape": {0: ()}}
"""Operator -> the required inputs that files leave out, and the integers that are taken for them: those that OpenVINO's
own front end takes."""

SHOWN = 20
"""The number of unknown attributes of a node that a warning lists."""

EXPERIMENTAL = frozenset(registry.FAMILIES["legacy"].split())
"""Operators that ONNX, or the exporters of its first years, had for a time."""


def version_read(op: str, opset: int, domain: str) -> int | None:
    """The version by which a node is read whose operator the imported opset does not have; None for no known operator.

    It is the first version of an operator that is newer, and the newest one if the model does not import the domain (a
    version of 0): ONNX Runtime takes that one, too.
    """
    versions = [each.since for each in registry.listed(op, domain)] or _versions_with_bodies(op, domain)
    if not versions or (opset and min(versions) <= opset):
        return None
    return min(versions) if opset else max(versions)


@cache
def _versions_with_bodies(op: str, domain: str) -> list[int]:
    """The versions of an operator whose schemas have a function body."""
    import onnx

    return [
        each.since_version for each in onnx.defs.get_all_schemas_with_history()
        if (each.name, each.domain) == (op, domain) and not each.deprecated
        and (each.has_function or each.has_context_dependent_function)
    ]


@dataclass(slots=True)
class Reading:
    """The reading of a node: its translator, its inputs, and the attributes to ignore."""

    translator: registry.Translator
    inputs: list[Value | None]
    ignored: Collection[str] = ()
    doubts: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, node: Context, translator: registry.Translator, inputs: list[Value | None]) -> "Reading":
        """The reading of a node that has not the form of `translator`, the one of its opset."""
        reading = cls(translator, inputs)
        reading._adapt(node, set(attribute_names(node.proto)) - registry.IGNORED_ATTRIBUTES)
        return reading

    def _adapt(self, node: Context, names: set[str]) -> None:
        versions = registry.listed(self.translator.op, self.translator.domain)
        known = names & {name for each in versions for name in each.attributes}
        self._choose(node, versions, known)
        self._complete(node)
        extra = sorted(names - self.translator.attributes.keys())
        if extra and all(name not in known or _has_default(node.proto, name, versions) for name in extra):
            self.ignored = frozenset(extra)
            more = f" and {len(extra) - SHOWN} more" if len(extra) > SHOWN else ""
            shown = ", ".join(map(repr, extra[:SHOWN])) + more
            self.doubts.append(f"{node.op_type} of opset {node.opset} has no attribute {shown}: it is ignored")

    def _choose(self, node: Context, versions: Sequence[registry.Translator], known: Collection[str]) -> None:
        """Take the nearest version whose inputs and attributes are those of the node."""
        if has_form(self.translator, self.inputs, known):
            return
        place = versions.index(self.translator)
        nearest = sorted(range(len(versions)), key=lambda each: (abs(each - place), -each))
        found = next((versions[each] for each in nearest if _fits(versions[each], self.inputs, known)), None)
        if found is None:
            return
        self.translator = found
        text = f"{node.op_type} of opset {node.opset} has other inputs or attributes"
        self.doubts.append(f"{text}: it is read as one of opset {found.since}")
        node.opset = found.since

    def _complete(self, node: Context) -> None:
        """Add the inputs that files leave out although the operator requires them."""
        for place, value in OMITTED.get(self.translator.op, {}).items() if not self.translator.domain else ():
            if len(self.inputs) <= place or self.inputs[place] is None:
                given = [*self.inputs, *[None] * (place + 1 - len(self.inputs))]
                given[place] = node.constant(np.array(value, np.int64))
                self.inputs = given
                name = self.translator.inputs[place]
                self.doubts.append(f"{node.op_type} lacks the input {name!r}: {value} is taken")


def attribute_names(proto: Any) -> Sequence[str]:
    """The names of the attributes of a node."""
    attributes = proto.attribute
    return [each.name for each in attributes] if attributes else ()


def has_form(translator: registry.Translator, inputs: Sequence[Value | None], names: Collection[str]) -> bool:
    """Whether a version has these inputs and attributes."""
    count, required = len(inputs), translator.required
    while count and inputs[count - 1] is None:
        count -= 1
    if count > len(translator.inputs) and not translator.variadic:
        return False
    if count < required or None in inputs[:required]:
        return False
    known = translator.attributes
    return all(name in known or name in registry.IGNORED_ATTRIBUTES for name in names) if names else True


def _fits(translator: registry.Translator, inputs: Sequence[Value | None], names: Collection[str]) -> bool:
    """Whether a version has these inputs and attributes, and requires no other attributes."""
    return set(translator.needed) <= set(names) and has_form(translator, inputs, names)


def _has_default(proto: Any, name: str, versions: Sequence[registry.Translator]) -> bool:
    """Whether the attribute has the default value of the versions that have it, so that it changes nothing."""
    import onnx

    attribute = next(each for each in proto.attribute if each.name == name)
    if attribute.ref_attr_name:
        return False
    value = onnx.helper.get_attribute_value(attribute)
    plain = tuple(value) if isinstance(value, list) else value
    plain = plain.decode("utf-8", "replace") if isinstance(plain, bytes) else plain
    return any(each.attributes.get(name, registry.REQUIRED) == plain for each in versions)


def kind_of(attribute: Any) -> int:
    """The AttributeType of an attribute that does not state it, as in files of IR version 1."""
    import onnx

    kinds = {
        "f": "FLOAT", "i": "INT", "s": "STRING", "t": "TENSOR", "floats": "FLOATS", "ints": "INTS",
        "strings": "STRINGS",
    }
    given = [descriptor.name for descriptor, _ in attribute.ListFields()]
    return next((onnx.AttributeProto.AttributeType.Value(kinds[name]) for name in given if name in kinds), 0)


def as_kind(value: Any, kinds: Collection[Any]) -> Any:
    """A number or numbers of the other kind as one of `kinds`, if that changes no value; None otherwise."""
    numbers = value if isinstance(value, tuple) else (value,)
    if not numbers or any(not isinstance(each, int | float) for each in numbers):
        return None
    if float in kinds and len(numbers) == 1:
        return float(numbers[0])
    if tuple[float, ...] in kinds:
        return tuple(map(float, numbers))
    if any(each != each // 1 for each in numbers):
        return None
    whole = tuple(map(int, numbers))
    if tuple[int, ...] in kinds:
        return whole
    return whole[0] if int in kinds and len(whole) == 1 else None


KINDS = (int, float, str, tuple[int, ...], tuple[float, ...], tuple[str, ...], Body, Any)
"""The annotations of attributes; each may have `| None`. `Any` allows tensors and values of every kind."""


class CustomTranslators:
    """The custom translators of one conversion. They precede functions of the model and the table of registry.py."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str], list[registry.Translator]] = {}

    def add(self, domain: str, translator: registry.Translator) -> None:
        """Add a translator; it replaces one of the same operator and version."""
        key = ("" if domain == "ai.onnx" else domain, translator.op)
        self._of[key] = registry.with_one(self._of.get(key, ()), translator)

    def update(self, other: "CustomTranslators") -> None:
        """Add all translators of `other`."""
        for (domain, _), listed in other._of.items():
            for each in listed:
                self.add(domain, each)

    def find(self, domain: str, op: str, opset: int) -> registry.Translator | None:
        """The newest translator whose version is at most `opset`, or None."""
        return registry.newest(self._of.get((domain, op), ()), opset)

    def __iter__(self) -> Iterator[tuple[str, registry.Translator]]:
        """All of them with their domains, by domain, operator and version."""
        return ((domain, each) for domain, op in sorted(self._of) for each in self._of[domain, op])

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
        )
    if not isinstance(since, int) or isinstance(since, bool) or since < 1:
        raise ExtensionError(f"the translator of {op} has since={since!r}, which is not a version", code="ML263")


def described(op: str, since: int, function: Callable[..., Any], origin: str) -> registry.Translator:
    """A Translator from the signature of an extension's function. ExtensionError if the signature is not valid."""
    if not callable(function):
        raise ExtensionError(f"the translator of {op} is {function!r}, not a function", code="ML263")
    for parameter in registry.evaluated_parameters(function):
        problem = _problem(parameter)
        if problem:
            raise ExtensionError(
                f"the translator of {op}: {problem}", where=defined_at(function), code="ML263",
                hint="positional parameters are inputs (None as default: optional), keyword-only ones are attributes",
            )
    said = registry.describe(op, since, function)
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
    translator: registry.Translator, given: Sequence[Value | None], keywords: Mapping[str, Any], context: Context
) -> list[Value | None]:
    """Call the translator of an extension for a node and return one value for each named output.

    Raises:
        ExtensionError: it raised an error that is not about the model, or returned other objects than values.
    """
    what = f"the translator of {translator.op}"
    try:
        values = as_values(translator(*given, **keywords))
    except Exception as error:
        if context.contains(error) or (isinstance(error, MoLoopError) and not isinstance(error, InternalError)):
            raise
        raise extension_failed(what, translator.origin, error, "ML266") from error
    problem = _wrong(values, context)
    if problem:
        raise ExtensionError(
            f"{what} of {translator.origin} returned {problem}", code="ML266",
            hint=f"it is defined at {defined_at(translator.function)}; return a node, a value or a list of them",
        )
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
            if version is not None and not opset:
                return f"the model does not import {domain}: {op} is read as one of version {version}", version
            if version is not None:
                first = f"{domain or 'ONNX'} has {op} from opset {version} on"
                return f"{first}, and the model imports {opset}: it is read as one of opset {version}", version
        elif registry.qualified(domain, op) in EXPERIMENTAL:
            return f"{op} is an operator that ONNX did not keep: it is read as it was documented last", opset
        return "", opset
