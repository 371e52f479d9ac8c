"""The reading of nodes that their opset does not allow: old exporters and tools write such nodes, and they are
understood.

    version_read("Gelu", 17, "")              # 20: the first version of an operator that is newer than the opset
    reading = Reading.of(node, translator, inputs)
    reading.translator, reading.inputs        # those of a version that has this form, and what the node leaves out
    reading.doubts                            # what was assumed, as sentences

Each assumption is a warning, and an error of a strict conversion.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from mo_loop.frontend import registry
from mo_loop.frontend.context import Context
from mo_loop.frontend.registry import IGNORED_ATTRIBUTES, REQUIRED, Translator
from mo_loop.graph import Value

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
    ]  # fmt: skip


def assumed_version(op: str, opset: int, domain: str, version: int) -> str:
    """The assumption of `version_read`, as a sentence."""
    if not opset:
        return f"the model does not import {domain}: {op} is read as one of version {version}"
    first = f"{domain or 'ONNX'} has {op} from opset {version} on"
    return f"{first}, and the model imports {opset}: it is read as one of opset {version}"


@dataclass(slots=True)
class Reading:
    """The reading of a node: its translator, its inputs, and the attributes to ignore."""

    translator: Translator
    inputs: list[Value | None]
    ignored: Collection[str] = ()
    doubts: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, node: Context, translator: Translator, inputs: list[Value | None]) -> Reading:
        """The reading of a node that has not the form of `translator`, the one of its opset."""
        reading = cls(translator, inputs)
        reading._adapt(node, set(attribute_names(node.proto)) - IGNORED_ATTRIBUTES)
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

    def _choose(self, node: Context, versions: Sequence[Translator], known: Collection[str]) -> None:
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


def has_form(translator: Translator, inputs: Sequence[Value | None], names: Collection[str]) -> bool:
    """Whether a version has these inputs and attributes."""
    count, required = len(inputs), translator.required
    while count and inputs[count - 1] is None:
        count -= 1
    if count > len(translator.inputs) and not translator.variadic:
        return False
    if count < required or None in inputs[:required]:
        return False
    known = translator.attributes
    return all(name in known or name in IGNORED_ATTRIBUTES for name in names) if names else True


def _fits(translator: Translator, inputs: Sequence[Value | None], names: Collection[str]) -> bool:
    """Whether a version has these inputs and attributes, and requires no other attributes."""
    return set(translator.needed) <= set(names) and has_form(translator, inputs, names)


def _has_default(proto: Any, name: str, versions: Sequence[Translator]) -> bool:
    """Whether the attribute has the default value of the versions that have it, so that it changes nothing."""
    import onnx

    attribute = next(each for each in proto.attribute if each.name == name)
    if attribute.ref_attr_name:
        return False
    value = onnx.helper.get_attribute_value(attribute)
    plain = tuple(value) if isinstance(value, list) else value
    plain = plain.decode("utf-8", "replace") if isinstance(plain, bytes) else plain
    return any(each.attributes.get(name, REQUIRED) == plain for each in versions)


_LISTS = ("floats", "ints", "strings")
"""Fields of AttributeProto that hold several values."""


def kind_of(attribute: Any) -> int:
    """The AttributeType of an attribute that does not state it, as in files of IR version 1."""
    import onnx

    kinds = {
        "f": "FLOAT",
        "i": "INT",
        "s": "STRING",
        "t": "TENSOR",
        "floats": "FLOATS",
        "ints": "INTS",
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
