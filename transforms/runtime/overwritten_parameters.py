"""Parameters of bodies whose memory the runtime overwrites too early."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mo_loop import ops
from mo_loop.graph import Graph, Node
from mo_loop.ops.arithmetic import Binary
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.control import Invariant, Iteration, Loop, Merged
from transforms.runtime.memory import is_in_place


def overwritten(node: Iteration) -> list[Parameter]:
    """The Parameters of a body behind which IsolateParameters inserts a copy."""
    states = {entry.result: entry.parameter for entry in node.back_edges}
    found: list[Parameter] = []
    changing = _changing(node)
    if isinstance(node, Loop) and node.iteration is not None and _reaches(node.body, [node.iteration], states):
        found.append(node.iteration)
    for entry in node.input_map:
        p: Parameter = entry.parameter
        readers = [use.node for use in p.output.uses]
        if isinstance(entry, Merged):
            others = {result: state for result, state in states.items() if result is not entry.result}
            views = [reader for reader in readers if is_in_place(reader)]
            passed_on = any(reader in others for reader in readers) or (entry.result in readers and views)
            if passed_on or _reaches(node.body, views, others):
                found.append(p)
        elif isinstance(entry, Invariant):
            if any(reader in states or _overwrites(reader, changing) for reader in readers):
                found.append(p)
        elif _reaches(node.body, [p], states):
            found.append(p)
    return found


def _overwrites(reader: Node, changing: set[Node]) -> bool:
    """Whether a reader may write into an invariant that it reads, or hand on a view that is written into."""
    if isinstance(reader, Binary):
        views = [value for value in reader.operands if is_in_place(value.node)]
        return reader.output.rank == 0 and bool(views)
    return is_in_place(reader) and not _copies(reader, changing)


def _changing(node: Iteration) -> set[Node]:
    """What depends on the number of the iteration, a state or a slice."""
    constant = {entry.parameter for entry in node.input_map if isinstance(entry, Invariant)}
    varying: set[Node] = {parameter for parameter in node.body.parameters if parameter not in constant}
    return node.body.descendants(varying)


def _copies(reader: Node, changing: set[Node]) -> bool:
    index = reader.inputs[1] if isinstance(reader, ops.Gather) else None
    return index is not None and index.node in changing


def _reaches(body: Graph, starts: Sequence[Node], states: Iterable[Result]) -> bool:
    return not body.descendants(starts).isdisjoint(states)
