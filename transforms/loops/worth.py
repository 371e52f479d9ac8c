"""Whether it is worth an input or an output of a loop to compute something for all steps at once: the cost of one step,
that is the nodes that the runtime executes and the numbers that they read and write, and the memory of the tensors of
all steps, relative to those that the loop has anyway.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mo_loop.graph.dimension import Dimension, high, low
from mo_loop.graph.types import TensorType
from mo_loop.ops.recurrent import Recurrent
from mo_loop.transforms.vocabulary import Constant, Graph, Node, Parameter, Result, Value, is_static, ops

USUAL = 128
"""The size that an unknown dimension is taken for."""

ALWAYS = 1 << 22
"""Bytes that a tensor may have in any case."""

BLOCKS = "blocks"
"""The name of the body of a loop over blocks of steps."""

Sizes: TypeAlias = Mapping[Dimension, int]
"""The assumed sizes of unknown dimensions that differ from the usual size."""


def size_of(values: Iterable[Value], sizes: Sizes | None = None) -> int:
    """The bytes of tensors, where unknown dimensions have a usual size."""
    return sum(_bytes(value.type, sizes or {}) for value in values if isinstance(value.type, TensorType))


@dataclass(frozen=True)
class Bound:
    """The bytes that a tensor of all steps of a loop may have."""

    limit: int

    @classmethod
    def of(cls, node: Node, times: float) -> Bound:
        """A multiple of the size of the inputs and outputs of a loop, or of the one whose blocks of steps it computes.
        """
        while node.graph.owner is not None and node.graph.name == BLOCKS:
            node = node.graph.owner
        return cls(max(ALWAYS, int(times * size_of([*node.operands, *node.outputs]))))

    def excess(self, values: Iterable[Value], sizes: Sizes | None = None) -> Excess | None:
        """The largest of some tensors, if it is too large."""
        largest = max((size_of([value], sizes) for value in values), default=0)
        return Excess(largest, self.limit) if largest > self.limit else None


@dataclass(frozen=True)
class Excess:
    """A tensor of all steps that is too large."""

    size: int
    limit: int

    def __str__(self) -> str:
        return f"a tensor of all its steps would take {self.size:,} bytes, more than {self.limit:,}"

    def steps_of(self, count: Dimension) -> int:
        """The number of steps of which such a tensor is not too large, for blocks of the steps of a loop."""
        most = usual(count) * self.limit // self.size
        if most < 2:
            return most
        if isinstance(count, int):
            return next((each for each in range(most, most // 2, -1) if count % each == 0), most)
        return 1 << (most.bit_length() - 1)  # the division of a large count by a power of two is exact


def _bytes(type_: TensorType, sizes: Sizes) -> int:
    bits = 32 if type_.dtype is None else type_.dtype.bits
    return math.prod(sizes.get(dim) or usual(dim) for dim in type_.shape or ()) * max(bits, 8) // 8


def usual(dim: Dimension) -> int:
    """The size that is assumed for a dimension."""
    top = high(dim)
    return max(low(dim), USUAL if top is None else min(USUAL, top))


UNTIL_ENDED = 28
"""The number of steps that is assumed for a loop that a step may end."""

INFERENCES = 350
"""As many inferences are assumed for each compilation."""

ITERATION, COMPILED = 5, 250
"""Microseconds of an iteration without its steps, and of the compilation of a node."""

BRANCHES, LOOP = 12, 20
"""The nodes whose compilation takes as long as that of an If, and of a loop without its body."""


@dataclass(frozen=True)
class StepCost:
    """The time of a loop of which an iteration has several steps, without that of the steps.

    Args:
        nodes: those of a step that take time to compile.
    """

    nodes: int

    @classmethod
    def of(cls, body: Graph, selected: int = 0) -> StepCost:
        """That of a body with `selected` states that keep their values after the last step."""
        every = [each for scope in body.scopes() for each in scope]
        work = [each for each in every if not isinstance(each, Constant | Parameter | Result | ops.View)]
        return cls(max(1, len(work) + selected + (BRANCHES - 1) * sum(isinstance(each, ops.If) for each in work)))

    def total(self, count: int, steps: int) -> int:
        """The microseconds of a compilation and its inferences; fewer than two iterations need no loop."""
        if count < 2 * steps:
            return COMPILED * self.nodes * count
        copies = self.nodes * (steps + count % steps)
        return INFERENCES * ITERATION * (count // steps + 2) + COMPILED * (copies + LOOP)

    def text(self, count: int, steps: int) -> str:
        """The time that several steps save and cost, relative to one."""
        saved = ITERATION * (count - count // steps)
        taken = COMPILED * self.nodes * (steps + count % steps - 1) // 1000
        return f"with {count} steps it saves {saved} microseconds in each inference and costs {taken} ms of compilation"


LANES = 8
"""Multiplications of a product that take as long as one number of an element-wise operation."""


def step_nodes(body: Graph) -> int:
    """The number of nodes that one step executes, at least 1."""
    every = (each for scope in body.scopes() for each in scope)
    return max(1, sum(not isinstance(each, Constant | Parameter | Result) for each in every))


def has_known_shapes(body: Graph, besides: Collection[Node] = ()) -> bool:
    """Whether the shapes of all values of a step are known at conversion, except those that `besides` reads."""
    read = (value for scope in body.scopes() for each in scope if each not in besides for value in each.operands)
    return all(is_static(value.shape) for value in read)


def numbers_touched(body: Graph) -> int:
    """The approximate count of numbers that one step writes; an unknown size counts as 1."""
    total = 0
    for node in (each for scope in body.scopes() for each in scope):
        if isinstance(node, Constant | Parameter | Result):
            continue
        written = sum(_elements(output) for output in node.outputs)
        weights = node.inputs[1] if len(node.inputs) > 1 else None
        if isinstance(node, ops.MatMul) and weights is not None and weights.shape:
            at = -1 if node.transpose_b or len(weights.shape) == 1 else -2
            depth = weights.shape[at]
            written += written * (depth if isinstance(depth, int) else 1) // LANES
        elif isinstance(node, ops.Filtered) and weights:
            written += written * _elements(weights) // (LANES * max(1, _size(node.outputs[0], 1)))
        total += written
    return total


def _elements(value: Value) -> int:
    shape = value.shape
    return 1 if shape is None else math.prod(dim if isinstance(dim, int) else 1 for dim in shape)


def _size(value: Value, axis: int) -> int:
    dim = value.type.dims[axis]
    return dim if isinstance(dim, int) else 1


CHEAP = (Constant, Parameter, Result, ops.Movement, ops.Convert, ops.ShapeOf, ops.Concat, ops.Barrier)
"""Operations that only move elements."""

EXPENSIVE = (ops.MatMul, ops.Einsum, ops.Filtered, Recurrent)
"""Operations that take longer than an iteration, and less time for all steps together."""

SHARE = 0.25
"""The cost of an operation of elements in an iteration, relative to an input or an output of the loop: the runtime
executes several as one."""

PRODUCT = 2
"""The cost of a small product in an iteration."""

LARGE = 1 << 16
"""The bytes of operands from which on a product costs more than any port."""

AT_ONCE = 1 << 18
"""The computation without use that is always allowed: about as much as that of an iteration."""


def is_too_much(nodes: Iterable[Node], beside: Iterable[Value], times: float) -> bool:
    """Whether it takes much longer to compute `nodes` than to read some tensors, which the model has made."""
    return sum(map(_work, nodes)) > max(AT_ONCE, times * size_of(beside))


def _work(node: Node) -> int:
    """The approximate number of bytes that an element-wise operation writes in the time that `node` takes."""
    depth: Dimension = 1
    if isinstance(node, ops.MatMul):
        depth = node.operands[0].type.dims[-2 if node.transpose_a and node.operands[0].type.rank > 1 else -1]
    return size_of(node.outputs) * max(1, usual(depth) // LANES)


def is_work(nodes: Collection[Node]) -> bool:
    """Whether one of `nodes` computes."""
    return any(not isinstance(node, CHEAP) for node in nodes)


def is_worth(gone: Collection[Node], ports_less: int, ports_more: int) -> bool:
    """Whether a loop is faster without some nodes and ports of its body, and with some other ports."""
    work = [node for node in gone if not isinstance(node, CHEAP)]
    saved = sum(
        PRODUCT if isinstance(node, EXPENSIVE) else SHARE if isinstance(node, ops.Elementwise) else 1 for node in work
    )
    if saved + ports_less > ports_more:
        return True
    # The cost of ports is negligible next to a product that reads so much in each iteration.
    return any(isinstance(node, EXPENSIVE) and size_of(node.operands) > LARGE for node in work)
