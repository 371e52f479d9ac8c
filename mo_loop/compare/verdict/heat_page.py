"""HeatPage: the page of a comparison: how far each tensor is from that of the ONNX model, and how this grows in loops.

    page = HeatPage("steps")
    graph = Conversion(options, [page.dumper]).run("model.onnx")     # else page.dumper.show(graph, "model.xml")
    first_difference(model, graph, feeds, heat=page.heat)
    page.write()
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from mo_loop.compare.layers import Heat
from mo_loop.compare.layers.heat import Distance
from mo_loop.graph import Graph
from mo_loop.look.dump.dumper import Dumper


class HeatPage:
    """The page in a folder, with the files of a dump."""

    def __init__(self, folder: str | os.PathLike[str], precision: str = "") -> None:
        self.dumper = Dumper(folder)
        self.heat = Heat()
        self.heat.precision = precision

    def add_outputs(self, graph: Graph, outputs: Iterable[tuple[str, Distance]], vanishes: str) -> None:
        """Add the differences of the outputs of the whole IR; `vanishes` is noted if no other tensor differs."""
        agree = all(found.worst <= 1 for found, _ in self.heat.tensors.values())
        results = {name: result for result in graph.results for name in (*result.output_names, *result.value.names)}
        for name, found in outputs:
            if name not in results:
                continue
            self.heat.add(results[name].value, ((), name), found)
            if agree and found.worst > 1:
                self.heat.notes[vanishes] = None

    def write(self) -> None:
        """Write the differences so far."""
        self.dumper.colour(self.heat.as_json, self.heat.notes)
