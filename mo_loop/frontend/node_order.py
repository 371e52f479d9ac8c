"""The nodes of an ONNX graph by the names that they read: those that the outputs need, the order in which they are
translated, and those that wait.

    names = NamesRead()
    names.of_node(node)                      # the inputs of a node and the outer names that its bodies read
    names.captured_by(body)                  # the outer names that a body (a GraphProto) reads

    waiting = WaitingNodes(nodes, NamesRead())
    waiting.done(3)                          # it is translated
    waiting.readers({"y"})                   # the places of the nodes that read y, in order
    waiting.after({"y"}, last=9)             # those that depend on y, up to the place 9

Of two nodes that make the same name, one is left out if nothing can show which is meant:

    repeated = repeated_names(made)                                       # {"u": [2, 5]}
    nodes = without_repeated(nodes, reads, repeated, outputs, scope)      # each name is made once

ONNX forbids it. Of equal nodes the first one stays. Of others, a reader gets the last value before it in the order of
the list, as a runtime that runs the nodes in this order gives it; a name that nothing reads then is left out. Of
Constants of the main graph the last one stays: ONNX Runtime makes them initializers before it runs a node.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from mo_loop.errors import ModelError
from mo_loop.frontend.onnx_graphs import body_protos, operator_of
from mo_loop.origin import Origin
from mo_loop.support.traversal import by_key, producers_first, reached


def needed(
    made: Sequence[Sequence[str]], outputs: Iterable[str], given: Collection[str], reads: Sequence[Collection[str]]
) -> list[int]:
    """Positions of the nodes that `outputs` depend on; the nodes may have any order. Names in `given` need no node.

    `made` holds the outputs of each node, `reads` the names that it and its bodies read.
    """
    makers = {name: place for place, names in enumerate(made) for name in names if name}

    def making(names: Iterable[str]) -> list[int]:
        return [makers[name] for name in names if name not in given and name in makers]

    return sorted(reached(making(outputs), lambda place: making(reads[place])))


def in_order(made: Sequence[Sequence[str]], reads: Sequence[Collection[str]]) -> bool:
    """Whether every node comes after the nodes whose outputs it reads."""
    later = set(chain.from_iterable(made))
    later.discard("")
    for outputs, names in zip(made, reads, strict=True):
        if not later.isdisjoint(names):
            return False
        later.difference_update(outputs)
    return True


def listed_order(nodes: Sequence[Any], reads: Sequence[Collection[str]], path: tuple[str, ...]) -> list[int]:
    """A topological order (captures are dependencies), as close as possible to the order of the list."""
    producer = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    order = producers_first([{producer[name] for name in names if name in producer} for names in reads])
    if len(order) < len(nodes):
        left = sorted(set(range(len(nodes))) - set(order))
        names = ", ".join(nodes[i].name or next(iter(nodes[i].output), nodes[i].op_type) for i in left[:6])
        raise ModelError(f"nodes depend on each other in a cycle: {names}", code="ML224", where=Origin(path))
    return order


class NamesRead:
    """The names that nodes and bodies read. Those of a body are cached: it may be translated more than once."""

    def __init__(self) -> None:
        # By id, together with the message: Python gives the id of a released wrapper to another object.
        self._captured: dict[int, tuple[Any, frozenset[str]]] = {}

    def of_node(self, node: Any) -> set[str]:
        """The names in its graph that a node and its bodies read."""
        found = set(node.input)
        found.discard("")
        for body in body_protos(node) if node.attribute else ():
            found |= self.captured_by(body)
        return found

    def listed(self, node: Any) -> Collection[str]:
        """The same names, and maybe an empty one: a tuple for most nodes, with a third of the memory."""
        return self.of_node(node) if node.attribute else tuple(node.input)

    def captured_by(self, body: Any) -> frozenset[str]:
        """The names that a body reads and does not define."""
        if id(body) not in self._captured:
            used = {entry.name for entry in body.output}.union(*map(self.of_node, body.node))
            self._captured[id(body)] = body, frozenset(used - names_defined_in(body))
        return self._captured[id(body)][1]


def names_defined_in(graph: Any) -> set[str]:
    """The names of the inputs, initializers and node outputs of a graph."""
    found = {entry.name for entry in (*graph.input, *graph.initializer)}
    found.update(each.values.name for each in graph.sparse_initializer)
    found.update(name for node in graph.node for name in node.output)
    return found


def all_names_in(graph: Any) -> set[str]:
    """All names that a graph or a body in it defines or reads."""
    found = names_defined_in(graph) | {entry.name for entry in graph.output}
    for node in graph.node:
        found.update(node.input)
        for body in body_protos(node):
            found |= all_names_in(body)
    return found


def renamed(node: Any, names: Mapping[str, str]) -> Any:
    """A copy of a NodeProto with its outputs renamed, and the names that it and its bodies read."""
    copy = type(node)()
    copy.CopyFrom(node)
    _rename(copy, names)
    return copy


def _rename(node: Any, names: Mapping[str, str]) -> None:
    node.input[:] = [names.get(name, name) for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    for body in body_protos(node):
        _rename_captures(body, names)


def _rename_captures(graph: Any, names: Mapping[str, str]) -> None:
    """Rename the values that a body reads from outside. A name that the body defines itself means another value: it
    stays, or gets a number where it would hide a new name."""
    own = names_defined_in(graph)
    captured = {name: other for name, other in names.items() if name not in own}
    if not own.isdisjoint(captured.values()):
        taken = all_names_in(graph).union(captured.values())
        hidden = own & {other for name, other in captured.items() if name in taken}
        captured |= {name: unused(name, taken) for name in sorted(hidden)}
    initializers = (*graph.initializer, *(each.values for each in graph.sparse_initializer))
    for entry in (*graph.input, *graph.output, *graph.value_info, *initializers):
        entry.name = captured.get(entry.name, entry.name)
    for node in graph.node:
        _rename(node, captured)


def unused(name: str, taken: set[str]) -> str:
    """`name`, with a number where it is in use already; the result is added to the names in use."""
    found, number = name, 1
    while found in taken:
        found, number = f"{name}.{number}", number + 1
    taken.add(found)
    return found


class WaitingNodes:
    """Places in a list of nodes, producers first; a query takes time in proportion to the nodes that it finds."""

    def __init__(self, nodes: Sequence[Any | None], names_read: NamesRead) -> None:
        """`None` is a node that is translated."""
        self.nodes = {place: node for place, node in enumerate(nodes) if node is not None}
        self.reads = {place: names_read.of_node(node) for place, node in self.nodes.items()}
        self.makes = {place: frozenset(filter(None, node.output)) for place, node in self.nodes.items()}
        self._readers = by_key((name, place) for place, names in self.reads.items() for name in names)
        self._makers = {name: place for place, names in self.makes.items() for name in names}

    def __contains__(self, place: int) -> bool:
        return place in self.nodes

    def done(self, place: int) -> None:
        self.nodes.pop(place, None)

    def readers(self, names: Iterable[str]) -> list[int]:
        """The places of the nodes that read one of the names, in order."""
        return sorted({each for name in names for each in self._readers.get(name, ()) if each in self.nodes})

    def makers(self, place: int) -> set[int]:
        """The places of the nodes that make the inputs of a node."""
        found = {self._makers.get(name, -1) for name in self.reads[place]}
        return {each for each in found if each in self.nodes}

    def after(self, names: Iterable[str], last: int) -> set[int]:
        """The places of the nodes that depend on one of the names, up to the place `last`."""

        def readers(names: Iterable[str]) -> list[int]:
            return [place for place in self.readers(names) if place <= last]

        return set(reached(readers(names), lambda place: readers(self.makes[place])))

    def before(self, places: Iterable[int], among: set[int] | None = None) -> set[int]:
        """The places of the nodes that nodes depend on, and these nodes; only those in `among`."""
        return set(reached(places, lambda each: self.makers(each) if among is None else self.makers(each) & among))


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
            )


def without_repeated(
    nodes: Sequence[Any], reads: Sequence[Collection[str]], repeated: Mapping[str, list[int]], outputs: Iterable[str],
    scope: tuple[str, ...],
) -> list[Any]:
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
            )
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
    ]
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
    return copy.SerializeToString(deterministic=True)


def _without(node: Any, name: str) -> Any:
    """A copy of a node without the output `name`."""
    copy = type(node)()
    copy.CopyFrom(node)
    del copy.output[:]
    copy.output.extend("" if each == name else each for each in node.output)
    return copy
