"""The graph as it was translated, and what each pass changed, as files in a folder, with a page that shows all of it.

    convert_model("model.onnx", observers=[Dumper("steps")])

    steps/000_loaded.txt, 000_loaded.json, 000_loaded.dot
    steps/014_EliminateUnusedPorts.txt, ...               the 14th pass of the run is the first that changed the graph
    steps/index.html                                      the page

    text   .txt    read back by mo_loop.text.parse
    json   .json   nodes and edges in the node-link form of networkx
    dot    .dot    a picture for Graphviz
    svg    .svg    that picture, drawn by Graphviz's program `dot`; without it, a .dot is written instead
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

from mo_loop.dump.decisions import Decisions
from mo_loop.dump.node_link import node_link
from mo_loop.dump.run_folder import PAGE, RunFolder
from mo_loop.dump.steps import described, described_change, described_off
from mo_loop.errors import UsageError
from mo_loop.graph import Graph, Node
from mo_loop.graph.dot import to_dot
from mo_loop.page.document import Document, delta
from mo_loop.page.html import page
from mo_loop.page.node_records import Describer, Record, State
from mo_loop.page.trip_counts import set_trip_counts
from mo_loop.text import to_text
from transforms.config import PassConfig, name_of
from transforms.function_pass import FunctionPass
from transforms.manager import Manager, Phase, Step, flattened
from transforms.visualize import GraphvizMissing, NotDrawn, draw

FORMATS = {"text": ".txt", "json": ".json", "dot": ".dot", "svg": ".svg"}
"""Format -> the ending of its files."""

DEFAULT_FORMATS = ("text", "json", "dot")

_UNSAFE = re.compile(r"[^\w.-]+")  # in the name of a file


class Dumper:
    """An observer of a conversion, or of a Manager. The folder holds one run: it removes the files of an earlier one.

    The number in the name of a file is the place of the pass in the run. The page is written when the conversion has
    ended or failed; after a Manager alone, when `finish` is called.

    Raises:
        UsageError: a format is not known.
        FileError: the folder cannot be written, or has a file of the same name that no earlier run wrote.
    """

    def __init__(
        self, folder: str | os.PathLike[str], formats: Iterable[str] = DEFAULT_FORMATS, *, only: Iterable[str] = (),
        shapes: bool = True, types: bool = True, saved: bool = False,
    ) -> None:  # fmt: skip
        """`only` names the passes after which files are written, all if empty; pictures show `shapes` and `types`.

        `saved` says that `save_model` has the same observers: the run ends with it, not with the conversion.
        """
        self.formats = tuple(dict.fromkeys(formats))
        for name in self.formats:
            if name not in FORMATS:
                raise UsageError(f"a dump has no format {name!r}", hint=f"the formats are {', '.join(FORMATS)}")
        self._folder = RunFolder(folder)
        self._only = frozenset(map(name_of, only))
        self._shapes = shapes
        self._types = types
        self._last_phase = "writing" if saved else "checking"
        self._run: _Run | None = None

    def __call__(self, event: Step | Phase) -> None:
        """Write the graph as it was translated, and what each pass changed."""
        if self._run is None or (isinstance(event, Phase) and event.name == "reading" and event.seconds is None):
            self._folder.begin()
            self._run = _Run()
        if isinstance(event, Step):
            self._step(event, self._run)
        elif event.seconds is not None:
            self._phase(event, self._run)
        elif event.name == "passes":
            self._run.listen(event.subject)

    def failed(self, error: BaseException) -> None:
        """Write the page of the steps so far, with the error that ended the conversion."""
        self.finish(error)

    def finish(self, error: BaseException | None = None) -> None:
        """Write the page, unless there is no graph to show."""
        run = self._run
        if run is None or run.has_ended:
            return
        run.end()
        if run.graph is None:
            return
        if error is not None:
            run.document.notes.append(f"The conversion failed: {error}")
        self._folder.write({PAGE: page(run.document.as_json())})

    def show(self, graph: Graph, title: str) -> None:
        """Write a graph that is not converted here, instead of a run."""
        self._folder.begin()
        self._run = run = _Run()
        run.document.title, run.document.kind = title, "graph"
        run.document.begin(run.described(graph))
        self._write("000_loaded", run, graph)
        self.finish()

    def colour(self, heat: Callable[[Callable[[Node], int]], Record], notes: Iterable[str]) -> None:
        """Write the page again, with the differences of its tensors.

        `heat` makes them when it gets the function that gives a node its id on the page.
        """
        run = self._run
        if run is None or run.graph is None:
            return
        run.document.heat = heat(run.describer.id)
        run.document.notes += notes
        self._folder.write({PAGE: page(run.document.as_json())})

    # -- what happens

    def _phase(self, event: Phase, run: _Run) -> None:
        """A part of the conversion has ended."""
        if event.name == "reading":
            run.document.title = Path(getattr(event.subject, "path", None) or "model").name
        if event.graph is None:
            return
        if event.name == "translating":
            run.document.begin(run.described(event.graph))
            if not self._only:
                self._write("000_loaded", run, event.graph)
        elif event.name in ("passes", "renaming", "compressing", self._last_phase):
            self._changed_by_phase(event, run, event.graph)
        if event.name == self._last_phase:
            self.finish()

    def _step(self, step: Step, run: _Run) -> None:
        run.count += 1
        run.add_skipped(step.each)
        found = described(step, run.count) | run.reasons()
        if step.changed:
            run.described(step.graph)
            self._add(found, run, step.graph)
        else:
            run.document.step(found, None)

    def _changed_by_phase(self, event: Phase, run: _Run, graph: Graph) -> None:
        """What changed since the last pass: by renaming, compressing, or the lowering after a stop."""
        if event.name == "compressing" and run.graph is not None:
            run.describer.continue_with(run.graph, graph)
        before = run.state
        after = run.described(graph)
        if any(delta(before, after).values()):
            run.count += 1
            counts = len(before.nodes), len(after.nodes)
            self._add(described_change(event.name, run.count, event.seconds or 0, *counts), run, graph)

    def _add(self, step: Record, run: _Run, graph: Graph) -> None:
        stem = f"{run.count:03d}_{_UNSAFE.sub('_', step['name'])}"
        if not self._only or step["name"] in self._only:
            step["file"] = stem
            self._write(stem, run, graph)
        run.document.step(step, run.state)

    # -- files

    def _write(self, stem: str, run: _Run, graph: Graph) -> None:
        texts: dict[str, str | bytes] = {}
        if "text" in self.formats:
            texts["text"] = to_text(graph)
        if "json" in self.formats:
            texts["json"] = json.dumps(node_link(run.state), separators=(",", ":")) + "\n"
        if "dot" in self.formats or "svg" in self.formats:
            texts |= self._pictures(stem, to_dot(graph, shapes=self._shapes, types=self._types))
        self._folder.write({stem + FORMATS[name]: text for name, text in texts.items()})

    def _pictures(self, stem: str, source: str) -> dict[str, str | bytes]:
        """By format; the .dot as well where it cannot be drawn."""
        found: dict[str, str | bytes] = {"dot": source} if "dot" in self.formats else {}
        if "svg" not in self.formats:
            return found
        try:
            return {**found, "svg": draw(source)}
        except GraphvizMissing as error:  # one warning, not one for each picture
            self.formats = (*(name for name in self.formats if name not in ("dot", "svg")), "dot")
            warnings.warn(f"the pictures in {self._folder.path} are .dot files only: {error}", stacklevel=2)
        except NotDrawn as error:
            warnings.warn(f"{self._folder.path / stem}.svg is not drawn, the .dot is written: {error}", stacklevel=2)
        return {"dot": source}


class _Run:
    """What is known of one conversion."""

    def __init__(self) -> None:
        self.document = Document("")
        self.describer = Describer()
        self.count = 0
        self.graph: Graph | None = None
        self.state = State()
        self.has_ended = False
        self._decisions = Decisions()
        self._config: PassConfig | None = None
        self._passes: list[FunctionPass] = []

    def listen(self, manager: Manager) -> None:
        """Hear the decisions of the passes of `manager`, which is about to run."""
        self._passes = flattened(manager.passes)
        self._config = manager.config
        self._config.listener = self._decisions

    def described(self, graph: Graph) -> State:
        """The present state of the graph."""
        self.graph = graph
        self.state = self.describer.state(graph)
        set_trip_counts(self.state)
        return self.state

    def reasons(self) -> Record:
        """The decisions of the pass that has run; before the graph after it is described."""
        found, left_out = self._decisions.take(self.describer.known)
        return {"reasons": found} | ({"left_out": left_out} if left_out else {})

    def add_skipped(self, each: FunctionPass) -> None:
        """Add the passes before this one that did not run."""
        if each not in self._passes:
            return
        while (skipped := self._passes.pop(0)) is not each:
            self.document.step(described_off(skipped), None)

    def end(self) -> None:
        """Hear no more decisions."""
        self.has_ended = True
        self.document.texts = list(self._decisions.texts)
        if self._config is not None:
            self._config.listener = None
