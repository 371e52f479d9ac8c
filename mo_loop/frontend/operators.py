"""The conversion of each version of each ONNX operator: the table of `mo-loop ops` and docs/operators.md.

    handled("Softmax")      # [Handling('', 'Softmax', 1, 'composed', ...), ...]

direct     one operation of the IR, always the same
composed   several operations, or one of several; attributes, types and shapes decide
lowered    a front operation that passes turn into operations of the IR: control flow, sequences
function   the function body in the ONNX schema of the operator, expanded; each of its operators is translated
refused    no translator exists: `note` gives the reason

operations_made.json lists the operations that each translator can make, with an entry for each version at which they
change. Tests compare the list with the operations that the translators make for the ONNX backend test suite;
`tools/record_operations.py` adds missing entries.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from mo_loop.frontend import operator_limitations as limits
from mo_loop.frontend import registry, schemas
from mo_loop.frontend.refusals import reason

DIRECT, COMPOSED, LOWERED, FUNCTION, REFUSED = "direct", "composed", "lowered", "function", "refused"
HOW = (DIRECT, COMPOSED, LOWERED, FUNCTION, REFUSED)

ITERATIONS = ("Loop-5", "TensorIterator-1")
LOWERED_OPERATORS: dict[str, tuple[str, ...]] = {
    "Loop": ITERATIONS, "Scan": ITERATIONS, "SequenceMap": ITERATIONS, "If": ("If-8",),
    **dict.fromkeys(registry.FAMILIES["sequences"].split(), ()),
    **dict.fromkeys(registry.GENERATION.split(), ITERATIONS),
}  # fmt: skip


@dataclass(frozen=True)
class Handling:
    """The conversion of an operator in the versions `version` to `until` of its domain; `until` is None for the newest.

    `becomes` names the operations of the IR that it can turn into, with their opsets. `note` gives the reason for a
    refusal, or the uses of a translated operator that are refused or give other numbers.
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
        """The versions of the domain as text: `13+`, `1-12`, `7`."""
        if self.until is None:
            return f"{self.version}+"
        return str(self.version) if self.until == self.version else f"{self.version}-{self.until}"


def handled(operator: str | None = None, domain: str | None = None) -> list[Handling]:
    """All versions of one operator, or of all operators; by domain, name and version.

    They are those of the installed onnx package, and ONNX Runtime's own.
    """
    import onnx

    listed = [
        schema
        for schema in (*onnx.defs.get_all_schemas_with_history(), *schemas.contrib_schemas())
        if operator in (None, schema.name) and domain in (None, schema.domain)
    ]
    listed.sort(key=lambda schema: (schema.domain, schema.name, schema.since_version))
    found = []
    for schema, after in zip(listed, [*listed[1:], None], strict=True):
        if schema.deprecated:
            continue
        follows = after is not None and (after.domain, after.name) == (schema.domain, schema.name)
        found.append(replace(_handling(schema), until=after.since_version - 1 if follows else None))
    return found


def merged(rows: Iterable[Handling]) -> list[Handling]:
    """The rows of `handled`, with consecutive versions joined where they are converted in the same way."""
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
    qualified = registry.qualified(domain, name)
    note = "; ".join(map(str, limits.of(qualified)))
    if qualified in LOWERED_OPERATORS:
        return Handling(domain, name, version, LOWERED, LOWERED_OPERATORS[qualified], note)
    translator = registry.find(name, version, domain)
    if translator is not None:
        becomes = operations_of(translator)
        return Handling(domain, name, version, DIRECT if len(becomes) == 1 else COMPOSED, becomes, note)
    if schema.has_function or schema.has_context_dependent_function:
        return Handling(domain, name, version, FUNCTION, note=note)
    return Handling(domain, name, version, REFUSED, note=reason(domain, name))


def operations_of(translator: registry.Translator) -> tuple[str, ...]:
    """The operations of the IR that a translator can make, with their opsets, without Constant."""
    versions = _table().get(registry.qualified(translator.domain, translator.op), {})
    listed = [each for each in versions if each <= translator.since]
    return versions[max(listed)] if listed else ()


@cache
def _table() -> dict[str, dict[int, tuple[str, ...]]]:
    """Operator -> version of its domain -> operations, until the next version that is listed."""
    found = json.loads(Path(__file__).with_name("operations_made.json").read_text("utf-8"))
    return {
        name: {int(version): tuple(made.split()) for version, made in versions.items()}
        for name, versions in found.items()
    }
