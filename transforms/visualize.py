"""Pictures of the graph between passes.

    VisualizeTree("graph.dot").run(graph)
    Manager([LoopToTI(), VisualizeTree("after.svg", shapes=True), ScanLowering()]).run(graph)

After each pass that changed something: `mo_loop.look.dump.Dumper("steps", ["dot", "svg"])` is an observer.

The program `dot` of Graphviz draws the .svg file. Without it a warning is issued and only the .dot file is written.
"""

import os
import shutil
import subprocess
import warnings
from pathlib import Path

from mo_loop.errors import UsageError
from mo_loop.graph import Graph
from mo_loop.support.files import write_whole
from mo_loop.text.dot import to_dot
from mo_loop.transforms.function_pass import FunctionPass

LIMIT = 60.0
"""Seconds that Graphviz may take: its layout of a large graph can take hours."""

_INSTALL = "install Graphviz and have its program 'dot' on the path"


class VisualizeTree(FunctionPass):
    """a graph  ->  the same graph, and a picture of it

    `path` ends in .dot or .svg; with .svg the .dot file is written as well. `shapes` and `types` (element types) label
    the edges. The picture of a graph contains its bodies. The graph is not changed.

    Raises:
        UsageError: `path` has another ending.
        FileError: a file cannot be written.
    """

    bodies = "never"  # the picture of a graph shows its bodies

    def __init__(self, path: str | os.PathLike[str], *, shapes: bool = False, types: bool = False) -> None:
        self.path = Path(path)
        self.shapes = shapes
        self.types = types
        if self.path.suffix not in (".dot", ".svg"):
            raise UsageError(f"the picture {self.path.name!r} ends in neither .dot nor .svg", hint="such as graph.svg")

    def run_on_graph(self, graph: Graph) -> bool:
        source = to_dot(graph, shapes=self.shapes, types=self.types)
        written = self.path.with_suffix(".dot")
        write_whole(written, source)
        if self.path.suffix == ".svg":
            try:
                write_whole(self.path, draw(source))
            except NotDrawn as error:
                warnings.warn(f"{self.path} is not drawn, {written} is written: {error}", stacklevel=2)
        return False


class NotDrawn(Exception):
    """Graphviz did not draw a picture; the text says why."""


class GraphvizMissing(NotDrawn):
    """The program of Graphviz is not installed."""


def _program() -> str | None:
    return shutil.which("dot")


def draw(source: str) -> bytes:
    """The SVG that Graphviz makes of a text in dot.

    Raises:
        NotDrawn: it is missing (GraphvizMissing), fails, or takes too long.
    """
    program = _program()
    if program is None:
        raise GraphvizMissing(_INSTALL)
    try:
        data = source.encode(errors="backslashreplace")
        done = subprocess.run([program, "-Tsvg"], input=data, capture_output=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise NotDrawn(f"{program} took more than {LIMIT:.0f} s") from None
    except OSError as error:
        raise NotDrawn(f"{program} cannot be run: {error.strerror or error}") from None
    if done.returncode:
        output = done.stderr.decode(errors="replace").strip().splitlines()
        raise NotDrawn(f"{program} ended with code {done.returncode}" + (f": {output[-1]}" if output else ""))
    return done.stdout
