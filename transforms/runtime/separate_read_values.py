"""Concatenations with variables."""

from __future__ import annotations

from collections.abc import Iterator

from mo_loop import ops
from mo_loop.graph import Use, Value
from mo_loop.ops.base import Constant, Parameter
from mo_loop.target import ERROR, Gap
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.replace import insert_before


class SeparateReadValues(FunctionPass):
    """Concat(ReadValue(x), y)  ->  Concat(Reshape(ReadValue(x), [0, 0, ..]), y)     if x is computed

    The runtime computes x inside the ReadValue if nothing else reads it. The Reshape copies nothing. Of a variable with
    one unknown size the runtime would remove it: there a Barrier, which copies, separates the two.
    """

    instead = "`Reshape` to its own shape, or a copy, between them"
    avoids = (Gap(
        "concatenation-with-variable",
        "a concatenation with a variable whose initial value is computed does not compile (\"Invalid graph "
        "status\")", severity=ERROR, since="2025.0.0",
    ),)  # fmt: skip

    bodies = "never"

    kinds = (ops.ReadValue,)

    def rewrite(self, node: ops.ReadValue) -> bool:
        initial = node.inputs[0] if node.inputs else None
        if initial is None or isinstance(initial.node, Constant | Parameter):
            return self.refuse(node, "its initial value is not computed")
        if initial.only_use is None:
            return self.refuse(node, "something else reads its initial value")
        readers = list(_concats(node.output))
        rank = node.output.rank
        if not readers or not rank:
            return self.refuse(node, "no Concat reads it")
        unknown = sum(not isinstance(dim, int) for dim in node.output.type.dims)
        for reader, port in readers:
            if unknown > 1:
                insert_before(reader, port, lambda value: ops.Reshape(value, [0] * rank, special_zero=True))
            else:
                insert_before(reader, port, lambda value: ops.Barrier(value, hides="memory"))
        return self.accept(node)


def _concats(value: Value) -> Iterator[Use]:
    """The ports of Concats that read a value, or conversions of it."""
    for use in value.uses:
        if isinstance(use.node, ops.Concat):
            yield use
        elif isinstance(use.node, ops.Convert):
            yield from _concats(use.node.output)
