"""The page of two models: a document of two states, in which nodes that correspond share one id.

    contents = Contents()                 # of both
    document = diff_document(compare(old, new), described(old, contents), described(new, contents), title)

The delta of its only step leads from the first model to the second, with all that differs; the details of the step have
only the nodes whose change counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from mo_loop.errors import UsageError
from mo_loop.look.differences.change import ADDED, CHANGED, REMOVED, Change
from mo_loop.look.differences.changes import partners
from mo_loop.look.differences.comparing import ModelComparison
from mo_loop.look.page.document import Document
from mo_loop.look.records.node_records import GraphState
from mo_loop.look.records.of_structure import Described, body_of, facts
from mo_loop.look.records.port_entries import renamed
from mo_loop.look.records.structure import Item


def diff_document(
    found: ModelComparison, old: Described, new: Described, title: str, scope: str | None = None
) -> Document:
    """The document of two models. With `scope` that of one body, which must be in both."""
    ids = _common_ids(old, new, found)
    before, after = old.state, renumbered(new.state, old.state, ids, _common_scopes(old, new, found, ids))
    details = _details(found, old, new, ids)
    if scope is not None:
        name = _paired_scope(old, found, scope)
        before, after = body_of(before, name), body_of(after, name)
        details = {number: texts for number, texts in details.items() if number in before.nodes | after.nodes}
    document = Document(title, "diff")
    document.facts = _facts(facts(found.old), facts(found.new))
    document.notes = [note for change in found.changes for note in _notes(change)]
    counts = Counter(change.kind for change in found.changes)
    document.begin(before)
    document.step(
        {
            "name": "diff", "place": 1, "seconds": 0, "matches": len(found.changes),
            "matchers": [[kind, counts[kind]] for kind in (ADDED, REMOVED, CHANGED) if counts[kind]],
            "nodes": [len(before.nodes), len(after.nodes)], "doc": f"{found.old.source} -> {found.new.source}",
            "details": details,
        },
        after,
    )  # fmt: skip
    return document


def _paired_scope(old: Described, found: ModelComparison, scope: str) -> str:
    for left, right in found.pairs.scopes:
        if scope in (left.text, right.text):
            return old.scopes[left]
    raise UsageError(
        f"only one of the models has the scope {scope!r}", hint="mo-loop view MODEL --scope shows that of one model"
    )


# -- ids and scopes that both models share


def _common_ids(old: Described, new: Described, found: ModelComparison) -> dict[int, int]:
    """Id in the second model -> id of the node that corresponds in the first, or a new one."""
    ids = {new.items[right]: old.items[left] for left, right in found.pairs.items}
    for left, right in found.pairs.scopes:
        for each, place in zip(left.results, partners(left.results, right.results), strict=True):
            if place is not None:
                ids[new.results[id(right.results[place])]] = old.results[id(each)]
    following = max(old.state.nodes, default=-1) + 1
    for number in new.state.nodes:
        if number not in ids:
            ids[number] = following
            following += 1
    return ids


def _common_scopes(old: Described, new: Described, found: ModelComparison, ids: Mapping[int, int]) -> dict[str, str]:
    """Scope of the second model -> the scope that corresponds in the first, or one named for the new owner."""
    names = {new.scopes[right]: old.scopes[left] for left, right in found.pairs.scopes}
    for name, record in new.state.scopes.items():
        if name not in names:
            names[name] = name if record["owner"] is None else f"{ids[record['owner']]}/{name.rpartition('/')[2]}"
    return names


def renumbered(state: GraphState, old: GraphState, ids: Mapping[int, int], scopes: Mapping[str, str]) -> GraphState:
    """The second model in the ids of both. A constant that only has another place in its file is the same."""
    found = GraphState()
    for record in state.nodes.values():
        other = record | {
            "id": ids[record["id"]], "scope": scopes[record["scope"]],
            "inputs": [None if ref is None else [ids[ref[0]], ref[1]] for ref in record["inputs"]],
        }  # fmt: skip
        if "bodies" in record:
            other["bodies"] = [scopes[name] for name in record["bodies"]]
        if "port_map" in record:
            other["port_map"] = renamed(record["port_map"], ids.__getitem__)
        before = old.nodes.get(other["id"])
        moved = before is not None and before | {"stored": other.get("stored")} == other
        found.nodes[other["id"]] = before if before is not None and moved else other
    for record in state.scopes.values():
        owner = record["owner"]
        other = record | {"id": scopes[record["id"]], "owner": None if owner is None else ids[owner]}
        for key in ("parameters", "results"):
            other[key] = [ids[number] for number in record[key]]
        found.scopes[other["id"]] = other
    return found


# -- texts


def _details(found: ModelComparison, old: Described, new: Described, ids: Mapping[int, int]) -> dict[int, list[str]]:
    """The texts of the changes, by id. A node that was added or removed has none."""
    details: dict[int, list[str]] = {}
    for change in found.changes:
        if change.kind == CHANGED and change.subject is not None:
            subject = change.subject
            number = new.items[subject] if isinstance(subject, Item) else new.results[id(subject)]
            details.setdefault(ids[number], []).extend(map(str, change.details))
    return details


def _notes(change: Change) -> list[str]:
    """The differences of a model or scope as a whole."""
    if change.subject is not None:
        return []
    where = f"{change.path}: " if change.path else ""
    return [f"{where}{each}" for each in change.details] or [f"{change.operator} {change.node} {change.kind}"]


def _facts(old: list[tuple[str, str]], new: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Each fact once; one that differs as `old -> new`."""
    before, after = dict(old), dict(new)
    pairs = [(key, before.get(key, "none"), after.get(key, "none")) for key in before | after]
    return [(key, a if a == b else f"{a} -> {b}") for key, a, b in pairs]
