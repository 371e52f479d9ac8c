"""rename_tensors: gives tensors other names in the IR (`--rename`).

    rename_tensors(graph, {"x": "image", "loop/step/t": "state"})

A layer with the same name as its tensor is renamed too, and so are inputs and outputs. All names change at once, so two
tensors can exchange their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mo_loop.errors import UsageError
from mo_loop.graph import Graph, Value
from mo_loop.ops.base import Result
from mo_loop.origin import Origin
from mo_loop.printable import did_you_mean


def rename_tensors(graph: Graph, names: Mapping[str, str], is_known: Callable[[str], bool] = lambda _: False) -> None:
    """Rename tensors: `names` maps the present name (for a tensor in a body, the scope path) to the new one.

    `is_known` returns whether the ONNX model has a tensor of a name or scope path, for the error about a removed one.

    Raises:
        UsageError: the IR has no such tensor, or another tensor has the new name.
    """
    places: dict[Graph, dict[str, str]] = {}
    for old, new in names.items():
        for scope, name in _places(graph, old, is_known):
            if name == new or not new.strip():
                what = "is already its name" if new else "is not a valid name"
                raise UsageError(f"{old!r} cannot be renamed: {new!r} {what}", hint="write old=new", code="ML202")
            places.setdefault(scope, {})[name] = new
    for scope, renamed in places.items():
        _require_free(scope, renamed)
    for scope, renamed in places.items():
        _rename(scope, renamed)


def _places(graph: Graph, old: str, is_known: Callable[[str], bool]) -> Iterable[tuple[Graph, str]]:
    """The graphs that a name or scope path means, and the name of the tensor in each: a body may have copies."""
    known = {name: {(graph, name): None} for name in _tensor_names(graph)}
    in_main = frozenset(known)
    for scope in graph.scopes():
        for value in _values(scope):
            found = [] if scope is graph else [(Origin(scope.scope, output=name).path, name) for name in value.names]
            for each in value.origins:  # that of a tensor which was moved out of its body
                if each.output in value.names and len(each.scope) > len(scope.scope):
                    found.append((each.path, each.output))
            for path, name in found:
                if path not in in_main:
                    known.setdefault(path, {})[scope, name] = None
    if old not in known:
        raise _missing(old, sorted(known), is_known(old))
    return known[old]


def _missing(old: str, known: list[str], was_there: bool) -> UsageError:
    why = "the tensor was folded, fused or not needed" if was_there else "the model has no tensor of that name"
    within = next((f"did you mean {name!r}?" for name in known if name.endswith(f"/{old}")), "")
    question = "" if was_there else did_you_mean(old, known, within, 0.6)
    hint = question or "--mapping lists the tensors of the IR"
    return UsageError(f"no tensor {old!r} in the IR can be renamed", why=why, hint=hint, code="ML202")


def _tensor_names(graph: Graph) -> Iterator[str]:
    for value in _values(graph):
        yield from value.names


def _values(graph: Graph) -> Iterator[Value]:
    for node in graph.ordered():
        yield from node.outputs


def _require_free(scope: Graph, renamed: Mapping[str, str]) -> None:
    others = {name for name in _tensor_names(scope) if name not in renamed}
    others |= {node.name for node in scope.ordered() if node.name and node.name not in renamed}
    taken: dict[str, str] = {}
    for old, new in renamed.items():
        if new in others or new in taken:
            what = f"{taken[new]!r} gets the same name" if new in taken else "the IR has a tensor or layer of that name"
            raise UsageError(
                f"{old!r} cannot be renamed to {new!r}", where=scope.origin, why=what, hint="give another name",
                code="ML202",
            )
        taken[new] = old


def _rename(scope: Graph, renamed: Mapping[str, str]) -> None:
    sizes = scope.rt_info.get("sizes")
    if sizes:
        scope.rt_info["sizes"] = {renamed.get(name, name): text for name, text in sizes.items()}
    for node in scope.ordered():
        named_so = any(node.name in value.names for value in node.outputs) and node.name in renamed
        for value in node.outputs:
            value.names = tuple(renamed.get(name, name) for name in value.names)
        if isinstance(node, Result):
            _rename_result(node, renamed)
        elif named_so:
            node.name = renamed[node.name]


def _rename_result(node: Any, renamed: Mapping[str, str]) -> None:
    for name in node.output_names:
        if name in renamed:
            node.name = node.name.replace(name, renamed[name], 1)
    node.output_names = tuple(renamed.get(name, name) for name in node.output_names)
