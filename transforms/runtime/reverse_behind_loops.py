"""Outputs of loops in reverse order."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from mo_loop import ops
from mo_loop.graph import Node, Value
from mo_loop.ops.control import Loop
from mo_loop.ops.port_map import Concatenated
from mo_loop.ops.slicing import FAR
from mo_loop.target import ERROR, Gap
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.port_maps import reads_only_sizes
from mo_loop.transforms.replace import insert_after


class ReverseBehindLoops(FunctionPass):
    """Y[n - 1 - i] = f(shape(x)) for each step i  ->  Z[i] = f(shape(x)); Y = Z[::-1]

    Where the same size is read in another place, x is an input that the runtime removes.
    """

    instead = "the order of the steps, and a `Slice` with a step of -1 behind the loop"
    avoids = (Gap(
        "reversed-output-of-sizes",
        "a `Loop` with an output in reverse order does not compile if the sizes of an input follow from those of "
        "others, and its numbers are not read", severity=ERROR, since="2025.4.1",
    ),)  # fmt: skip

    kinds = (Loop,)

    def rewrite(self, node: Loop) -> bool:
        turned = [isinstance(each, Concatenated) and each.stride == -1 for each in node.output_map]
        if not any(turned) or not reads_only_sizes(node):
            return self.refuse(node, "no output is reversed, or the numbers of all inputs are read")
        for entry, output in zip(node.output_map, node.outputs, strict=True):
            if isinstance(entry, Concatenated) and entry.stride == -1:
                insert_after(output, partial(_reversed, axis=entry.axis))
        node.output_map = tuple(
            replace(each, start=0, end=-1, stride=1) if is_turned else each
            for each, is_turned in zip(node.output_map, turned, strict=True)
        )
        return self.accept(node)


def _reversed(x: Value, axis: int) -> Node:
    return ops.Slice(x, [-1], [-FAR], [-1], [axis])
