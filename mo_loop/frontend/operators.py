"""How each ONNX operator is handled, version by version: what `mo-loop ops` and docs/operators.md print.

    handled("Softmax")      # [Handling('', 'Softmax', 1, 'composed', ...), ...]

direct     one operation of the IR, always the same
composed   several of them, or one of several by attributes, types and shapes
lowered    a node of the graph that passes turn into operations of the IR: control flow, lists
function   the body that ONNX itself gives the operator, expanded; each of its operators is handled in its turn
refused    nothing translates it: `note` says why

Which operations a translator can make is read off its code, so the table cannot differ from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import Any

from mo_loop import ops
from mo_loop.frontend import limits, registry
from mo_loop.frontend.refusals import reason
from mo_loop.graph import Node

DIRECT, COMPOSED, LOWERED, FUNCTION, REFUSED = "direct", "composed", "lowered", "function", "refused"
HOW = (DIRECT, COMPOSED, LOWERED, FUNCTION, REFUSED)

_ITERATIONS = ("Loop-5", "TensorIterator-1")
_LOWERED: dict[str, tuple[str, ...]] = {
    "Loop": _ITERATIONS, "Scan": _ITERATIONS, "SequenceMap": _ITERATIONS, "If": ("If-8",),
    **dict.fromkeys(registry.FAMILIES["sequences"].split(), ()),
}  # fmt: skip
_HOMES = ("mo_loop.frontend.ops.", "mo_loop.frontend.registry")
_PLUMBING = frozenset(("Constant", "Parameter", "Result"))
"""Operations that any composition may need; they say nothing about an operator."""


@dataclass(frozen=True)
class Handling:
    """What becomes of an operator from `version` of its domain on; `until` is the last such, None for the newest.

    `becomes` names the operations of the IR that it can turn into, with their opsets. `note` says why it is refused,
    or what is known to be refused or computed otherwise of an operator that is translated.
    """

    domain: str
    operator: str
    version: int
    how: str
    becomes: tuple[str, ...] = ()
    note: str = ""
    until: int | None = None

    @property
    def name(self) -> str:
        """The operator with its domain, as messages write it."""
        return registry.qualified(self.domain, self.operator)

    @property
    def opsets(self) -> str:
        """The versions of the domain that it holds for: `13+`, `1-12`, `7`."""
        if self.until is None:
            return f"{self.version}+"
        return str(self.version) if self.until == self.version else f"{self.version}-{self.until}"


def handled(operator: str | None = None, domain: str | None = None) -> list[Handling]:
    """Every version of one operator, or of all, that the installed onnx package knows; by domain, name and version."""
    import onnx

    schemas = [
        schema
        for schema in onnx.defs.get_all_schemas_with_history()
        if operator in (None, schema.name) and domain in (None, schema.domain)
    ]
    schemas.sort(key=lambda schema: (schema.domain, schema.name, schema.since_version))
    found = []
    for schema, after in zip(schemas, [*schemas[1:], None], strict=True):
        if schema.deprecated:
            continue
        follows = after is not None and (after.domain, after.name) == (schema.domain, schema.name)
        found.append(replace(_handling(schema), until=after.since_version - 1 if follows else None))
    return found


def merged(rows: Iterable[Handling]) -> list[Handling]:
    """`rows` as `handled` gives them, with versions joined that are handled alike."""
    found: list[Handling] = []
    for row in rows:
        last = found[-1] if found else None
        if last is not None and replace(row, version=last.version, until=last.until) == last:
            found[-1] = replace(last, until=row.until)
        else:
            found.append(row)
    return found


def _handling(schema: Any) -> Handling:
    domain, name, version = schema.domain, schema.name, schema.since_version
    note = "; ".join(map(str, limits.of(registry.qualified(domain, name))))
    if not domain and name in _LOWERED:
        return Handling(domain, name, version, LOWERED, _LOWERED[name], note)
    translator = registry.find(name, version, domain)
    if translator is not None:
        made = _made_by(translator.function)
        kinds = [cls for cls in made if cls.__name__ not in _PLUMBING] or made
        becomes = tuple(sorted({f"{cls.type}-{cls.opset}" for cls in kinds}))
        return Handling(domain, name, version, DIRECT if len(made) == 1 else COMPOSED, becomes, note)
    if schema.has_function or schema.has_context_dependent_function:
        return Handling(domain, name, version, FUNCTION, note=note)
    return Handling(domain, name, version, REFUSED, note=reason(domain, name))


def _made_by(function: Callable[..., Any]) -> list[Any]:
    """The classes of operations that a function can make, itself or by functions of the families that it calls."""
    found: dict[Any, None] = {}
    pending: list[Any] = [function]
    seen: set[int] = set()
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, type) and issubclass(each, Node):
            if getattr(each, "opset", 0):
                found[each] = None
        elif isinstance(each, FunctionType) and each.__module__.startswith(_HOMES):
            pending.extend(_mentioned(each))
    return list(found)


def _mentioned(function: FunctionType) -> Iterator[Any]:
    """What a function names: operations, functions of its module, tables of either, and what it is closed over."""
    yield from (cell.cell_contents for cell in function.__closure__ or ())
    has_ops = function.__globals__.get("ops") is ops
    for name in _names(function.__code__):
        yield from _members(function.__globals__.get(name))
        if has_ops:
            yield getattr(ops, name, None)


def _members(thing: Any) -> Iterator[Any]:
    """A dict is a table to choose from; a tuple of classes is what `isinstance` takes."""
    if isinstance(thing, dict):
        yield from thing.values()
    else:
        yield thing


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)
