"""A loop of an unknown number of steps that stays for few of them, together with a form for many.

    for t in range(T): ..    ->    if T < 16: for t in range(T): ..    else: all steps at once
"""

from __future__ import annotations

from collections.abc import Sequence

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.control import If
from mo_loop.ops.port_map import Branched, Selected
from mo_loop.transforms.loops.outer import Draft
from mo_loop.transforms.loops.pieces import FEW, number_of_steps, put_in_place

STEPS = 16
"""As many steps in chunks are as fast as one after the other: each operation of unknown sizes takes its time."""


def keep_for_few_steps(draft: Draft, outputs: Sequence[Value]) -> None:
    """Replace the loop of a draft, which computes the same outputs, by an If with both."""
    node = draft.node
    outer = list(dict.fromkeys([*node.operands, *draft.outer]))
    few, many = Graph(FEW), Graph("many_steps")
    pairs = [[Parameter(graph=body, type=value.type.without_known()) for body in (few, many)] for value in outer]
    entries = [Branched(*pair) for pair in pairs]
    there, inside = ({value: pair[side].output for value, pair in zip(outer, pairs, strict=True)} for side in (0, 1))
    few.adopt(node.graph, {node}, there)
    for value in node.outputs:
        there[value].names = there[value].origins = ()
    made = draft.place(outputs, many, inside)
    results = [
        Selected(Result(there[output]), Result(other)) for output, other in zip(node.outputs, made, strict=True)
    ]
    chosen = If(
        ops.Less(number_of_steps(node), STEPS), *outer, then_body=few, else_body=many, name=node.name,
        input_map=tuple(entries), output_map=tuple(results),
    )  # fmt: skip
    put_in_place(node, chosen, chosen.outputs)
