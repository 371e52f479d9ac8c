"""The weights of an IR that are stored as f16, as the constants that they stand for.

    widen(graph)            # Convert(Constant f16), marked as decompression  ->  Constant f32, in all bodies
"""

from __future__ import annotations

from mo_loop.graph import Graph
from mo_loop.graph.tensor import ArrayTensor
from mo_loop.ops.arithmetic import Convert
from mo_loop.ops.base import Constant

PARAMETER = "compress_to_fp16"


def widen(graph: Graph) -> None:
    """Change the graph in place, and forget that its weights were compressed."""
    for scope in graph.scopes():
        for node in list(scope.of(Convert)):
            source = node.inputs[0]
            if "decompression" not in node.rt_info or source is None or not isinstance(source.node, Constant):
                continue
            array = source.node.array.astype(node.output.dtype.numpy)
            wide = Constant(ArrayTensor(array), graph=scope, dtype=node.output.dtype, name=node.name)
            wide.origins = node.origins
            wide.output.take_names(node.output)
            node.output.replace_with(wide.output)
            scope.remove(node)
            if not source.is_used:
                scope.remove(source.node)
    parameters = graph.rt_info.get("conversion_parameters")
    if isinstance(parameters, dict):
        graph.rt_info["conversion_parameters"] = {key: value for key, value in parameters.items() if key != PARAMETER}
