"""Document: the data that the page shows: a first state, and for each pass what it changed.

    document = Document("model.onnx")
    document.begin(describer.state(graph))
    document.step(describe(step), describer.state(graph))       # None instead of a state: nothing changed
    document.as_json()

docs/dump.md describes the form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mo_loop.page.node_records import Record, State
from mo_loop.version import __version__

SCHEMA, VERSION = "mo-loop page", 1


class Document:
    """The states of one conversion, or one graph. `kind` is "conversion", "graph" or "diff".

    `facts` are names and texts that tell about the model: its format, opsets, metadata.
    """

    def __init__(self, title: str, kind: str = "conversion") -> None:
        self.title = title
        self.kind = kind
        self.notes: list[str] = []
        self.heat: Record | None = None
        """How far the tensors differ from those of the ONNX model, if both were run."""
        self.texts: list[str] = []
        """The reasons of the passes; the steps refer to them by their index."""
        self.written: Record | None = None
        """The ids of the layers and the offsets of the constants in the files of the IR, by the ids of the nodes. Port
        maps get the layers of their parameters and results."""
        self.facts: list[tuple[str, str]] = []
        self._first = State()
        self._last = State()
        self._steps: list[Record] = []

    def begin(self, state: State) -> None:
        """Set the first state."""
        self._first = self._last = state

    def step(self, step: Mapping[str, Any], state: State | None, change: Record | None = None) -> None:
        """Add a step with the state after it, None if it changed nothing; `change` is the delta, if it is known."""
        found = dict(step)
        if state is not None:
            found["delta"] = delta(self._last, state) if change is None else change
            self._last = state
        self._steps.append(found)

    def as_json(self) -> Record:
        """Plain data for JSON."""
        first = self._named(self._first.nodes.values())
        steps = [
            step | {"delta": step["delta"] | {key: self._named(step["delta"][key]) for key in ("added", "changed")}}
            if "delta" in step else step
            for step in self._steps
        ]  # fmt: skip
        found: Record = {
            "schema": SCHEMA, "version": VERSION, "kind": self.kind, "title": self.title,
            "producer": f"mo_loop {__version__}", "notes": self.notes, "facts": self.facts,
            "scopes": list(self._first.scopes.values()), "nodes": first, "steps": steps, "texts": self.texts,
        }  # fmt: skip
        found |= {"heat": self.heat} if self.heat is not None else {}
        found |= {"written": self.written} if self.written is not None else {}
        return found

    def _named(self, records: Iterable[Record]) -> list[Record]:
        """The records; those with a port map with the ids that its ends have in the IR."""
        if self.written is None:
            return list(records)
        layers = self.written["layers"]
        return [
            record | {"port_map": _with_layers(record["port_map"], layers)} if "port_map" in record else record
            for record in records
        ]


ENDS = ("parameter", "result", "then", "else_")
"""What an entry of a port map refers to."""


def _with_layers(port_map: Record, layers: Mapping[int, int]) -> Record:
    found = dict(port_map)
    for side in ("inputs", "outputs"):
        found[side] = []
        for entry in port_map[side]:
            ids = {key: layers[entry[key]] for key in ENDS if entry.get(key) in layers}
            found[side].append(entry | {"layer_ids": ids} if ids else entry)
    return found


def delta(old: State, new: State) -> Record:
    """What changed between two states; `changed` has whole records.

    Fast where unchanged nodes have the same dictionaries in both, as those of one Describer.
    """
    return {
        "added": [record for number, record in new.nodes.items() if number not in old.nodes],
        "removed": [number for number in old.nodes if number not in new.nodes],
        "changed": [
            record for number, record in new.nodes.items()
            if (before := old.nodes.get(number)) is not record and before is not None and before != record
        ],
        "scopes": [scope for name, scope in new.scopes.items() if old.scopes.get(name) != scope],
        "removed_scopes": [name for name in old.scopes if name not in new.scopes],
    }  # fmt: skip
