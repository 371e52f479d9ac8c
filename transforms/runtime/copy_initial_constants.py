"""Constants of the initial values of variables."""

from __future__ import annotations

from collections.abc import Iterator

from mo_loop import ops
from mo_loop.graph import Graph, Node, Value
from mo_loop.ops.base import Constant, Op, Parameter
from mo_loop.target import ERROR, NEVER, Gap, Processor
from mo_loop.transforms.function_pass import FunctionPass


class CopyInitialConstants(FunctionPass):
    """ReadValue(f(x, c)), ReadValue(g(x, c)), h(c)  ->  ReadValue(f(x, copy of c)), ReadValue(g(x, copy of c)), h(c)

    The runtime computes an initial value inside its ReadValue if nothing else reads it. A constant that other nodes
    read too is then an input of the ReadValue: of unknown size, or not to be described again.
    """

    instead = "each initial value reads a constant of its own"
    avoids = (
        Gap(
            "constant-of-initial-values",
            "two variables whose computed initial values read one constant: the inference fails (\"Cannot get dims "
            "for non static shape\"), or the process ends", severity=ERROR, since="2025.0.0",
        ),
        Gap(
            "state-of-recurrent-layer",
            "a state of an `RNNSequence` or a `GRUSequence` whose computed initial value reads a constant that other "
            "operations read: the inference fails (\"Memory descriptor may not be modified\")",
            severity=ERROR, since="2025.4.1", on={Processor.AVX512_CORE: NEVER, Processor.AVX2: NEVER},
        ),
    )  # fmt: skip

    bodies = "never"  # variables are in the main graph

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for read in self.candidates(graph, ops.ReadValue):
            inside = dict.fromkeys(_inside(read))
            copies: dict[Value, Value] = {}
            for node in inside:
                for port, value in enumerate(node.inputs):
                    if value is None or not isinstance(value.node, Constant):
                        continue
                    if value not in copies:
                        if all(use.node in inside for use in value.uses):
                            continue
                        copies[value] = Constant(value.node.tensor, graph=graph).output
                    graph.set_input(node, port, copies[value])
            if copies:
                changed = self.accept(read)
            else:
                self.refuse(read, "nothing else reads constants of its initial value")
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
