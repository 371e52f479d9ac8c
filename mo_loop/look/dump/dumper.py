"""The translated graph and the changes of each pass, as files in a folder, with a page that shows all of them.

    convert_model("model.onnx", observers=[Dumper("steps")])

    steps/000_loaded.txt, 000_loaded.json, 000_loaded.dot     the whole graph
    steps/014_EliminateUnusedPorts.txt, ...                   what the 14th pass of the run changed
    steps/117_written.txt, ...                                the whole graph at the end
    steps/index.html                                          the page

    text   .txt    whole graphs are read back by mo_loop.text.parse
    json   .json   nodes and edges in the node-link form of networkx; read back by mo_loop.look.dump.read_dump
    dot    .dot    a picture for Graphviz
    svg    .svg    that picture, drawn by Graphviz's program `dot`; without it, a .dot is written instead

docs/dump.md describes the files.
"""

from __future__ import annotations

import inspect
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from mo_loop.errors import FileError, UsageError
from mo_loop.graph import Graph, Node
from mo_loop.ir.xml import layer_order
from mo_loop.look.dump.step_files import DEPTH, FORMATS, PAGE, Around, RunFolder, StepFiles
from mo_loop.look.page import Document, delta, name_scopes_of, page, step_record
from mo_loop.look.records.node_records import Describer, GraphState, Record
from mo_loop.look.records.trip_counts import set_trip_counts
from mo_loop.ops.base import Constant
from mo_loop.text.attributes import show_attribute
from mo_loop.transforms.config import PassConfig, name_of
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.manager import Manager, Phase, Step, flattened

DEFAULT_FORMATS = ("text", "json", "dot")

LIMIT = 100
"""Changes, and refusals, of one pass or matcher in one step."""

TRIED = 200
"""Nodes of which one matcher says in one step why its pattern does not match."""

Reason = list[Any]
"""[id of the node or None, its path, the pass or matcher, outcome, index of the text]"""

_UNSAFE = re.compile(r"[^\w.-]+")  # in the name of a file


class Dumper:
    """An observer of a conversion, or of a Manager. The folder holds one run: it removes the files of an earlier one.

    The number in the name of a file is the place of the pass in the run. The page is written when the conversion has
    ended or failed; after a Manager alone, when `finish` is called.

    Raises:
        UsageError: a format or a node is not known.
        FileError: the folder cannot be written, or has a file of the same name that no earlier run wrote.
    """

    def __init__(
        self, folder: str | os.PathLike[str], formats: Iterable[str] = DEFAULT_FORMATS, *, after: Iterable[str] = (),
        around: str | None = None, depth: int = DEPTH, whole: bool = False, only: Iterable[str] = (),
        shapes: bool = True, types: bool = True, saved: bool = False,
    ) -> None:
        """Set what the dump writes, and when the run ends.

        Args:
            folder: the folder of the files.
            formats: keys of FORMATS.
            after: the names of passes after which the graph is written in full as well.
            around, depth: only the nodes within `depth` edges of this node are shown (see step_files.py).
            whole: write the whole graph after each pass that changed it, instead of the changes.
            only: the names of the passes after which whole graphs are written, and no others; all if empty.
            shapes, types: the labels of the edges of pictures.
            saved: `save_model` has the same observers, so the run ends with it, not with the conversion.
        """
        self.formats = tuple(dict.fromkeys(formats))
        for name in self.formats:
            if name not in FORMATS:
                raise UsageError(f"a dump has no format {name!r}", hint=f"the formats are {', '.join(FORMATS)}")
        if depth < 0:
            raise UsageError(f"the depth {depth} is below 0")
        self._folder = RunFolder(folder)
        self._after = frozenset(map(name_of, after))
        self._only = frozenset(map(name_of, only))
        self._whole = whole or bool(self._only)
        self._around = None if around is None else (around, depth)
        self._edges = {"shapes": shapes, "types": types}
        self._last_phase = "writing" if saved else "checking"
        self._run: _Run | None = None

    def __call__(self, event: Step | Phase) -> None:
        """Write the translated graph and the changes of each pass."""
        run = self._run
        begins = event.name if isinstance(event, Phase) and event.seconds is None else ""
        if run is None or begins == "reading":
            run = self._begin()
        elif begins == "translating" and run.graph is not None:  # another attempt, with more assumptions about sizes
            title, name_scopes = run.document.title, run.document.name_scopes
            run.end()
            run = self._begin()
            run.document.title, run.document.name_scopes = title, name_scopes
        if isinstance(event, Step):
            self._step(event, run)
        elif event.seconds is not None:
            self._phase(event, run)
        elif event.name == "passes":
            run.listen(event.subject)

    def failed(self, error: BaseException) -> None:
        """Write the page of the steps so far, with the error that ended the conversion, if the folder takes it."""
        with suppress(FileError):
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
        run = self._begin()
        run.document.title, run.document.kind = title, "graph"
        run.document.begin(run.described(graph))
        run.write_whole("000_loaded")
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

    def _begin(self) -> _Run:
        self._folder.begin()
        around = None if self._around is None else Around(*self._around)
        self._run = _Run(self._folder, self.formats, around, self._edges)
        return self._run

    def _phase(self, event: Phase, run: _Run) -> None:
        """A part of the conversion has ended."""
        if event.name == "reading":
            run.document.title = Path(getattr(event.subject, "path", None) or "model").name
            run.document.name_scopes = name_scopes_of(event.subject.proto) if event.subject is not None else {}
        if event.graph is None:
            return
        if event.name == "translating":
            run.document.begin(run.described(event.graph))
            if not self._only:
                run.write_whole("000_loaded")
        else:
            was_stopped = event.name == "passes" and run.skip()
            info = show_attribute(event.graph.rt_info, Any) if event.graph.rt_info else None
            # The last check and the writer change nothing else.
            if was_stopped or event.name in ("renaming", "compressing") or info != run.state.scopes[""].get("info"):
                self._changed_by_phase(event, run, event.graph)
        if event.name == self._last_phase:
            run.document.written = _written(event, run.describer, run.state)
            if not self._whole:
                run.write_whole(f"{run.count + 1:03d}_written", run.document.written)
            self.finish()

    def _changed_by_phase(self, event: Phase, run: _Run, graph: Graph) -> None:
        """The changes since the last pass: by renaming, compressing, or the lowering after a stop."""
        if event.name == "compressing" and run.graph is not None:
            run.describer.continue_with(run.graph, graph)
        before = run.state
        change = delta(before, run.described(graph))
        if any(change.values()):
            run.count += 1
            is_info = event.name == "passes" and not any(change[each] for each in ("removed", "changed", "added"))
            name, seconds = ("rt_info", 0) if is_info else (event.name, event.seconds or 0)
            self._changed(step_record(name, run.count, None, seconds, doc=""), run, before, change)

    def _step(self, step: Step, run: _Run) -> None:
        run.count += 1
        run.skip(step.each)
        found = _described(step, run.count) | run.reasons()
        if step.changed:
            before = run.state
            run.described(step.graph)
            self._changed(found, run, before, delta(before, run.state))
        else:
            run.document.step(found, None)
        if step.name in self._after:
            run.described(step.graph)
            run.write_whole(f"{_stem(found)}.full", beside=True)

    def _changed(self, step: Record, run: _Run, before: GraphState, change: Record) -> None:
        if self._whole and (not self._only or step["name"] in self._only):
            step["file"] = _stem(step)
            run.write_whole(_stem(step))
        elif not self._whole and any(change.values()):
            step["file"] = _stem(step)
            assert run.graph is not None
            run.files.delta(_stem(step), step["name"], before, run.state, run.graph, change)
        run.document.step(step, run.state, change)


def _stem(step: Record) -> str:
    return f"{step['place']:03d}_{_UNSAFE.sub('_', step['name'])}"


def _written(event: Phase, describer: Describer, state: GraphState) -> dict[int, Record]:
    """The ids of the layers and, of constants, the offsets in the .bin if it is written."""
    assert event.graph is not None
    places = getattr(event.subject, "places", {})
    found: dict[int, Record] = {}
    for scope in event.graph.scopes():
        for layer, node in enumerate(layer_order(scope)):
            number = describer.id(node)
            if number in state.nodes:
                found[number] = {"layer": layer}
                if isinstance(node, Constant) and node.tensor in places:
                    found[number]["offset"] = places[node.tensor]
    return found


class _Run:
    """The dump of one conversion. `state` is the present state of the graph, or the part of it that is shown."""

    def __init__(
        self, folder: RunFolder, formats: tuple[str, ...], around: Around | None, edges: dict[str, Any]
    ) -> None:
        self.document = Document("")
        self.describer = Describer()
        self.files = StepFiles(folder, formats, self.describer, **edges)
        self.count = 0
        self.graph: Graph | None = None
        self.state = GraphState()
        self.has_ended = False
        self._around = around
        self._decisions = Decisions()
        self._config: PassConfig | None = None
        self._passes: list[FunctionPass] = []

    def listen(self, manager: Manager) -> None:
        """Hear the decisions of the passes of `manager`, which is about to run."""
        self._passes = flattened(manager.passes)
        self._config = manager.config
        self._config.listener = self._decisions

    def described(self, graph: Graph) -> GraphState:
        """The present state of the graph."""
        self.graph = graph
        self.state = self.describer.state(graph)
        set_trip_counts(self.state)
        if self._around is not None:
            self.state = self._around.of(self.state)
        return self.state

    def write_whole(self, stem: str, more: dict[int, Record] | None = None, *, beside: bool = False) -> None:
        """Write the present state in full."""
        assert self.graph is not None
        self.files.whole(stem, self.state, self.graph, more, is_part=self._around is not None, beside=beside)

    def reasons(self) -> Record:
        """The decisions of the pass that has run; before the graph after it is described."""
        found, left_out = self._decisions.take(self.describer.known)
        return {"reasons": found} | ({"left_out": left_out} if left_out else {})

    def skip(self, until: FunctionPass | None = None) -> bool:
        """Add the passes that did not run before this one, or that are left at the end: the conversion lowers what they
        would have. Whether there were any."""
        place = len(self._passes) if until is None else self._passes.index(until) if until in self._passes else -1
        for each in self._passes[: max(place, 0)]:
            self.document.step(step_record(each.name, 0, (0, 0), doc=_doc(type(each)), off=True), None)
        del self._passes[: place + 1]
        return place > 0

    def end(self) -> None:
        """Hear no more decisions."""
        self.has_ended = True
        self.document.texts = list(self._decisions.texts)
        if self._config is not None:
            self._config.listener = None


def _described(step: Step, place: int) -> Record:
    """A pass that ran; `place` is its number in the run."""
    nodes = step.nodes_before, step.nodes_after
    doc = _doc(type(step.each))
    found = step_record(step.name, place, nodes, step.seconds, step.matchers, matches=step.matches, doc=doc)
    active = {name for name, _ in found["matchers"]}
    rules = [step.each, *(each for each in step.each.passes if each.name in active)]
    keys = ("id", "sentence", "severity", "form", "since", "until")
    gaps = [{key: getattr(gap, key) for key in keys} for rule in rules for gap in rule.gaps()]
    return found | ({"gaps": gaps} if gaps and step.changed else {})


def _doc(cls: type[Any]) -> str:
    """The first paragraph of the docstring: the old and the new form."""
    return (inspect.getdoc(cls) or "").partition("\n\n")[0]


class Decisions:
    """The decisions of passes while a graph is dumped: for each candidate that one changed, refused or had to leave.

    A Listener (transforms/config.py). `take` ends a step: at most LIMIT changes and LIMIT refusals of a pass are kept
    in one, and a pass says why a pattern does not match of at most TRIED nodes. `texts` has every reason once.
    """

    def __init__(self) -> None:
        self.texts: dict[str, int] = {"": 0}
        self._heard: list[tuple[Node, str, str, str, str]] = []
        self._tried: Counter[str] = Counter()
        self._kept: Counter[tuple[str, bool]] = Counter()
        self._left_out = 0

    def wants(self, each: Any) -> bool:
        """Whether the pass determines why its pattern does not match one more node."""
        self._tried[each.name] += 1
        return self._tried[each.name] <= TRIED

    def hear(self, each: Any, node: Node, outcome: str, reason: str) -> None:
        """Keep a decision, or count it."""
        name = each.name
        kind = name, outcome == "changed"
        self._kept[kind] += 1
        if self._kept[kind] > LIMIT:
            self._left_out += 1
            return
        self._heard.append((node, node.path, name, outcome, reason))

    def take(self, known: Callable[[Node], int | None]) -> tuple[list[Reason], int]:
        """The decisions since the last call, each once, and the number of those that were left out.

        A node has an id if it was in the graph before the step: nodes that are made and removed within a step have
        none.
        """
        found: dict[tuple[Any, ...], None] = {}
        for node, path, name, outcome, reason in self._heard:
            found[known(node), path, name, outcome, self.texts.setdefault(reason, len(self.texts))] = None
        left_out = self._left_out
        self._heard, self._left_out = [], 0
        self._tried.clear()
        self._kept.clear()
        return [list(each) for each in found], left_out
