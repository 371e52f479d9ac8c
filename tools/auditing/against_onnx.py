"""Compares our types after translation with those of `onnx.shape_inference`, for tensors of the same name.

A dimension is known if it is a number or an expression of named sizes. ONNX's inference runs with strict mode off and
data propagation on. It names unknown dimensions `unk__0`, `unk__1`, ...: such a name counts as unknown, unless an input
of the model has it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mo_loop.graph.dimension import Dim, Dimension
from mo_loop.graph.shape import show


@dataclass
class Row:
    """One model: the common tensors, their dimensions, the known ones on either side, and contradictions."""

    name: str
    tensors: int = 0
    dims: int = 0
    ours: int = 0
    theirs: int = 0
    fewer: int = 0
    contradictions: int = 0


def compare() -> int:
    """Print a line for each model of the tests; 0 if ours are not fewer in all, and there is no contradiction."""
    from tools.auditing.sources import exported

    rows = []
    print(f"{'model':44}{'tensors':>9}{'dims':>8}{'ours':>8}{'onnx':>8}{'fewer':>8}{'contradict':>12}")
    for task in exported():
        row = _row(task.name, str(task.model))
        rows.append(row)
        print(_line(row))
    total = Row("all", *(sum(getattr(row, key) for row in rows) for key in list(vars(rows[0]))[1:]))
    print(_line(total))
    return int(total.ours < total.theirs or total.contradictions > 0)


def _line(row: Row) -> str:
    return (
        f"{row.name:44}{row.tensors:>9}{row.dims:>8}{row.ours:>8}{row.theirs:>8}{row.fewer:>8}{row.contradictions:>12}"
    )


def _row(name: str, path: str) -> Row:
    from mo_loop.frontend.model import load
    from mo_loop.frontend.translate import translate

    row = Row(name)
    theirs = _inferred(path)
    graph = translate(load(path))
    ours = {each: value for node in graph for value in node.outputs for each in value.names}
    for tensor, (element, dims) in theirs.items():
        if tensor not in ours or ours[tensor].type.dtype is None:
            continue
        type_ = ours[tensor].type
        row.tensors += 1
        row.dims += len(dims)
        known = sum(dim is not None for dim in dims)
        mine = 0 if type_.shape is None else sum(_is_known(dim) for dim in type_.shape)
        row.ours += mine
        row.theirs += known
        if mine < known:
            row.fewer += 1
            print(f"  fewer: {name}: {tensor} ours {type_}, onnx {list(dims)}", file=sys.stderr)
        if type_.dtype.onnx != element or not _agree(type_.shape, dims):
            row.contradictions += 1
            print(f"  contradiction: {name}: {tensor} ours {type_.dtype}{show(type_.shape)}, onnx {element} {dims}")
    return row


def _inferred(path: str) -> dict[str, tuple[int, tuple[int | str | None, ...]]]:
    """Element type and dimensions of every output of a node in the main graph whose rank ONNX knows."""
    import onnx

    model = onnx.load(path)
    own = set(_parameters(model.graph))
    del model.graph.value_info[:]  # else declarations of the exporter would count as inferred
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    outputs = {output for node in inferred.node for output in node.output}
    found = {}
    for entry in (*inferred.value_info, *inferred.output):
        tensor = entry.type.tensor_type
        if entry.name in outputs and tensor.HasField("shape"):
            found[entry.name] = (tensor.elem_type, tuple(_dimension(dim, own) for dim in tensor.shape.dim))
    return found


def _parameters(graph: Any) -> Iterator[str]:
    """The names of dimensions of the model's inputs."""
    for entry in graph.input:
        for dim in entry.type.tensor_type.shape.dim:
            if dim.dim_param:
                yield dim.dim_param


def _dimension(dim: Any, own: set[str]) -> int | str | None:
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    return str(dim.dim_param) if dim.dim_param in own else None


def _is_known(dim: Dimension) -> bool:
    return isinstance(dim, int) or not dim.has_fresh()


def _agree(ours: tuple[Dimension, ...] | None, theirs: tuple[int | str | None, ...]) -> bool:
    """Whether no dimension has two numbers and no size two names; other expressions may be equal."""
    if ours is None:
        return True
    if len(ours) != len(theirs):
        return False
    return all(_is_same(dim, other) for dim, other in zip(ours, theirs, strict=True))


def _is_same(dim: Dimension, other: int | str | None) -> bool:
    if other is None:
        return True
    if isinstance(dim, Dim):
        symbol = dim.symbol
        named = symbol is not None and symbol.name.isidentifier()
        if isinstance(other, str):
            return not named or symbol.name == other  # type: ignore[union-attr]  # there is one where it has a name
        return dim.lo <= other and (dim.hi is None or other <= dim.hi)
    return isinstance(other, str) or dim == other
