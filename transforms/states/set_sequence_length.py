"""Sequences of one step."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from mo_loop.errors import ConversionWarning
from mo_loop.graph import Graph
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.states.recurrences import make_single, single_steps
from mo_loop.transforms.states.step_axes import mixing_of_single


@dataclass(eq=False)
class SetSequenceLength(FunctionPass):
    """x[N, ...], over which a loop or a recurrent layer runs  ->  x[1, ...]

    LowLatency2 with a sequence_length does the same. In a pipeline this pass comes first, so that all others see the
    known length. Without a `sequence_length` it changes nothing. Operations that mix several steps are then found as
    well: they are refused where this pass sets the length, and a warning where the model has one step already.

    Raises:
        UnsupportedError: an operation needs several steps of a sequence; several of them are one ConversionErrors.
    """

    bodies = "never"  # the types of bodies follow from those of the inputs

    sequence_length: int | None = 1
    """1, or None for sequences that keep their lengths."""

    def run_on_graph(self, graph: Graph) -> bool:
        steps = single_steps(graph)
        for each in mixing_of_single(steps) if steps else ():
            text = (
                f"{each.node.type} {each.node.label} {each.what}: N inferences of one step may give other results than "
                "one inference of N steps"
            )
            warnings.warn(ConversionWarning(text, where=each.node.origin, code="ML526"), stacklevel=2)
        return self.sequence_length is not None and make_single(graph)
