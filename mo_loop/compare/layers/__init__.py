"""The first tensor of an ONNX model that differs in its IR, also inside bodies.

    found = first_difference("model.onnx", graph, {"x": x})
    print(found)                # the node, the iteration, both values, what the node became; None: all tensors agree

==================  ===============================================================================
`lockstep`          both sides, node by node        `findings`     what is compared, and what differs first
`onnx_side`         the ONNX model, node by node    `ir_side`      the IR in segments, on demand
`loop_runs`         the loops of both sides         `rounding`     what rounding does in a piece
`tensor_differences`  the answer, and the distances of all tensors
==================  ===============================================================================
"""

from mo_loop.compare.layers.findings import PieceFindings
from mo_loop.compare.layers.first_difference import History, compared, first_difference
from mo_loop.compare.layers.tensor_differences import Heat, LayerDifference
from mo_loop.look.ir_origins import assign_origins

__all__ = ["Heat", "History", "LayerDifference", "PieceFindings", "assign_origins", "compared", "first_difference"]
