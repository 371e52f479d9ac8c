"""The files of one run: a graph in full, or the changes of a step, in each format.

    files = StepFiles(RunFolder("steps"), ("text", "json"), describer, shapes=True, types=False)
    files.whole("000_loaded", state, graph)
    files.delta("014_LoopToTI", "LoopToTI", before, after, change)
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping

from mo_loop.graph import Graph, Node, Value
from mo_loop.look.dump.delta_text import Labels, delta_dot, delta_text, end_of, state_dot, state_text
from mo_loop.look.dump.run_folder import RunFolder
from mo_loop.look.records.node_link import JsonTexts, delta_link
from mo_loop.look.records.node_records import Describer, GraphState, Record
from mo_loop.ops.base import Constant
from mo_loop.text import to_text
from mo_loop.text.dot import to_dot
from mo_loop.transforms.visualize import GraphvizMissing, NotDrawn, draw

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
        self._write(
            stem,
            lambda: self._text(state, graph),
            lambda: self._json.whole(state, more or {}),
            lambda: state_dot(state, **self._edges) if graph is None else self._dot(graph),
        )
        if not beside:
            self.previous = stem

    def delta(self, stem: str, name: str, before: GraphState, after: GraphState, change: Record) -> None:
        """Write the changes of the step `name`."""
        previous, self.previous = self.previous, stem
        self._write(
            stem,
            lambda: delta_text(before, after, change, self._labels, self._describer.defaults, name, previous),
            lambda: _spelled(delta_link(before, after, change, previous=previous, **{"pass": name})),
            lambda: delta_dot(before, after, change, **self._edges),
        )

    def _text(self, state: GraphState, graph: Graph | None) -> str:
        if graph is None:
            return state_text(state, self._labels, self._describer.defaults)
        return to_text(graph, known=_Known(self._describer, self._labels, self._ends, state))

    def _dot(self, graph: Graph) -> str:
        return to_dot(graph, **self._edges, number=self._describer.id)

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


def _spelled(data: Record) -> str:
    return json.dumps(data, separators=(",", ":")) + "\n"


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
