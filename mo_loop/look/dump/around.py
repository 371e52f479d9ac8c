"""The neighbourhood of one node: the nodes within some edges of it, followed through the passes.

    around = Around("conv1", 3)
    around.of(state)         # a smaller GraphState

The node is named by its name, by the ONNX node, by a tensor, or by the path of an ONNX node or tensor (loop/step/add).
Nodes that a pass makes in its place have its name or its origin. Edges are inputs, and those of port maps.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from mo_loop.errors import UsageError
from mo_loop.look.records.node_records import ENDS, GraphState, Record

DEPTH = 3
"""The number of edges unless another is given."""

Origin = tuple[str, ...]


class Around:
    """Selects the neighbourhood of a node from each state of a run.

    Raises:
        UsageError: the first state has no such node.
    """

    def __init__(self, name: str, depth: int = DEPTH) -> None:
        self._name = name
        self._depth = depth
        self._names: set[str] | None = None  # None: before the first state
        self._origins: set[Origin] = set()
        self._last: set[int] = set()

    def of(self, state: GraphState) -> GraphState:
        """The nodes within the depth. Those that they read beyond it are there without their own inputs."""
        centre = self._centre(state)
        near = _within(state, centre, self._depth)
        self._last = near
        return _cut(state, near)

    def _centre(self, state: GraphState) -> set[int]:
        if self._names is None:
            named = {number: list(_names(record)) for number, record in state.nodes.items()}
            centre = {number for number, names in named.items() if self._name in names}
            if not centre:
                names = sorted({name for each in named.values() for name in each})
                close = get_close_matches(self._name, names, 1, 0.5)
                hint = f"did you mean {close[0]!r}?" if close else "mo-loop inspect --nodes lists the nodes"
                raise UsageError(f"no node or tensor is called {self._name!r}", hint=hint)
            self._names = {state.nodes[number]["name"] for number in centre} - {""}
            self._origins = {each for number in centre for each in _origins(state.nodes[number])}
            return centre
        found = {
            number for number, record in state.nodes.items()
            if record["name"] in self._names or not self._origins.isdisjoint(_origins(record))
        }  # fmt: skip
        return found or {number for number in self._last if number in state.nodes}


def _names(record: Record) -> Iterator[str]:
    """The names of a node: its own, those of its tensors, and of the ONNX nodes and tensors that it was made for."""
    names = [record["name"], *record.get("names", ())]
    names += [name for output in record["outputs"] for name in output["names"]]
    for scope, node, _, output in record.get("origins", ()):
        names += [node, output, f"{scope}/{node or output}", f"{scope}/{output}"]
    yield from filter(None, names)


def _origins(record: Record) -> Iterator[Origin]:
    for scope, node, operator, output in record.get("origins", ()):
        if node or output:
            yield (scope, node, operator) if node else (scope, output)


def _within(state: GraphState, centre: set[int], depth: int) -> set[int]:
    neighbours: dict[int, list[int]] = {number: [] for number in state.nodes}
    for number, record in state.nodes.items():
        for other in (*(source[0] for source in record["inputs"] if source is not None), *_ends(record)):
            neighbours[number].append(other)
            neighbours[other].append(number)
    found, edge = set(centre), centre
    for _ in range(depth):
        edge = {other for number in edge for other in neighbours[number]} - found
        found |= edge
    return found


def _entry_ends(entry: Record) -> list[int]:
    return [entry[key] for key in ENDS if entry.get(key) is not None]


def _ends(record: Record) -> list[int]:
    """The nodes of its bodies to which a control-flow node has edges."""
    ports = record.get("port_map", {})
    entries = (*ports.get("inputs", ()), *ports.get("outputs", ()))
    found = [number for entry in entries for number in _entry_ends(entry)]
    return found + [ports[key] for key in ("iteration", "condition") if key in ports]


def _cut(state: GraphState, near: set[int]) -> GraphState:
    owners: set[int] = set()
    scopes = {"": state.scopes[""]}
    for number in near:
        scope = state.nodes[number]["scope"]
        while scope not in scopes:
            scopes[scope] = state.scopes[scope]
            owners.add(scopes[scope]["owner"])
            scope = state.nodes[scopes[scope]["owner"]]["scope"]
    read = {source[0] for number in near | owners for source in state.nodes[number]["inputs"] if source is not None}
    shown = near | owners | read
    found = GraphState()
    for number, record in state.nodes.items():
        if number in near or number in owners:
            found.nodes[number] = _partly(record, shown, scopes)
        elif number in read:
            outer = {key: value for key, value in record.items() if key not in ("bodies", "port_map")}
            found.nodes[number] = outer | {"inputs": []}
    for name in state.scopes:
        if name in scopes:
            ends = {key: [each for each in scopes[name][key] if each in shown] for key in ("parameters", "results")}
            found.scopes[name] = scopes[name] | ends
    return found


def _partly(record: Record, shown: set[int], scopes: dict[str, Record]) -> Record:
    """A record whose bodies and port map have only the shown nodes."""
    if "port_map" not in record:
        return record
    ports: Record = {}
    for key, value in record["port_map"].items():
        if key in ("inputs", "outputs"):
            ports[key] = [entry for entry in value if shown.issuperset(_entry_ends(entry))]
        elif key == "trip_count" or value in shown:
            ports[key] = value
    return record | {"bodies": [name for name in record["bodies"] if name in scopes], "port_map": ports}
