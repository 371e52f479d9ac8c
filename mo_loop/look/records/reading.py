"""A dump read back: the graph at any step, from the .json files of its folder.

    dump = read_dump("steps")
    [each.name for each in dump.steps]        # "loaded", then a pass for each file
    state = dump.state(3)                     # records and scopes, as mo_loop/look/records/node_records.py has them
    data = dump.graph(3)                      # the whole graph in the node-link form of networkx

A file names the one before it. Only the files that a step needs are read.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from mo_loop.errors import FileError
from mo_loop.look.records.node_link import applied, node_link, state_of
from mo_loop.look.records.node_records import GraphState, Record
from mo_loop.support.files import refuse_device

Read = TypeVar("Read")

_NAME = re.compile(r"(\d{3,})_([\w.-]+)\.json")


@dataclass(frozen=True)
class DumpStep:
    """A .json file of a dump: the place of the pass in the run, its name, and the file."""

    place: int
    name: str
    file: Path


class Dump:
    """The states of one run."""

    def __init__(self, folder: Path, steps: list[DumpStep]) -> None:
        self.folder = folder
        self.steps = steps
        self._states: dict[Path, GraphState] = {}

    def state(self, step: int) -> GraphState:
        """The graph after a step, by its index in `steps`; a negative one counts from the end."""
        return self._state(self.steps[step].file)

    def graph(self, step: int) -> Record:
        """The whole graph after a step, in the node-link form of networkx."""
        return node_link(self.state(step))

    def _state(self, file: Path) -> GraphState:
        if file not in self._states:
            self._states[file] = state_at(file, self._states)
        return self._states[file]


def read_dump(folder: str | os.PathLike[str]) -> Dump:
    """The dump in a folder.

    Raises:
        FileError: it has no .json file of a dump, or a file is damaged or missing.
    """
    path = Path(folder)
    found = []
    for file in sorted(path.iterdir()) if path.is_dir() else ():
        match = _NAME.fullmatch(file.name)
        if match is not None and not file.name.endswith(".full.json"):
            found.append(DumpStep(int(match[1]), match[2], file))
    if not found:
        raise FileError(
            f"{path} has no .json file of a dump", code="ML214",
            hint="write one with mo-loop convert MODEL --dump DIR, with json among the formats",
        )  # fmt: skip
    return Dump(path, found)


def state_at(file: Path, known: dict[Path, GraphState] | None = None) -> GraphState:
    """The graph that a file of a dump describes: it is applied to the files before it.

    Raises:
        FileError: the file, or one before it, is missing or damaged.
    """
    known = {} if known is None else known
    later: list[dict[str, Any]] = []
    at = file
    seen: set[Path] = set()
    while at not in known:
        data = read_file(at, None if at is file else file)
        if not is_delta(data):
            known[at] = checked(at, partial(state_of, data))
            break
        seen.add(at)
        later.append({"file": at, "data": data})
        at = at.with_name(f"{Path(str(data['graph'].get('previous'))).name}.json")
        if at in seen:
            raise not_of_dump(file, "it is before itself")
    state = known[at]
    for each in reversed(later):
        state = known[each["file"]] = checked(each["file"], partial(applied, state, each["data"]))
    return state


def is_delta(data: Any) -> bool:
    """Whether the data of a file are only the changes of a step."""
    return isinstance(data, dict) and isinstance(data.get("graph"), dict) and data["graph"].get("delta") is True


def read_file(file: Path, needed_by: Path | None = None) -> Any:
    """The data of a .json file."""
    refuse_device(file)
    try:
        return json.loads(file.read_bytes())
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileError(
            f"{file} cannot be read", why=reason if needed_by is None else f"{needed_by.name} needs it: {reason}",
            hint="" if needed_by is None else "a file of a step has only the changes: keep the files before it",
            code="ML212",
        ) from None  # fmt: skip
    except (ValueError, RecursionError) as error:
        raise not_of_dump(file, f"it is not JSON: {error}") from None


def not_of_dump(source: str | Path, why: str) -> FileError:
    """The error for a file that no dump wrote."""
    return FileError(
        f"{source} is not a graph of --dump", why=why, code="ML214",
        hint="give a .json or .txt file that mo-loop convert --dump wrote",
    )  # fmt: skip


def checked(source: str | Path, read: Callable[[], Read]) -> Read:
    """Return the result of `read`; FileError if its data have another form."""
    try:
        return read()
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise not_of_dump(source, f"its JSON has another form: {type(error).__name__} {error}") from None
