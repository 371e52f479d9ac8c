"""The base classes of the rules, and their common parts.

    @rule(wrap_type(ops.GatherElements), "a start below all elements", Gap("slice-before-elements", "a `Slice` ..."))
    def SliceFromBelowZero(node: ops.GatherElements) -> Node | None:
        \"\"\"GatherElements(Slice(x, 0, e, 1), i)  ->  GatherElements(Slice(x, -2^31 + 1, e, 1), i)\"\"\"
        ...                                     # the new node, or None where the runtime computes this one correctly

The function becomes a pass of its name: a LocalRule. A `maximum_rule` is a MaximumRule.
"""

from collections.abc import Callable
from typing import Any

from mo_loop.graph.dimension import low, now
from mo_loop.graph.shape import of_declared_sizes
from mo_loop.graph.types import boolean
from mo_loop.ops.control import If
from mo_loop.transforms.function_pass import pass_with
from mo_loop.transforms.pattern import Match, Pattern
from mo_loop.transforms.replace import insert_before, replace_node
from mo_loop.transforms.rewrite import MatcherPass
from mo_loop.transforms.vocabulary import (
    Constant,
    F,
    Gap,
    Graph,
    Node,
    Parameter,
    Use,
    Value,
    is_static,
    ops,
    source_of,
)

OF_WEIGHTS = (
    ops.Convert, ops.Subtract, ops.Multiply, ops.FakeQuantize, ops.Quantize, ops.Dequantize, ops.Reshape, ops.Transpose,
)
"""Operations that may be between a product and its constant weights."""


class LocalRule(MatcherPass):
    """`pattern` -> the result of `form` for its root"""

    def form(self, node: Any) -> Node | None:
        """The replacement of `node`, or `node` itself after a change; None if the runtime computes it correctly."""
        raise NotImplementedError

    def matched(self, match: Match) -> bool:
        new = self.form(match.root)
        if new is None:
            return False
        if new is not match.root:
            replace_node(match.root, new)
        self.register_new_node(new)  # another rule may apply to it
        return True


class MaximumRule(LocalRule):
    """a reader of x  ->  the same reader of max(x, x), which the runtime neither removes nor fuses, nor moves past;
    of x or x if x is boolean"""

    def place(self, node: Any) -> Use | Value | None:
        """The port that is to read the maximum, or the output whose readers all are to read it; None for no change."""
        raise NotImplementedError

    def form(self, node: Any) -> Node | None:
        place = self.place(node)
        if place is None:
            return None
        uses = place.uses if isinstance(place, Value) else (place,)
        readers = sorted(uses, key=lambda use: not getattr(use.node, "output_names", ()))
        maximum = insert_before(*readers[0], doubled).output  # a model output gives it the name
        for reader, port in readers[1:]:
            node.graph.set_input(reader, port, maximum)
        return node


def doubled(value: Value) -> Node:
    """max(x, x), or x or x if x is boolean."""
    return (F.LogicalOr(value, value) if value.dtype is boolean else F.Maximum(value, value)).node


Rule = Callable[[Callable[[Any], Any]], type[LocalRule]]


def rule(pattern: Pattern, instead: str = "", *avoids: Gap, bodies: str = "first") -> Rule:
    """A decorator: the LocalRule whose `form` is a function, with the name of the function."""
    return pass_with(LocalRule, "form", pattern=pattern, instead=instead, avoids=avoids, bodies=bodies)


def maximum_rule(pattern: Pattern, instead: str, *avoids: Gap) -> Rule:
    """A decorator: the MaximumRule whose `place` is a function, with the name of the function."""
    return pass_with(MaximumRule, "place", pattern=pattern, instead=instead, avoids=avoids)


def both_orders(node: Node) -> tuple[tuple[Value, Value], tuple[Value, Value]]:
    a, b = node.operands
    return (a, b), (b, a)


def is_one_element(value: Value) -> bool:
    return isinstance(value.node, Constant) and value.node.tensor.size == 1


def is_of_rows(node: ops.MatMul) -> bool:
    """Whether the second input of the product is one constant matrix."""
    weights = node.operands[1]
    return is_weights(weights) and all(each == 1 for each in weights.type.dims[:-2])


def is_tiny_product(node: ops.MatMul) -> bool:
    """Whether N and K of [..., N, K] x [..., K, 2] are, or may be, at most 2, and the second is not a constant matrix
    or the first is a vector."""
    a, b = node.operands
    if not a.rank or not b.rank or b.rank < 2 or (a.rank > 1 and is_of_rows(node)):
        return False
    across, down = (-2 if node.transpose_a and a.rank > 1 else -1), (-1 if node.transpose_b else -2)
    rows = a.type.dims[-3 - across] if a.rank > 1 else 1
    inner, columns = b.type.dims[down], b.type.dims[-3 - down]
    return now(columns) != 1 and all(low(each) <= 2 for each in (rows, inner, a.type.dims[across], columns))


def is_weights(value: Value) -> bool:
    """Whether `value` is a Constant, also a compressed, quantised or rearranged one."""
    node = value.node
    return isinstance(node, Constant) or (isinstance(node, OF_WEIGHTS) and all(map(is_weights, node.operands)))


def is_declared(value: Value) -> bool:
    """Whether the shape of `value` in the file is static."""
    return is_static(of_declared_sizes(value.shape))


def source_outside(value: Value, kinds: type[Any] | tuple[type[Any], ...] = ops.View) -> Value:
    """The value before views, or other operations, outside of all branches of If whose Parameters have it."""
    source = source_of(value, kinds)
    owner = source.graph.owner
    if isinstance(owner, If) and isinstance(source.node, Parameter):
        for entry, outer in zip(owner.input_map, owner.data_inputs, strict=True):
            if source.node in (entry.then, entry.else_) and outer is not None:
                return source_outside(outer, kinds)
    return source


def is_static_model(graph: Graph) -> bool:
    """Whether the model has static shapes alone."""
    while graph.owner is not None:
        graph = graph.owner.graph
    return graph.note("all sizes declared", lambda: all(
        is_declared(each) for node in graph.of(Node) for each in node.outputs  # in any order: sorting takes longer
    ))


def is_static_there(node: Node) -> bool:
    """Whether the runtime knows the shape of the output: it takes 2 and a size that is not known for 2."""
    sizes = [of_declared_sizes(each.shape) or () for each in node.operands] if isinstance(node, ops.Elementwise) else []
    dims = of_declared_sizes(node.output.shape)
    return dims is not None and all(
        isinstance(dim, int) or any(isinstance(each[-at], int) and each[-at] != 1 for each in sizes if len(each) >= at)
        for at, dim in enumerate(reversed(dims), 1)
    )


def is_doubled(node: Node) -> bool:
    """Whether `node` is the maximum of a value and itself, as a MaximumRule places it."""
    return isinstance(node, ops.Maximum) and node.inputs[0] is node.inputs[1]
