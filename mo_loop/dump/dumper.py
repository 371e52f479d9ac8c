"""The graph as it was translated, and as it is after each pass that changed it, as files in a folder.

    convert_model("model.onnx", observers=[Dumper("steps")])

    steps/000_loaded.txt, 000_loaded.json, 000_loaded.dot
    steps/014_EliminateUnusedPorts.txt, ...               the 14th pass of the run is the first that changed the graph

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
from collections.abc import Iterable

from mo_loop.dump.node_link import node_link_data
from mo_loop.dump.run_folder import RunFolder
from mo_loop.errors import UsageError
from mo_loop.graph import Graph
from mo_loop.graph.dot import to_dot
from mo_loop.text import to_text
from transforms.config import name_of
from transforms.manager import Phase, Step
from transforms.visualize import GraphvizMissing, NotDrawn, draw

FORMATS = {"text": ".txt", "json": ".json", "dot": ".dot", "svg": ".svg"}
"""Format -> the ending of its files."""

DEFAULT_FORMATS = ("text", "json", "dot")

_UNSAFE = re.compile(r"[^\w.-]+")  # in the name of a file


class Dumper:
    """An observer of a conversion, or of a Manager. The folder holds one run: it removes the files of an earlier one.

    The number in the name of a file is the place of the pass in the run.

    Raises:
        UsageError: a format is not known.
        FileError: the folder cannot be written, or has a file of the same name that no earlier run wrote.
    """

    def __init__(
        self, folder: str | os.PathLike[str], formats: Iterable[str] = DEFAULT_FORMATS, *, only: Iterable[str] = (),
        shapes: bool = True, types: bool = True,
    ) -> None:  # fmt: skip
        """`only` names the passes after which files are written, all if empty; pictures show `shapes` and `types`."""
        self.formats = tuple(dict.fromkeys(formats))
        for name in self.formats:
            if name not in FORMATS:
                raise UsageError(f"a dump has no format {name!r}", hint=f"the formats are {', '.join(FORMATS)}")
        self._folder = RunFolder(folder)
        self._only = frozenset(map(name_of, only))
        self._shapes = shapes
        self._types = types
        self._count: int | None = None  # None: the run has not begun

    def __call__(self, event: Step | Phase) -> None:
        """Write the graph as it was translated, and after each pass that changed it."""
        if self._count is None or (isinstance(event, Phase) and event.name == "reading" and event.seconds is None):
            self._folder.begin()
            self._count = 0
        if isinstance(event, Step):
            self._count += 1
            if event.changed and (not self._only or event.name in self._only):
                self._write(f"{self._count:03d}_{_UNSAFE.sub('_', event.name)}", event.graph)
        elif event.name == "translating" and event.seconds is not None and not self._only:
            assert event.graph is not None
            self._write("000_loaded", event.graph)

    def _write(self, stem: str, graph: Graph) -> None:
        texts: dict[str, str | bytes] = {}
        if "text" in self.formats:
            texts["text"] = to_text(graph)
        if "json" in self.formats:
            texts["json"] = json.dumps(node_link_data(graph), indent=1) + "\n"
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
