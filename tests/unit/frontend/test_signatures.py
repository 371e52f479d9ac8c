"""Every translator's signature agrees with the schemas of the onnx package, or with those of ONNX Runtime's operators.

A translator registered `since=s` covers the schema that holds at opset s and every later one below the next
translator's s. Its positional parameters are the inputs in order (None where the schema says optional), its
keyword-only ones the attributes with the schema's defaults.
"""

import dis
import inspect
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import onnx
import pytest

from mo_loop.frontend import registry, schemas
from mo_loop.frontend.registry import IGNORED_ATTRIBUTES, REQUIRED, Translator
from mo_loop.ops.ranges import text_of_kinds

OPTION = onnx.defs.OpSchema.FormalParameterOption
KINDS = {
    "INT": "int", "FLOAT": "float", "STRING": "str", "INTS": "tuple[int, ...]", "FLOATS": "tuple[float, ...]",
    "STRINGS": "tuple[str, ...]",
}

STARTS_LATER: dict[str, str] = {}
"""Operators whose oldest versions are not translated, and why."""

OTHER_DEFAULTS = {
    ("Concat", 1, "axis"): "the text of the schema gives 1, its default field nothing",
    ("Split", 1, "axis"): "the text of the schema leaves it open, and runtimes took 0",
    ("Constant", 1, "value"): "required until opset 10, later one of several: the translator wants exactly one",
}
"""Attributes whose default is not the schema's, and why."""


def _schemas() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for schema in (*onnx.defs.get_all_schemas_with_history(), *schemas.contrib_schemas()):
        found[registry.qualified(schema.domain, schema.name)].append(schema)
    return {name: sorted(listed, key=lambda each: each.since_version) for name, listed in found.items()}


SCHEMAS = _schemas()


def _translators() -> dict[str, list[Translator]]:
    found: dict[str, list[Translator]] = defaultdict(list)
    for each in registry.every():
        found[registry.qualified(each.domain, each.op)].append(each)
    return {op: sorted(listed, key=lambda each: each.since) for op, listed in found.items()}


TRANSLATORS = _translators()


def _with_schemas() -> dict[str, list[Translator]]:
    """The translators of domains with schemas in the onnx package.

    From releases before 1.23 later versions of operators are missing: their translators are left out.
    """
    domains = {schema.domain for listed in SCHEMAS.values() for schema in listed}
    found = {op: listed for op, listed in sorted(TRANSLATORS.items()) if listed[0].domain in domains}
    if [int(part) for part in onnx.__version__.split(".")[:2]] >= [1, 23]:
        return found
    versions = {op: {schema.since_version for schema in SCHEMAS.get(op, ())} for op in found}
    known = {op: [each for each in listed if each.since in versions[op]] for op, listed in found.items()}
    return {op: listed for op, listed in known.items() if listed}


def _covered() -> Iterator[tuple[Translator, list[Any]]]:
    for op, listed in _with_schemas().items():
        for translator, following in zip(listed, [*listed[1:], None], strict=True):
            schemas = SCHEMAS.get(op, [])
            held = max((s.since_version for s in schemas if s.since_version <= translator.since), default=0)
            end = following.since if following else 10**6
            yield translator, [s for s in schemas if held <= s.since_version < end]


COVERED = list(_covered())
every_translator = pytest.mark.parametrize(
    ("translator", "schemas"), COVERED, ids=[f"{t.op}-{t.since}" for t, _ in COVERED]
)


@every_translator
def test_inputs(translator: Translator, schemas: list[Any]) -> None:
    assert schemas, f"ONNX has no {translator.op} at opset {translator.since}"
    parameters = inspect.signature(translator.function).parameters
    optional = translator.inputs[translator.required :]
    assert all(parameters[name].default is None for name in optional), "an optional input has a default but None"
    assert translator.required in _required(schemas)
    assert translator.variadic == any(_variadic(schema) for schema in schemas)
    if not translator.variadic:
        assert len(translator.inputs) == max(len(schema.inputs) for schema in schemas)


def _variadic(schema: Any) -> Any:
    return next((port for port in schema.inputs if port.option == OPTION.Variadic), None)


def _required(schemas: list[Any]) -> set[int]:
    """The number of parameters without default: the inputs that are required in every covered version. The first of a
    variadic port is one of them if the schema requires at least one, and may be a parameter of its own."""
    counts = set()
    for schema in schemas:
        single = [port.option == OPTION.Single for port in schema.inputs]
        count = next((i for i, must in enumerate(single) if not must), len(single))
        counts.add(count)
    least = min(counts)
    return {least, max(least, min(s.min_input for s in schemas))} if any(map(_variadic, schemas)) else {least}


@every_translator
def test_attributes(translator: Translator, schemas: list[Any]) -> None:
    known: set[str] = set()
    for schema in schemas:
        attributes = {name: a for name, a in schema.attributes.items() if name not in IGNORED_ATTRIBUTES}
        known |= attributes.keys()
        for name, attribute in attributes.items():
            assert name in translator.attributes, f"version {schema.since_version} has {name}"
            given = translator.attributes[name]
            allowed = (translator.op, translator.since, name) in OTHER_DEFAULTS
            assert allowed or _same_default(given, attribute), f"the default of {name} is another"
            kind = _kind(translator, name)
            assert kind == KINDS.get(attribute.type.name, kind), f"{name} is of kind {attribute.type.name}"
    assert translator.attributes.keys() <= known, "attributes that ONNX does not know"


def _kind(translator: Translator, name: str) -> str:
    """The annotation of an attribute as text."""
    return text_of_kinds(translator.kinds[name]).removesuffix(" | None")


def _same_default(ours: Any, attribute: Any) -> bool:
    if attribute.required:
        return ours is REQUIRED
    if ours is REQUIRED:
        return False
    if not attribute.default_value.type:
        return ours is None or ours == ()
    theirs = onnx.helper.get_attribute_value(attribute.default_value)
    if isinstance(theirs, float):
        return bool(np.float32(ours) == np.float32(theirs))
    if isinstance(theirs, list):
        return tuple(ours) == tuple(each.decode() if isinstance(each, bytes) else each for each in theirs)
    return bool(ours == (theirs.decode() if isinstance(theirs, bytes) else theirs))


WITH_SCHEMAS = _with_schemas()


@pytest.mark.parametrize("op", WITH_SCHEMAS)
def test_oldest(op: str) -> None:
    """The oldest version has a translator, or a reason is listed here."""
    assert (WITH_SCHEMAS[op][0].since == SCHEMAS[op][0].since_version) == (op not in STARTS_LATER)


@pytest.mark.parametrize("op", WITH_SCHEMAS)
def test_since(op: str) -> None:
    """Every `since` is an opset at which the schema changed: another one would hide a version of a different form."""
    assert {each.since for each in WITH_SCHEMAS[op]} <= {schema.since_version for schema in SCHEMAS[op]}


def test_a_parameter_that_is_not_read_is_declared() -> None:
    """Parameters that a translator does not read and no decorator declares as ignored; or that are declared, and read.
    """
    of: dict[Any, set[str]] = defaultdict(set)
    for translator in registry.every():
        of[translator.function].update(translator.ignored)
    wrong = {f"{function.__module__}.{function.__name__}": unread ^ ignored
             for function, ignored in of.items() if (unread := _unread(function)) != ignored}
    assert not wrong and _unread(lambda x, y, *, axis=0: (lambda: y)) == {"x", "axis"}


def _unread(function: Any) -> set[str]:
    """The parameters that no instruction of a function loads."""
    code = function.__code__
    read = {*code.co_cellvars}
    for each in dis.get_instructions(code):
        if "LOAD" in each.opname:
            read.update(each.argval if isinstance(each.argval, tuple) else (each.argval,))
    return set(inspect.signature(function).parameters) - read


@pytest.mark.parametrize("family", sorted(registry.FAMILIES))
def test_families(family: str) -> None:
    """FAMILIES lists exactly the operators that a module registers; it decides which module an operator imports."""
    module = import_module(f"mo_loop.frontend.ops.{family}")
    listed = registry.FAMILIES[family].split()
    assert len(listed) == len(set(listed))
    for op in listed:
        assert op in TRANSLATORS, f"{family} registers no {op}"
    owners = {op: name for name, ops in registry.FAMILIES.items() for op in ops.split()}
    for op, translators in TRANSLATORS.items():
        assert op in owners, f"{op} is in no family"
        if owners[op] == family:
            homes = {each.function.__module__ for each in translators}
            allowed = {module.__name__, "mo_loop.frontend.registry", *_helpers(module)}
            assert homes <= allowed, f"{op} is made in {homes}"


def _helpers(module: Any) -> set[str]:
    """Modules of the families from which a family imports functions that register for it."""
    return {
        value.__module__ for value in vars(module).values()
        if inspect.isfunction(value) and value.__module__.startswith("mo_loop.frontend.ops.")
    }
