"""Outputs of loops in reverse order."""

from __future__ import annotations

from dataclasses import replace

from mo_loop.ops.control import Loop
from mo_loop.ops.port_map import Concatenated
from mo_loop.target import ERROR, Gap
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.port_maps import reads_only_sizes, reversed_along
from mo_loop.transforms.replace import move_readers


class ReverseBehindLoops(FunctionPass):
    """Y[n - 1 - i] = f(shape(x)) for each step i  ->  Z[i] = f(shape(x)); Y = Z[::-1]

    Where the same size is read in another place, x is an input that the runtime removes.
    """

    instead = "the order of the steps, and a `Slice` with a step of -1 after the loop"
    avoids = (Gap(
        "reversed-output-of-sizes",
        "a `Loop` with an output in reverse order does not compile if the sizes of an input follow from those of "
        "others, and its numbers are not read", severity=ERROR, since="2025.4.1",
    ),)  # fmt: skip

    kinds = (Loop,)

    def rewrite(self, node: Loop) -> bool:
        entries = list(node.output_map)
        turned = [entry for entry in entries if isinstance(entry, Concatenated) and entry.stride == -1]
        if not turned or not reads_only_sizes(node):
            return self.refuse(node, "no output is reversed, or the numbers of all inputs are read")
        for place, (entry, output) in enumerate(zip(node.output_map, node.outputs, strict=True)):
            if entry in turned:
                entries[place] = replace(entry, start=0, end=-1, stride=1)
                readers = output.uses
                move_readers(output, reversed_along(output, entry.axis), readers)
        node.output_map = tuple(entries)
        return self.accept(node)
