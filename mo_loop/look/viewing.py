"""view: the page of one model, or of the difference of two.

    view("model.onnx").save("model.html")
    view("old.xml", "new.xml", ignore="names").save("difference.html")
    view("model.onnx", "model.xml").save("layers.html")

The page of two models has two states. Those of a difference share one id for nodes that correspond: the delta of the
only step leads from the first model to the second, with all that differs; the details of the step have only the nodes
whose change counts. Those of a model and its IR have ids of their own, and pairs of a node and its layers.
"""

from __future__ import annotations

import html
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from mo_loop.errors import FileError, UsageError
from mo_loop.look.differences.changes import ADDED, CHANGED, REMOVED, Aspect, Change, partners
from mo_loop.look.differences.comparing import Difference, compare, require_scope
from mo_loop.look.dump.step_files import PAGE
from mo_loop.look.layer_map import LayerMap, layer_map_of
from mo_loop.look.page import Document, is_page, name_scopes_of, page, step_record
from mo_loop.look.records.data import Contents
from mo_loop.look.records.node_link import read_dump
from mo_loop.look.records.node_records import GraphState, renamed
from mo_loop.look.records.opening import AnyModel, body_of, described, facts, opened, written
from mo_loop.look.records.structure import IR, ONNX, Structure
from mo_loop.support.files import write_whole
from mo_loop.support.process_memory import paused_collector


class Page:
    """A page: one HTML file that shows a model, its passes, or two models side by side. It loads nothing."""

    def __init__(self, html: str) -> None:
        self.html = html

    def _repr_html_(self) -> str:
        """The page inside a notebook, in a frame without access to the notebook."""
        style = "width: 100%; height: 80vh; min-height: 500px; border: 1px solid #8888"
        source = html.escape(self.html)
        return f'<iframe sandbox="allow-scripts allow-downloads" style="{style}" srcdoc="{source}"></iframe>'

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file; a page that is there is replaced.

        Raises:
            FileError: the file cannot be written, or holds something else than a page.
        """
        file = Path(path)
        if os.path.lexists(file) and not is_page(file):
            raise FileError(
                f"{file} would be overwritten", why="it is not a page that mo-loop wrote", code="ML219",
                hint="give another name, or move the file away",
            )
        write_whole(file, self.html)


def view(
    model: AnyModel, other: AnyModel | None = None, *, ignore: Aspect | Iterable[Aspect] = (), scope: str | None = None,
    tolerance: float = 0.0, allow_external: Sequence[str] = (),
) -> Page:
    """Make a page that shows a model.

    With `other`, it shows both models side by side and their differences. Of an ONNX model and its IR, it shows which
    layers each node became.

    Args:
        model: A path (.onnx, .xml, a .json or .txt file of `--dump`, or the folder of a dump), an `onnx.ModelProto`, a
            `Model` or a `Graph`.
        other: Another model of the same kind, not a folder; or the IR of an ONNX model.
        ignore: Differences to ignore: "names", "shapes", "weights", "metadata".
        scope: The path of a body; the page shows only this body and those in it.
        tolerance: Weights may differ by this part of the largest magnitude in the constant.
        allow_external: More folders whose files may hold external data.

    Returns:
        The page; `save` writes it, and a notebook shows it.

    Raises:
        InputError: a file cannot be read, or the models are of different kinds.
    """
    with paused_collector():
        for each in (model, other):
            if isinstance(each, str | os.PathLike) and is_dump(each):
                return _of_folder(Path(each), other, scope)
        unread: list[FileError] = []
        models = [opened(model, unread if other is None else None, allowed=allow_external)]
        if other is not None:
            models.append(opened(other, allowed=allow_external))
        if other is None:
            document = _of_one(models[0], scope, unread)
        elif {each.kind for each in models} == {ONNX, IR}:
            if ignore or tolerance or scope is not None:
                raise UsageError(
                    "scope, ignore and tolerance are for two models of one kind",
                    hint="leave them out for a model and its IR",
                )
            pairs = zip(models, (model, other), strict=True)
            (onnx, source), (ir, _) = sorted(pairs, key=lambda each: each[0].kind != ONNX)  # they come in any order
            document = _of_layers(layer_map_of(onnx, ir, source, allow_external))
        else:
            document = _of_both(compare(*models, ignore=ignore, scope=scope, tolerance=tolerance), scope)
        for structure in models:
            if structure.kind == ONNX:
                document.name_scopes |= name_scopes_of(structure.made_of)
        return Page(page(document.as_json()))


def is_dump(path: str | os.PathLike[str]) -> bool:
    """Whether there is a folder with files of a dump."""
    folder = Path(path)
    return folder.is_dir() and (is_page(folder / PAGE) or any(folder.glob("[0-9][0-9][0-9]*_*.json")))


def _of_folder(folder: Path, other: Any, scope: str | None) -> Page:
    """The page that the conversion wrote. If it is missing, it is made of the files, without times and reasons, which
    these do not have."""
    if other is not None or scope is not None:
        raise UsageError(
            f"{folder} is the folder of a dump, not one graph", hint="give a .json file in it: that of the step to show"
        )
    if is_page(folder / PAGE):
        return Page((folder / PAGE).read_text("utf-8"))
    dump = read_dump(folder)
    document = Document(folder.resolve().name)
    document.notes.append("This page is made of the files of a dump, which do not have times, reasons and matches.")
    document.begin(dump.state(0))
    for index, each in enumerate(dump.steps[1:], 1):
        document.step(step_record(each.name, each.place, file=each.file.stem), dump.state(index))
    return Page(page(document.as_json()))


def _of_one(structure: Structure, scope: str | None, unread: list[FileError]) -> Document:
    state = described(structure, Contents())
    if scope is not None:
        require_scope(scope, structure)
        state = body_of(state, {each.text: each.id for each in structure.scopes()}[scope])
    document = Document(_name(structure), "graph")
    document.facts = facts(structure)
    if unread:
        count = f"{len(unread)} constants have" if len(unread) > 1 else "a constant has"
        document.notes.append(f"{count} no content here: {unread[0].message}")
    document.begin(state)
    if structure.layers:
        document.written = written(structure, state)
    return document


def _name(structure: Structure) -> str:
    return PurePath(structure.source).name or structure.source


# -- the difference of two models


def _of_both(found: Difference, scope: str | None) -> Document:
    """The document of two models. With `scope` that of one body, which must be in both."""
    contents = Contents()
    before, new = described(found.old, contents), described(found.new, contents)
    ids = _common_ids(found, before, new)
    names = {right.id: left.id for left, right in found.pairs.scopes}
    after = _renumbered(new, before, ids, names)
    details: dict[int, list[str]] = {}  # a node that was added or removed has none
    for change in found.changes:
        if change.kind == CHANGED and change.subject is not None:
            details.setdefault(ids[change.subject.id], []).extend(map(str, change.details))
    if scope is not None:
        name = next((left.id for left, right in found.pairs.scopes if scope in (left.text, right.text)), None)
        if name is None:
            hint = "mo-loop view MODEL --scope shows that of one model"
            raise UsageError(f"only one of the models has the scope {scope!r}", hint=hint)
        before, after = body_of(before, name), body_of(after, name)
        details = {number: texts for number, texts in details.items() if number in before.nodes | after.nodes}
    document = Document(f"{_name(found.old)} -> {_name(found.new)}", "diff")
    one, other = dict(facts(found.old)), dict(facts(found.new))
    pairs = [(key, one.get(key, "none"), other.get(key, "none")) for key in one | other]
    document.facts = [(key, a if a == b else f"{a} -> {b}") for key, a, b in pairs]
    document.notes = [note for change in found.changes for note in _notes(change)]
    counts = Counter(change.kind for change in found.changes)
    document.begin(before)
    step = step_record(
        "diff", 1, matchers=[(kind, counts[kind]) for kind in (ADDED, REMOVED, CHANGED)],
        matches=len(found.changes), doc=f"{found.old.source} -> {found.new.source}", details=details,
    )
    document.step(step, after)
    return document


def _common_ids(found: Difference, old: GraphState, new: GraphState) -> dict[int, int]:
    """Id in the second model -> id of the node that corresponds in the first, or a new one."""
    ids = {right.id: left.id for left, right in found.pairs.items}
    for left, right in found.pairs.scopes:
        for each, place in zip(left.results, partners(left.results, right.results), strict=True):
            if place is not None:
                ids[right.results[place].id] = each.id
    start, others = max(old.nodes, default=-1) + 1, (number for number in new.nodes if number not in ids)
    return ids | {number: place for place, number in enumerate(list(others), start)}


def _renumbered(
    state: GraphState, old: GraphState, ids: Mapping[int, int], names: Mapping[str, str] | None = None
) -> GraphState:
    """The second model in the ids of both. A constant that only has another place in its file is the same.

    `names` are the scopes of the first model that correspond to scopes of the second; another body is named for its
    owner.
    """
    scopes = dict(names or {})
    for name, record in state.scopes.items():
        owner = record["owner"]
        scopes.setdefault(name, name if owner is None else f"{ids[owner]}/{name.rpartition('/')[2]}")
    found = GraphState()
    for record in state.nodes.values():
        other = record | {
            "id": ids[record["id"]], "scope": scopes[record["scope"]],
            "inputs": [None if ref is None else [ids[ref[0]], ref[1]] for ref in record["inputs"]],
        }
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
        other |= {key: [ids[number] for number in record[key]] for key in ("parameters", "results")}
        found.scopes[other["id"]] = other
    return found


def _notes(change: Change) -> list[str]:
    """The differences of a model or scope as a whole."""
    if change.subject is not None:
        return []
    where = f"{change.path}: " if change.path else ""
    return [f"{where}{each}" for each in change.details] or [f"{change.operator} {change.node} {change.kind}"]


# -- an ONNX model and its IR


def _of_layers(found: LayerMap) -> Document:
    """The document of both. Outputs of the model correspond by name."""
    contents = Contents()
    model, ir = described(found.model, contents), described(found.ir, contents)
    start = max(model.nodes, default=-1) + 1
    ids = {number: start + number for number in ir.nodes}
    after = _renumbered(ir, model, ids)
    document = Document(f"{_name(found.model)} -> {_name(found.ir)}", "layers")
    document.facts = [("format", "ONNX model and IR"), *dict.fromkeys((*facts(found.model)[1:], *facts(found.ir)[1:]))]
    document.begin(model)
    document.step(step_record("layers", 1), after)
    document.written = {ids[number]: place for number, place in written(found.ir, ir).items()}
    layers = {node.id: [ids[each.id] for each in made] for node, made in found.layers.items()}
    ends = {each.name: ids[each.id] for each in found.ir.main.results}
    layers |= {each.id: [ends[each.name]] for each in found.model.main.results if each.name in ends}
    document.pairs = sorted(layers.items())
    return document
