"""Opens the models of a comparison: a path, a ModelProto, a Model, a Graph; and refuses those that cannot be compared.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mo_loop.errors import FileError, InputError, UsageError
from mo_loop.graph import Graph
from mo_loop.look.records.structure import DUMP, IR, ONNX, Structure
from mo_loop.look.records.wide_weights import widen
from mo_loop.support.files import refuse_device

_WORDS = {ONNX: "an ONNX model", IR: "an IR", DUMP: "a dump"}

_HEAD = 4096


def opened(
    source: Any, unread: list[FileError] | None = None, *, weights: bool = True, allowed: Sequence[str] = (),
    widened: bool = False,
) -> Structure:  # fmt: skip
    """The structure of a model. With `unread` an ONNX model can be without the files of its weights; the errors are
    added to it. Without `weights` those of an ONNX model and its attributes are not read, and tensors that it does not
    declare have the types that inference finds. `allowed` are folders besides that of the model whose files may hold
    external data. With `widened` the weights that an IR stores as f16 are constants in their former type.

    Raises:
        FileError: the file cannot be read, or is of another kind.
        InputError: the model is damaged.
    """
    if isinstance(source, Graph):
        return _of_graph(_copied(source, widened), IR, source.name or "graph")
    if isinstance(getattr(source, "graph", None), Graph):
        return _of_graph(_copied(source.graph, widened), IR, source.graph.name or "model")
    if isinstance(source, str | os.PathLike):
        return _of_file(Path(source), os.fspath(source), unread, weights, allowed, widened)
    return _of_onnx(source, "model", unread, weights, allowed)


def _copied(graph: Graph, widened: bool) -> Graph:
    """The graph of the caller, or a copy with other weights."""
    if not widened:
        return graph
    copy = graph.clone()
    widen(copy)
    return copy


def require_same_kind(old: Structure, new: Structure) -> None:
    """UsageError if the models are of different kinds."""
    if old.kind == new.kind:
        return
    one, other = _WORDS[old.kind], _WORDS[new.kind]
    hint = "compare files of one kind: two .onnx, two .xml, or two files of --dump"
    if {old.kind, new.kind} == {ONNX, IR}:
        hint = "mo_loop.layer_map finds the layers that each node became; mo_loop.verify compares the numbers"
    if DUMP in (old.kind, new.kind) and IR in (old.kind, new.kind):
        hint = "a dump has other names for operations and types than an IR: compare two files of --dump, or two .xml"
    raise UsageError(f"{old.source} is {one}, {new.source} is {other}", why="they have different nodes", hint=hint)


def _of_file(
    path: Path, source: str, unread: list[FileError] | None, weights: bool, allowed: Sequence[str], widened: bool
) -> Structure:
    refuse_device(path)
    kind = kind_of(path)
    if kind == IR:
        from mo_loop.ir.reader import read_with_ids

        graph, layers = read_with_ids(path)
        if widened:
            widen(graph)
        structure = _of_graph(graph, IR, source)
        structure.layers = layers
        return structure
    if kind == "json":
        from mo_loop.look.records.of_dump import structure_of_file

        return structure_of_file(path, source)
    if kind == "text":
        from mo_loop.look.records.reading import not_of_dump
        from mo_loop.text import parse

        try:
            graph = parse(_whole(path.read_text("utf-8"), source))
        except FileError:
            raise
        except (InputError, UnicodeDecodeError) as error:
            raise not_of_dump(source, str(error).splitlines()[0]) from None
        return _of_graph(graph, DUMP, source)
    return _of_onnx(path, source, unread, weights, allowed)


def kind_of(path: Path) -> str:
    """The kind of a file, by its content, else by its name. A file that cannot be read counts as an ONNX model, which
    gives the right error."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD).lstrip(b"\xef\xbb\xbf \t\r\n")
    except OSError:
        return IR if path.suffix.lower() == ".xml" and not path.is_dir() else ONNX
    if path.suffix.lower() == ".xml" or head.startswith((b"<?xml", b"<net")):
        return IR
    if path.suffix.lower() == ".json" or (head.startswith(b"{") and b'"directed"' in head):
        return "json"
    return "text" if path.suffix.lower() == ".txt" else ONNX


def _whole(text: str, source: str) -> str:
    """The text of a graph; FileError for one that has only the changes of a pass."""
    if re.match(r"# what .* changed: ", text):
        raise FileError(
            f"{source} has only the changes of a pass", code="ML214",
            hint="give the .json file of the same step: it is applied to the files before it",
        )  # fmt: skip
    return text


def _of_graph(graph: Graph, kind: str, source: str) -> Structure:
    from mo_loop.look.records.of_graph import structure_of

    return structure_of(graph, kind, source, dumped=kind == DUMP)


def _of_onnx(
    source: Any, name: str, unread: list[FileError] | None, weights: bool, allowed: Sequence[str]
) -> Structure:
    from mo_loop.frontend.model import check_names_on_error
    from mo_loop.frontend.model import opened as opened_onnx
    from mo_loop.frontend.onnx_graphs import require_external_data
    from mo_loop.look.records.of_onnx import structure_of_onnx

    model = opened_onnx(source, allowed)
    if not weights:
        from mo_loop.frontend.declared_types import with_inferred_types

        model = with_inferred_types(model)
    with check_names_on_error(model.proto):
        if weights and unread is None:
            require_external_data(model)
        return structure_of_onnx(model, name, unread, weights=weights)
