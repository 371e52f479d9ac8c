"""Constants of the initial values of several variables."""

from __future__ import annotations

from collections.abc import Iterator

from mo_loop import ops
from mo_loop.graph import Graph, Node, Value
from mo_loop.ops.base import Constant, Op, Parameter
from mo_loop.target import ERROR, Gap
from mo_loop.transforms.function_pass import FunctionPass


class CopyInitialConstants(FunctionPass):
    """ReadValue(f(x, c)), ReadValue(g(x, c))  ->  ReadValue(f(x, c)), ReadValue(g(x, copy of c))

    The runtime computes an initial value inside its ReadValue if nothing else reads it. A constant that two of them
    need is then an input of both, of unknown size.
    """

    instead = "each initial value reads a constant of its own"
    avoids = (Gap(
        "constant-of-initial-values",
        "two variables whose computed initial values read one constant: the inference fails (\"Cannot get dims "
        "for non static shape\"), or the process ends", severity=ERROR, since="2025.0.0",
    ),)  # fmt: skip

    bodies = "never"  # variables are in the main graph

    def run_on_graph(self, graph: Graph) -> bool:
        owners: dict[Node, Node] = {}
        changed = False
        for read in self.candidates(graph, ops.ReadValue):
            copies: dict[Node, Value] = {}
            for node in list(_inside(read)):
                for port, value in enumerate(node.inputs):
                    constant = None if value is None else value.node
                    if not isinstance(constant, Constant) or owners.setdefault(constant, read) is read:
                        continue
                    if constant not in copies:
                        copies[constant] = Constant(constant.tensor, graph=graph).output
                        owners[copies[constant].node] = read
                    graph.set_input(node, port, copies[constant])
            if copies:
                changed = self.accept(read)
            else:
                self.refuse(read, "no other variable has constants of its initial value")
        return changed


def _inside(read: Node) -> Iterator[Op]:
    """The nodes that only the initial value of a variable needs, from the last one on."""
    inside: set[Node] = {read}
    pending = [value.node for value in read.operands]
    while pending:
        node = pending.pop()
        if node in inside or not isinstance(node, Op) or isinstance(node, Constant | Parameter | ops.ReadValue):
            continue
        if all(use.node in inside for output in node.outputs for use in output.uses):
            inside.add(node)
            yield node
            pending += [value.node for value in node.operands]
