"""Pictures of the graph between passes.

    VisualizeTree("graph.dot").run(graph)
    Manager([LoopToTI(), VisualizeTree("after.svg", shapes=True), ScanLowering()]).run(graph)
    Manager(passes, [VisualizeSteps("steps")]).run(graph)    # one after each pass that changed something

The .svg is drawn by Graphviz's program `dot`; where it is missing, a warning says so and the .dot is written alone.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import warnings
from collections.abc import Iterable
from pathlib import Path

from mo_loop.errors import UsageError
from mo_loop.files import write_whole
from mo_loop.graph import Graph
from mo_loop.graph.dot import to_dot
from transforms.config import name_of
from transforms.function_pass import FunctionPass
from transforms.manager import Phase, Step

LIMIT = 60.0
"""Seconds that Graphviz may take: its layout of a large graph can take hours."""

_INSTALL = "install Graphviz and have its program 'dot' on the path"
_UNSAFE = re.compile(r"[^\w.-]+")  # in the name of a file


class VisualizeTree(FunctionPass):
    """a graph  ->  the same graph, and a picture of it

    `path` ends in .dot, or in .svg, beside which the .dot is written too. `shapes` and `types` (element types) stand
    along the edges. Bodies are in the picture of the graph that holds them. Changes nothing.

    Raises:
        UsageError: `path` ends otherwise.
        FileError: a file cannot be written.
    """

    bodies = "never"  # the picture of a graph shows its bodies

    def __init__(self, path: str | os.PathLike[str], *, shapes: bool = False, types: bool = False) -> None:
        self.path = Path(path)
        self.shapes = shapes
        self.types = types
        if self.path.suffix not in (".dot", ".svg"):
            raise UsageError(f"the picture {self.path.name!r} ends in neither .dot nor .svg", hint="graph.svg, for one")

    def run_on_graph(self, graph: Graph) -> bool:
        source = to_dot(graph, shapes=self.shapes, types=self.types)
        written = self.path.with_suffix(".dot")
        write_whole(written, source)
        trouble = _draw(source, self.path) if self.path.suffix == ".svg" else ""
        if trouble:
            warnings.warn(f"{self.path} is not drawn, {written} is written: {trouble}", stacklevel=2)
        return False


class VisualizeSteps:
    """An observer: a numbered picture in `folder` after each pass that changed the graph.

    The number is the place of the pass in the run. `only` names the passes that are of interest, all if empty.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, only: Iterable[str] = (), shapes: bool = False, types: bool = False
    ) -> None:
        self.folder = Path(folder)
        self.only = frozenset(map(name_of, only))
        self.shapes = shapes
        self.types = types
        self.count = 0
        self.ending = "svg"

    def __call__(self, step: Step | Phase) -> None:
        if not isinstance(step, Step):
            return
        self.count += 1
        if not step.changed or (self.only and step.name not in self.only):
            return
        if self.ending == "svg" and _program() is None:  # said once, not for every picture
            self.ending = "dot"
            warnings.warn(f"the pictures in {self.folder} are .dot files only: {_INSTALL}", stacklevel=2)
        path = self.folder / f"{self.count:03d}_{_UNSAFE.sub('_', step.name)}.{self.ending}"
        VisualizeTree(path, shapes=self.shapes, types=self.types).run(step.graph)


def _program() -> str | None:
    return shutil.which("dot")


def _draw(source: str, picture: Path) -> str:
    """Have Graphviz draw the text `source`; what kept it from doing so, if anything did."""
    program = _program()
    if program is None:
        return _INSTALL
    try:
        done = subprocess.run([program, "-Tsvg"], input=source.encode(), capture_output=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"{program} took more than {LIMIT:.0f} s"
    except OSError as error:
        return f"{program} cannot be run: {error.strerror or error}"
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return f"{program} ended with code {done.returncode}" + (f": {said[-1]}" if said else "")
    write_whole(picture, done.stdout)
    return ""
