"""The layouts of outputs, said in the file."""

from __future__ import annotations

from mo_loop.graph import Graph
from mo_loop.preprocessing.layout import record_layout
from transforms.preprocess.layout_pass import LayoutPass


class RecordLayouts(LayoutPass):
    """Notes the layout of each output on the value that leaves there, when no pass replaces it any more"""

    def run_on_graph(self, graph: Graph) -> bool:
        for result, (_, layout) in self.outputs(graph):
            record_layout(result.value, layout)
        return False
