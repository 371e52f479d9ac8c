"""Two nodes of one graph that make the same name: one of them is left out if nothing can show which is meant.

    repeated = repeated_names(made)                                       # {"u": [2, 5]}
    nodes = without_repeated(nodes, reads, repeated, outputs, scope)      # each name is made once

ONNX forbids it. Of equal nodes the first one stays. Of others, a reader gets the last value before it in the order of
the list, as a runtime that runs the nodes in this order gives it; a name that nothing reads then is left out. Of
Constants of the main graph the last one stays: ONNX Runtime makes them initializers before it runs a node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from mo_loop.errors import ModelError
from mo_loop.frontend.onnx_graphs import operator_of
from mo_loop.graph.origin import Origin


def repeated_names(made: Iterable[Sequence[str]]) -> dict[str, list[int]]:
    """The names that are made more than once -> the positions of the nodes that make them.

    `made` holds the outputs of each node.
    """
    makers: dict[str, int] = {}
    repeated: dict[str, list[int]] = {}
    for place, names in enumerate(made):
        for name in names:
            if name not in makers:
                makers[name] = place
            elif name:
                repeated.setdefault(name, [makers[name]]).append(place)
    return repeated


def described(name: str, nodes: Sequence[Any], places: Sequence[int]) -> str:
    """The text about the nodes that make a name: by their names, or their places in the list."""
    makers = [_titled(nodes[each], each) for each in dict.fromkeys(places)]
    if len(makers) == 1:
        return f"{makers[0]} makes {name!r} twice"
    count = "two" if len(makers) == 2 else len(makers)
    return f"{count} nodes make {name!r}: {', '.join(makers[:-1])} and {makers[-1]}"


def require_new_names(nodes: Iterable[Any], given: set[str], scope: tuple[str, ...]) -> None:
    """ModelError if a node makes a name of `given`, the inputs and initializers of the graph."""
    for place, node in enumerate(nodes):
        if not given.isdisjoint(node.output):
            name = next(each for each in node.output if each in given)
            raise ModelError(
                f"{name!r} is an input or initializer, and {_titled(node, place)} makes it",
                why="it is not clear which value a node reads", where=Origin(scope), hint="give them different names",
            )  # fmt: skip


def without_repeated(
    nodes: Sequence[Any], reads: Sequence[Collection[str]], repeated: Mapping[str, list[int]], outputs: Iterable[str],
    scope: tuple[str, ...],
) -> list[Any]:  # fmt: skip
    """The nodes with each name made once. `reads` are the names that the nodes read, `outputs` those of the graph.

    Raises:
        ModelError: two different nodes make a name, and both values are read.
    """
    kept: list[Any] = list(nodes)
    results = set(outputs)
    for name, places in repeated.items():
        if not scope and len(set(places)) == len(places) and all(nodes[each].op_type == "Constant" for each in places):
            chosen: int | None = places[-1]
        else:
            chosen = _meant(nodes, reads, name, places, name in results)
        if chosen is None:
            raise ModelError(
                described(name, nodes, places), why="it is not clear which value a node reads", where=Origin(scope),
                hint="give the outputs different names",
            )  # fmt: skip
        for place in set(places) - {chosen}:
            kept[place] = _without(kept[place], name)
    return [node for node in kept if any(node.output)]


def _titled(node: Any, place: int) -> str:
    return f"{node.name or f'node {place}'} ({operator_of(node)})"


def _meant(
    nodes: Sequence[Any], reads: Sequence[Collection[str]], name: str, places: list[int], is_result: bool
) -> int | None:
    """The position of the node whose value is read; None if there are several."""
    if len(set(places)) < len(places):
        return None  # one node makes it twice
    if _are_equal(nodes, places):
        return places[0]
    readers = [place for place, names in enumerate(reads) if name in names]
    if any(place <= places[0] for place in readers):
        return None  # the order of the list is not the order in which the nodes run
    ends = [*places[1:], len(nodes)]
    read = [
        place for place, end in zip(places, ends, strict=True)
        if any(place < reader <= end for reader in readers) or (is_result and place == places[-1])
    ]  # fmt: skip
    return read[0] if len(read) == 1 else places[-1] if not read else None


def _are_equal(nodes: Sequence[Any], places: list[int]) -> bool:
    """Whether the nodes compute the same from the same values: nothing between them makes one of their inputs again."""
    first = _content(nodes[places[0]])
    if any(_content(nodes[place]) != first for place in places[1:]):
        return False
    between = {name for node in nodes[places[0] : places[-1]] for name in node.output}
    return between.isdisjoint(nodes[places[0]].input)


def _content(node: Any) -> bytes:
    copy = type(node)()
    copy.CopyFrom(node)
    copy.ClearField("name")
    copy.ClearField("doc_string")
    content: bytes = copy.SerializeToString(deterministic=True)
    return content


def _without(node: Any, name: str) -> Any:
    """A copy of a node without the output `name`."""
    copy = type(node)()
    copy.CopyFrom(node)
    del copy.output[:]
    copy.output.extend("" if each == name else each for each in node.output)
    return copy
