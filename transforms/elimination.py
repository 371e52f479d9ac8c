"""The base of passes that replace a node by an existing value.

    class EliminateAddZero(Elimination):
        \"\"\"x + 0  ->  x\"\"\"

        keeps = x = any_input()
        pattern = any_order(ops.Add, x, constant(value_equals(0)))

A node is replaced only if the remaining value is proven to have the same element type and dimensions. A constant that
broadcasts the other operand therefore keeps its node.
"""

from __future__ import annotations

from typing import ClassVar

from mo_loop.graph import Value
from mo_loop.graph.types import TensorType
from mo_loop.ops.base import Constant, Identity, Parameter, Result
from mo_loop.transforms.pattern import Match, Pattern
from mo_loop.transforms.replace import replace_output_update_name
from mo_loop.transforms.rewrite import MatcherPass


class Elimination(MatcherPass):
    """A node whose result is an existing value  ->  that value

    Tensor names and rt_info move to the value. Before a model output, the node that makes the value takes the output's
    name. If it cannot (it is an input, a constant or another output), an Identity with that name is inserted.
    """

    keeps: ClassVar[Pattern]
    """The part of the pattern that is the value, if both are proven to have the same type and shape."""

    def matched(self, match: Match) -> bool:
        kept, made = match[self.keeps], match.root.output
        if is_alike(made, kept):
            return self.bypass(match, kept)
        return self.refuse(match.root, f"{made.type} is not proven to equal {kept.type}", len(match.nodes))

    def bypass(self, match: Match, value: Value) -> bool:
        """Readers of the root read `value`, which equals its output; False if the root has to stay."""
        root = match.root
        taken = isinstance(value.node, Parameter | Constant) or is_model_output(value)
        if not (taken and is_model_output(root.output)) and replace_output_update_name(root.output, value):
            return True
        return not isinstance(root, Identity) and self.replace(match, Identity(value))


def is_alike(a: Value, b: Value) -> bool:
    """Whether both are proven to have the same element type and the same dimensions, in order."""
    if not isinstance(a.type, TensorType) or not isinstance(b.type, TensorType) or a.shape is None:
        return False
    return a.dtype is b.dtype and a.shape == b.shape


def is_model_output(value: Value) -> bool:
    """Whether the model itself, not a body, returns the value."""
    return value.graph.owner is None and any(isinstance(use.node, Result) for use in value.uses)
