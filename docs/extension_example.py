"""An extension: two passes, and translators for two operators of the domain com.example.

mo-loop convert model.onnx -o model.xml --extension extension_example.py
"""

from __future__ import annotations

from typing import Any

from mo_loop import ops
from mo_loop.errors import ConversionErrors
from mo_loop.extensions import Body, Context, Extensions
from mo_loop.graph.types import f16, f32
from mo_loop.transforms import Match, MatcherPass, any_input, any_order, consumers_count, type_matches, wrap_type


class ToSquaredDifference(MatcherPass):
    """(x - y) * (x - y)  ->  SquaredDifference(x, y)"""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.y = any_input(), any_input()
        difference = wrap_type(ops.Subtract, self.x, self.y)
        square = wrap_type(ops.Multiply, difference, difference, when=type_matches(f16, f32))
        self.register_matcher(square, self.fuse)

    def fuse(self, match: Match) -> bool:
        return self.replace(match, ops.SquaredDifference(match[self.x], match[self.y]))


class GatedToSwish(MatcherPass):
    """x * Sigmoid(x)  ->  Swish(x)"""

    def __init__(self) -> None:
        super().__init__()
        self.x = any_input()
        self.gate = wrap_type(ops.Sigmoid, self.x, when=consumers_count(1))
        self.register_matcher(any_order(ops.Multiply, self.x, self.gate), self.fuse)

    def fuse(self, match: Match) -> bool:
        return self.replace(match, ops.Swish(match[self.x]))


def scale_1(x: Any, *, factor: float = 1.0) -> Any:
    """Version 1 of Scale: the factor is an attribute."""
    return ops.Multiply(x, factor)


def scale_2(x: Any, factor: Any = None) -> Any:
    """Version 2 of Scale: the factor is an input, and may be absent."""
    return x if factor is None else ops.Multiply(x, factor)


def repeat(x: Any, *, body: Body, times: int, node: Context) -> Any:
    """body(body(... x)), as a Loop of its own; the body may read values from outside."""
    made = body.translate([x.type.without_known()])
    if made.has_failed:
        raise ConversionErrors(made.failures())
    (state,), (result,) = made.parameters, made.results
    goes_on = ops.Result(ops.Constant(True, graph=made.graph))
    captured = [ops.Invariant(capture.parameter) for capture in made.captures]
    return ops.Loop(
        times,
        ops.Constant(True, graph=node.graph),
        x,
        *(capture.outer for capture in made.captures),
        body=made.graph,
        input_map=(ops.Merged(state, result), *captured),
        output_map=(ops.Final(result),),
        condition=goes_on,
    )


def register(extensions: Extensions) -> None:
    """What mo_loop calls when it loads this file."""
    extensions.add_pass(ToSquaredDifference, before="LoopToTI")
    extensions.add_pass(GatedToSwish, at="start")
    extensions.translates("Scale", domain="com.example", since=1)(scale_1)
    extensions.translates("Scale", domain="com.example", since=2)(scale_2)
    extensions.translates("Repeat", domain="com.example")(repeat)
