"""The files of one run: a graph in full, or the changes of a step, in each format; and the folder that holds them.

    files = StepFiles(RunFolder("steps"), ("text", "json"), describer, shapes=True, types=False)
    files.whole("000_loaded", state, graph)
    files.delta("014_LoopToTI", "LoopToTI", before, after, change)
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mo_loop.errors import FileError
from mo_loop.graph import Graph, Node, Value
from mo_loop.look.dump.delta_text import Labels, delta_dot, delta_text, end_of, state_dot, state_text
from mo_loop.look.records.node_link import JsonTexts, delta_link, spelled
from mo_loop.look.records.node_records import Describer, GraphState, Record
from mo_loop.ops.base import Constant
from mo_loop.support.files import write_whole
from mo_loop.text import to_text
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
        self, folder: RunFolder, formats: tuple[str, ...], describer: Describer, *, shapes: bool, types: bool
    ) -> None:
        self.previous = ""
        self._folder = folder
        self._formats = formats
        self._describer = describer
        self._labels = Labels()
        self._json = JsonTexts()
        self._ends: dict[int, tuple[Record, str]] = {}
        self._edges = {"shapes": shapes, "types": types}

    def whole(
        self, stem: str, state: GraphState, graph: Graph | None, more: Mapping[int, Record] | None = None, *,
        beside: bool = False,
    ) -> None:  # fmt: skip
        """A graph in full; without `graph` the state is only a part of it. `more` is added to the nodes of the JSON.

        `beside` means that the changes of the step have files of their own.
        """
        if graph is None:
            text = partial(state_text, state, self._labels, self._describer.defaults)
            picture = partial(state_dot, state, **self._edges)
        else:
            text = partial(to_text, graph, known=_Known(self._describer, self._labels, self._ends, state))
            picture = partial(to_dot, graph, **self._edges, number=self._describer.id)
        self._write(stem, text, partial(self._json.whole, state, more), picture)
        if not beside:
            self.previous = stem

    def delta(self, stem: str, name: str, before: GraphState, after: GraphState, change: Record) -> None:
        """Write the changes of the step `name`."""
        previous, self.previous = self.previous, stem
        self._write(
            stem,
            lambda: delta_text(before, after, change, self._labels, self._describer.defaults, name, previous),
            lambda: spelled(delta_link(before, after, change, previous=previous, **{"pass": name})) + "\n",
            lambda: delta_dot(before, after, change, **self._edges),
        )

    def _write(
        self, stem: str, text: Callable[[], str], data: Callable[[], str], picture: Callable[[], str]
    ) -> None:
        made: dict[str, str | bytes] = {}
        if "text" in self._formats:
            made["text"] = text()
        if "json" in self._formats:
            made["json"] = data()
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
            )  # fmt: skip
        except NotDrawn as error:
            warnings.warn(f"{path / stem}.svg is not drawn, the .dot is written: {error}", stacklevel=2)
        return {"dot": source}


class _Known:
    """The known labels and ends of the statements of a text, from the records of a state."""

    def __init__(
        self, describer: Describer, labels: Labels, ends: dict[int, tuple[Record, str]], state: GraphState
    ) -> None:
        """`ends` keeps the ends of statements between the texts of a run."""
        self._id = describer.id
        self._defaults = describer.defaults
        self._labels = labels
        self._ends = ends
        self._nodes = state.nodes

    def label(self, value: Value) -> str:
        node = value.node
        label = self._labels.of(self._id(node), node.name)
        return label if len(node.outputs) == 1 else f"{label}.{value.index}"

    def data(self, node: Constant) -> str:
        record = self._nodes[self._id(node)]
        return str(record.get("content", record["value"]))

    def end(self, node: Node) -> str:
        number = self._id(node)
        record = self._nodes[number]
        known = self._ends.get(number)
        if known is None or known[0] is not record:
            known = self._ends[number] = record, end_of(record, self._defaults.get(record["op"], {}))
        return known[1]


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
            reason = error.strerror or str(error)
            raise FileError(
                f"{self.path} cannot hold a dump", why=reason, hint="give another folder", code="ML219"
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
                )  # fmt: skip

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
                f"{index} is not the index of a dump", why="only an index says which files an earlier dump wrote",
                hint="move it away, or give another folder", code="ML219",
            ) from None  # fmt: skip

    def _save_index(self) -> None:
        content = {"schema": _SCHEMA, "version": _VERSION, "files": self._files}
        write_whole(self.path / INDEX, json.dumps(content, indent=1) + "\n")


def _is_file(path: Path) -> bool:
    """Whether there is a file, not a link or a folder."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
