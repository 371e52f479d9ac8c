"""States that never change."""

from __future__ import annotations

from mo_loop.ops.control import Iteration
from mo_loop.ops.port_map import Final, Invariant, Merged
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.replace import replace_output


class EliminateLoopInputsOutputs(FunctionPass):
    """state' = state  ->  an invariant input; readers of its final value read its initial value"""

    kinds = (Iteration,)

    def rewrite(self, node: Iteration) -> bool:
        constant = {
            entry.result: value
            for entry, value in node.fed
            if isinstance(entry, Merged) and entry.result.value is entry.parameter.output
        }
        if not constant:
            return self.refuse(node, "every state changes")
        node.input_map = tuple(
            Invariant(entry.parameter) if isinstance(entry, Merged) and entry.result in constant else entry
            for entry in node.input_map
        )
        for entry, output in zip(node.output_map, node.outputs, strict=True):
            if isinstance(entry, Final) and entry.result in constant:
                replace_output(output, constant[entry.result])
        return self.accept(node)
