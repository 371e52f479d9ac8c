"""The piece of an ONNX model that makes a tensor, as a model of its own.

    data, inputs = piece_model(frame, 3, "y")               # the model, and the values of its inputs
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from mo_loop.compare.layers.onnx_pieces import Piece
from mo_loop.compare.layers.onnx_side import OnnxFrame
from mo_loop.support.reached import reached


def piece_model(frame: OnnxFrame, place: int, name: str) -> tuple[bytes, Mapping[str, Any]] | None:
    """The nodes from the tensors that both sides have to a tensor, an output of the node `place` or an input of its
    body; None if a value is no longer in memory, or is a list."""
    plan = frame.plan
    if place < 0:
        return None

    def before(reader: int) -> list[int]:
        names = [each for each in plan.reads[reader] if each not in frame.cut and each not in plan.constants]
        return [plan.makers[each] for each in names if each in plan.makers]

    with suppress(KeyError):
        piece = Piece(plan, frame, sorted(reached([place], before)))
        feeds = {each: frame.get(each) for each in piece.inputs}
        if any(value is None or isinstance(value, list) for value in feeds.values()):
            return None
        model = piece.model(frame, feeds)
        if name in plan.nodes[place].output:
            kept = [each for each in model.graph.output if each.name == name]
            del model.graph.output[:]
            model.graph.output.extend(kept)
        return model.SerializeToString(), feeds
    return None
