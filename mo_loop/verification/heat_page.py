"""HeatPage: the page of a comparison: how far each tensor is from that of the ONNX model, and how this grows in loops.

    page = HeatPage("steps")
    graph = Conversion(options, [page.dumper]).run("model.onnx")     # else page.dumper.show(graph, "model.xml")
    first_difference(model, graph, feeds, heat=page.heat)
    page.write()
"""

from __future__ import annotations

import os

from mo_loop.dump.dumper import Dumper
from mo_loop.verification.layers import Heat


class HeatPage:
    """The page in a folder, with the files of a dump."""

    def __init__(self, folder: str | os.PathLike[str], precision: str = "") -> None:
        self.dumper = Dumper(folder)
        self.heat = Heat()
        self.heat.precision = precision

    def write(self) -> None:
        """Write what is known so far."""
        self.dumper.colour(self.heat.as_json, self.heat.notes)
