"""Document: the data that the page shows: a first state, and the changes of each pass.

    document = Document("model.onnx")
    document.begin(describer.state(graph))
    document.step({"name": "LoopToTI"}, describer.state(graph))       # None instead of a state: nothing changed
    document.as_json()

docs/dump.md describes the form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mo_loop.look.records.node_records import GraphState, Record
from mo_loop.version import __version__

SCHEMA, VERSION = "mo-loop page", 1


class Document:
    """The states of one conversion, or one graph. `kind` is "conversion", "graph", "diff" or "layers".

    `facts` are names and texts that describe the model: its format, opsets, metadata.
    """

    def __init__(self, title: str, kind: str = "conversion") -> None:
        self.title = title
        self.kind = kind
        self.notes: list[str] = []
        self.heat: Record | None = None
        """The differences of the tensors from those of the ONNX model, if both were run."""
        self.texts: list[str] = []
        """The reasons of the passes; the steps refer to them by their index."""
        self.written: Record | None = None
        """The ids of the layers and the offsets of the constants in the files of the IR, by the ids of the nodes. Port
        maps get the layers of their parameters and results."""
        self.pairs: list[tuple[int, list[int]]] | None = None
        """The layers of each node, for an ONNX model and its IR."""
        self.facts: list[tuple[str, str]] = []
        self._first = GraphState()
        self._last = GraphState()
        self._steps: list[Record] = []

    def begin(self, state: GraphState) -> None:
        """Set the first state."""
        self._first = self._last = state

    def step(self, step: Mapping[str, Any], state: GraphState | None, change: Record | None = None) -> None:
        """Add a step with the state after it, None if it changed nothing; `change` is the delta, if it is known."""
        found = dict(step)
        if state is not None:
            found["delta"] = delta(self._last, state) if change is None else change
            self._last = state
        self._steps.append(found)

    def as_json(self) -> Record:
        """Plain data for JSON."""
        found: Record = {
            "schema": SCHEMA, "version": VERSION, "kind": self.kind, "title": self.title,
            "producer": f"mo_loop {__version__}", "notes": self.notes, "facts": self.facts,
            "scopes": list(self._first.scopes.values()), "nodes": list(self._first.nodes.values()),
            "steps": self._steps, "texts": self.texts,
        }  # fmt: skip
        found |= {"heat": self.heat} if self.heat is not None else {}
        found |= {"written": self.written} if self.written is not None else {}
        found |= {"pairs": self.pairs} if self.pairs is not None else {}
        return found


def delta(old: GraphState, new: GraphState) -> Record:
    """The changes between two states; `changed` has whole records.

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
