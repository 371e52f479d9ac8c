"""The layouts of outputs in the file."""

from __future__ import annotations

from mo_loop.graph import Graph
from mo_loop.preprocessing.layout import record_layout
from transforms.preprocess.layout_pass import LayoutPass


class RecordLayouts(LayoutPass):
    """Records the layout of each output on its value; runs last, when no pass replaces the value any more"""

    def run_on_graph(self, graph: Graph) -> bool:
        for result, (_, layout) in self.outputs(graph):
            record_layout(result.value, layout)
        return False
