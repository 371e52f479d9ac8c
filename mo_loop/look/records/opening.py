"""Opens the models of a comparison: a path, a ModelProto, a Model, a Graph; and refuses those that cannot be compared.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mo_loop.errors import FileError, UsageError
from mo_loop.graph import Graph
from mo_loop.graph.tensor import ArrayTensor
from mo_loop.look.records.structure import DUMP, IR, ONNX, Structure
from mo_loop.ops.arithmetic import Convert
from mo_loop.ops.base import Constant
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
    if isinstance(source, str | os.PathLike):
        return _of_file(Path(source), os.fspath(source), unread, weights, allowed, widened)
    graph = source if isinstance(source, Graph) else getattr(source, "graph", None)
    if not isinstance(graph, Graph):
        return _of_onnx(source, "model", unread, weights, allowed)
    from mo_loop.look.records.of_graph import structure_of

    name = graph.name or ("graph" if graph is source else "model")
    if widened:  # the caller keeps the graph
        graph = graph.clone()
        _widen(graph)
    return structure_of(graph, name)


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
        from mo_loop.look.records.of_graph import structure_of

        graph, layers = read_with_ids(path)
        if widened:
            _widen(graph)
        structure = structure_of(graph, source)
        structure.layers = layers
        return structure
    if kind in ("json", "text"):
        from mo_loop.look.records.node_link import checked, state_at, state_of_text
        from mo_loop.look.records.of_graph import structure_of_state

        state = state_at(path) if kind == "json" else state_of_text(path, source)
        return checked(source, lambda: structure_of_state(state, source))
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


def _widen(graph: Graph) -> None:
    """Convert(Constant f16), marked as decompression  ->  Constant f32, in all bodies of a graph, which is changed in
    place. It forgets that its weights were compressed."""
    for scope in graph.scopes():
        for node in list(scope.of(Convert)):
            source = node.inputs[0]
            if "decompression" not in node.rt_info or source is None or not isinstance(source.node, Constant):
                continue
            array = source.node.array.astype(node.output.dtype.numpy)
            wide = Constant(ArrayTensor(array), graph=scope, dtype=node.output.dtype, name=node.name)
            wide.origins = node.origins
            wide.output.take_names(node.output)
            node.output.replace_with(wide.output)
            scope.remove(node)
            if not source.is_used:
                scope.remove(source.node)
    parameters = graph.rt_info.get("conversion_parameters")
    if isinstance(parameters, dict):
        graph.rt_info["conversion_parameters"] = {k: v for k, v in parameters.items() if k != "compress_to_fp16"}
