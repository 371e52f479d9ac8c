"""view: the page of one model, or of the difference of two.

    view("model.onnx").save("model.html")
    view("old.xml", "new.xml", ignore="names").save("difference.html")
    view("model.onnx", "model.xml").save("layers.html")
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath
from typing import Any

from mo_loop.errors import FileError, UsageError
from mo_loop.look.differences.comparing import ModelComparison, compare, require_scope
from mo_loop.look.dump.run_folder import PAGE
from mo_loop.look.layer_map import layer_map_of
from mo_loop.look.page.document import Document
from mo_loop.look.page.html import is_page, page
from mo_loop.look.page.of_comparison import diff_document
from mo_loop.look.page.of_layer_map import layers_document
from mo_loop.look.records.constant_records import Contents
from mo_loop.look.records.of_structure import body_of, described, facts, written
from mo_loop.look.records.opening import opened
from mo_loop.look.records.reading import read_dump
from mo_loop.look.records.structure import IR, ONNX, Structure
from mo_loop.support.files import write_whole
from mo_loop.support.garbage_collection import paused_collector


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
            )  # fmt: skip
        write_whole(file, self.html)


def view(
    model: Any, other: Any = None, *, ignore: str | Iterable[str] = (), scope: str | None = None,
    tolerance: float = 0.0, allow_external: Sequence[str] = (),
) -> Page:  # fmt: skip
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
            document = _of_layers(models, (model, other), allow_external)
        else:
            document = _of_both(compare(*models, ignore=ignore, scope=scope, tolerance=tolerance), scope)
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
    document.notes.append("This page is made of the files of the dump: they do not tell times, reasons and matches.")
    before = dump.state(0)
    document.begin(before)
    for index, each in enumerate(dump.steps[1:], 1):
        after = dump.state(index)
        step = {
            "name": each.name, "place": each.place, "seconds": 0, "matches": 0, "matchers": [],
            "nodes": [len(before.nodes), len(after.nodes)], "file": each.file.stem,
        }  # fmt: skip
        document.step(step, after)
        before = after
    return Page(page(document.as_json()))


def _of_both(found: ModelComparison, scope: str | None) -> Document:
    contents = Contents()
    old, new = described(found.old, contents), described(found.new, contents)
    return diff_document(found, old, new, f"{_name(found.old)} -> {_name(found.new)}", scope)


def _of_layers(models: list[Structure], sources: tuple[Any, Any], allowed: Sequence[str]) -> Document:
    """An ONNX model and its IR, in either order."""
    (onnx, source), (ir, _) = sorted(zip(models, sources, strict=True), key=lambda each: each[0].kind != ONNX)
    found, contents = layer_map_of(onnx, ir, source, allowed), Contents()
    return layers_document(found, described(onnx, contents), described(ir, contents), f"{_name(onnx)} -> {_name(ir)}")


def _of_one(structure: Structure, scope: str | None, unread: list[FileError]) -> Document:
    model = described(structure, Contents())
    state = model.state
    if scope is not None:
        require_scope(scope, structure)
        state = body_of(state, {each.text: name for each, name in model.scopes.items()}[scope])
    document = Document(_name(structure), "graph")
    document.facts = facts(structure)
    if unread:
        count = f"{len(unread)} constants have" if len(unread) > 1 else "a constant has"
        document.notes.append(f"{count} no content here: {unread[0].message}")
    document.begin(state)
    if structure.layers:
        document.written = written(model, state)
    return document


def _name(structure: Structure) -> str:
    return PurePath(structure.source).name or structure.source
