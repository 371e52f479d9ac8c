"""The files of one run: a graph in full, or the changes of a step, in each format; and the folder that holds them.

    files = StepFiles(RunFolder("steps"), ("text", "json"), describer, shapes=True, types=False)
    files.whole("000_loaded", state, graph)
    files.delta("014_LoopToTI", "LoopToTI", before, after, graph, change)

A dump can have the neighbourhood of one node alone: the nodes within some edges of it, followed through the passes.

    around = Around("conv1", 3)
    around.of(state)         # a smaller GraphState

The node is named by its name, by the ONNX node, by a tensor, or by the path of an ONNX node or tensor (loop/step/add).
Nodes that a pass makes in its place have its name or its origin. Edges are inputs, and those of port maps.
"""

import hashlib
import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mo_loop.errors import FileError, UsageError
from mo_loop.graph import Graph
from mo_loop.look.dump.delta_text import Statements, delta_dot, state_dot
from mo_loop.look.records.node_link import delta_link, node_link, spelled
from mo_loop.look.records.node_records import ENDS, Describer, GraphState, Record
from mo_loop.printable import did_you_mean
from mo_loop.support.files import reason_of, write_whole
from mo_loop.text.dot import to_dot
from mo_loop.transforms.visualize import GraphvizMissing, NotDrawn, draw

INDEX = ".mo-loop-dump.json"

_SCHEMA, _VERSION = "mo-loop dump", 1
_NAME = re.compile(r"\d{3,}_[\w.-]+|index\.html")  # no name in an index leads out of its folder

PAGE = "index.html"
"""The file that shows the whole run; it is written again when more is known."""

FORMATS = {"text": ".txt", "json": ".json", "dot": ".dot", "svg": ".svg"}
"""Format -> the ending of its files."""


class StepFiles:
    """Writes the files. `previous` is the stem of those that were written last."""

    def __init__(
        self, folder: "RunFolder", formats: tuple[str, ...], describer: Describer, *, shapes: bool, types: bool
    ) -> None:
        self.previous = ""
        self._folder = folder
        self._formats = formats
        self._describer = describer
        self._statements = Statements(describer)
        self._edges = {"shapes": shapes, "types": types}

    def whole(
        self, stem: str, state: GraphState, graph: Graph, more: Mapping[int, Record] | None = None, *,
        is_part: bool = False, beside: bool = False,
    ) -> None:
        """A graph in full, or the part of it that a state shows. `more` is added to the nodes of the JSON.

        `beside` means that the changes of the step have files of their own.
        """
        if is_part:
            text, picture = self._statements.of_part, partial(state_dot, state, **self._edges)
        else:
            text = self._statements.of_graph
            picture = partial(to_dot, graph, **self._edges, number=self._describer.id)
        self._write(stem, partial(text, graph, state), lambda: spelled(node_link(state, more)) + "\n", picture)
        if not beside:
            self.previous = stem

    def delta(self, stem: str, name: str, before: GraphState, after: GraphState, graph: Graph, change: Record) -> None:
        """Write the changes of the step `name`, after which there is this graph."""
        previous, self.previous = self.previous, stem
        self._write(
            stem,
            lambda: self._statements.of_delta(before, after, graph, change, name, previous),
            lambda: spelled(delta_link(before, after, change, previous=previous, **{"pass": name})) + "\n",
            lambda: delta_dot(before, after, change, **self._edges),
        )

    def _write(self, stem: str, text: Callable[[], str], data: Callable[[], str], picture: Callable[[], str]) -> None:
        made: dict[str, str | bytes] = {
            name: make() for name, make in (("text", text), ("json", data)) if name in self._formats
        }
        if "dot" in self._formats or "svg" in self._formats:
            made |= self._pictures(stem, picture())
        self._folder.write({stem + FORMATS[name]: content for name, content in made.items()})

    def _pictures(self, stem: str, source: str) -> dict[str, str | bytes]:
        """By format; the .dot as well where it cannot be drawn."""
        found: dict[str, str | bytes] = {"dot": source} if "dot" in self._formats else {}
        if "svg" not in self._formats:
            return found
        path = self._folder.path
        try:
            return {**found, "svg": draw(source)}
        except GraphvizMissing as error:  # one warning, not one for each picture
            self._formats = (*(name for name in self._formats if name not in ("dot", "svg")), "dot")
            warnings.warn(
                f"the pictures in {path} are .dot files only: {error}; {path / 'index.html'} shows the same graphs "
                "without it", stacklevel=2,
            )
        except NotDrawn as error:
            warnings.warn(f"{path / stem}.svg is not drawn, the .dot is written: {error}", stacklevel=2)
        return {"dot": source}


# -- the folder


class RunFolder:
    """A folder with the files of one run, by its path, which need not exist yet.

    Only files of an earlier run are removed. The file .mo-loop-dump.json in it is the index: the names of the files,
    and the SHA-256 of their content. A file is of an earlier run if the index names it, it is a file and not a link,
    and its content is unchanged. Changed files are never removed.

    Raises:
        FileError: the folder cannot be made, read or written to, or a file is in the way that no earlier run wrote.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._files: dict[str, str] = {}

    def begin(self) -> None:
        """Begin a run: the folder is made if need be, and the files of an earlier run in it are removed."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for name, digest in self._earlier().items():
                file = self.path / name
                if _NAME.fullmatch(name) and _is_file(file) and _digest(file.read_bytes()) == digest:
                    file.unlink()
        except OSError as error:
            raise FileError(
                f"{self.path} cannot hold a dump", why=reason_of(error), hint="give another folder", code="ML219"
            ) from None
        self._files = {}
        self._require_free([PAGE])  # it is written last, and it would be too late
        self._save_index()

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files of this run by name, text as UTF-8."""
        written = {
            name: content if isinstance(content, bytes) else content.encode("utf-8", errors="backslashreplace")
            for name, content in files.items()
        }
        self._require_free([name for name in written if name != PAGE or PAGE not in self._files])
        # The index goes first: if the process is killed in between, it names a file that does not exist.
        self._files |= {name: _digest(content) for name, content in written.items()}
        self._save_index()
        for name, content in written.items():
            write_whole(self.path / name, content)

    def _require_free(self, names: Iterable[str]) -> None:
        for name in names:
            if os.path.lexists(self.path / name):
                raise FileError(
                    f"{self.path / name} would be overwritten by a dump", why="no earlier dump wrote this content",
                    hint="move it away, or give another folder", code="ML219",
                )

    def _earlier(self) -> dict[str, str]:
        """Name -> SHA-256 of the files of an earlier run."""
        index = self.path / INDEX
        if not os.path.lexists(index):
            return {}
        try:
            found: Any = json.loads(index.read_bytes()) if _is_file(index) else None
            if (found["schema"], found["version"]) != (_SCHEMA, _VERSION):
                raise ValueError
            return {str(name): str(digest) for name, digest in found["files"].items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise FileError(
                f"{index} is not the index of a dump", why="only an index lists the files that an earlier dump wrote",
                hint="move it away, or give another folder", code="ML219",
            ) from None

    def _save_index(self) -> None:
        content = {"schema": _SCHEMA, "version": _VERSION, "files": self._files}
        write_whole(self.path / INDEX, json.dumps(content, indent=1) + "\n")


def _is_file(path: Path) -> bool:
    """Whether there is a file, not a link or a folder."""
    return os.path.isfile(path) and not os.path.islink(path)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


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
        near = _within(state, self._centre(state), self._depth)
        self._last = near
        return _cut(state, near)

    def _centre(self, state: GraphState) -> set[int]:
        if self._names is None:
            named = {number: list(_names_of(record)) for number, record in state.nodes.items()}
            centre = {number for number, names in named.items() if self._name in names}
            if not centre:
                names = sorted({name for each in named.values() for name in each})
                hint = did_you_mean(self._name, names, "mo-loop inspect --nodes lists the nodes")
                raise UsageError(f"no node or tensor is called {self._name!r}", hint=hint)
            self._names = {state.nodes[number]["name"] for number in centre} - {""}
            self._origins = {each for number in centre for each in _origins(state.nodes[number])}
            return centre
        found = {
            number for number, record in state.nodes.items()
            if record["name"] in self._names or not self._origins.isdisjoint(_origins(record))
        }
        return found or {number for number in self._last if number in state.nodes}


def _names_of(record: Record) -> Iterator[str]:
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
