"""Every part of the pattern language: where it matches, where it does not, and what it binds."""

import pytest

from mo_loop import ops
from mo_loop.errors import InternalError
from mo_loop.graph import Graph, Value
from mo_loop.graph.types import i64
from mo_loop.transforms.matcher import Trace
from mo_loop.transforms.pattern import (
    Matcher,
    Pattern,
    any_input,
    any_of,
    any_order,
    constant,
    optional,
    repeated,
    wrap_type,
)
from mo_loop.transforms.predicates import consumers_count, rank_equals, value_equals
from tests.unit.graph.graphs import chain, parameter


@pytest.fixture
def x(graph: Graph) -> Value:
    return parameter(graph, 2, 3)


def matches(pattern: Pattern, value: Value) -> bool:
    return Matcher(pattern).match(value.node) is not None


def why(pattern: Pattern, value: Value, *, contained: bool = False) -> str:
    trace = Trace()
    assert Matcher(pattern, contained=contained).match(value.node, trace) is None
    return trace.reason


class TestAnyInput:
    def test_any_value(self, x: Value) -> None:
        match = Matcher(p := any_input()).match(x.node)
        assert match is not None and match[p] is x and match.root is x.node

    def test_a_predicate(self, x: Value) -> None:
        assert matches(any_input(when=rank_equals(2)), x)
        assert why(any_input(when=rank_equals(3)), x) == "any_input at Parameter#0: wants rank 3, found 2"


class TestWrapType:
    def test_one_of_several_types(self, x: Value) -> None:
        pattern = wrap_type((ops.ReLU, ops.Sigmoid))
        assert matches(pattern, ops.ReLU(x).output) and matches(pattern, ops.Sigmoid(x).output)
        assert why(pattern, ops.Tanh(x).output) == "ReLU|Sigmoid at Tanh#3: is a Tanh"

    def test_a_subclass(self, x: Value) -> None:
        class Gentle(ops.ReLU, opset=1):
            pass

        assert matches(wrap_type(ops.ReLU, any_input()), Gentle(x).output)
        assert not matches(wrap_type(Gentle), ops.ReLU(x).output)

    def test_inputs_by_position(self, x: Value) -> None:
        a, b = ops.ReLU(x).output, ops.Tanh(x).output
        pattern = wrap_type(ops.Subtract, wrap_type(ops.ReLU), wrap_type(ops.Tanh))
        assert matches(pattern, ops.Subtract(a, b).output) and not matches(pattern, ops.Subtract(b, a).output)

    def test_attributes_by_value_and_by_function(self, x: Value) -> None:
        last = ops.Softmax(x, axis=-1).output
        assert matches(wrap_type(ops.Softmax, attributes={"axis": -1}), last)
        assert matches(wrap_type(ops.Softmax, attributes={"axis": lambda axis: axis < 0}), last)
        assert "has axis=-1" in why(wrap_type(ops.Softmax, attributes={"axis": 0}), last)
        assert "has axis=-1" in why(wrap_type(ops.Softmax, attributes={"axis": lambda axis: axis > 0}), last)

    def test_a_predicate(self, x: Value) -> None:
        y = ops.ReLU(x).output
        ops.Tanh(y)
        assert matches(wrap_type(ops.ReLU, when=consumers_count(1)), y)
        ops.Sigmoid(y)
        assert why(wrap_type(ops.ReLU, when=consumers_count(1)), y).endswith("wants 1 consumer, found 2")

    def test_an_absent_input(self, x: Value) -> None:
        present = ops.Slice(x, [0], [1], [1], [0]).output
        absent = ops.Slice(x, [0], [1], [1]).output
        four = [any_input() for _ in range(4)]
        assert matches(wrap_type(ops.Slice, *four, None), absent) and matches(wrap_type(ops.Slice, *four), absent)
        assert not matches(wrap_type(ops.Slice, *four, None), present)
        assert why(wrap_type(ops.Slice, *four, any_input()), absent).endswith(": has no input 4")

    def test_more_inputs_than_patterns(self, x: Value) -> None:
        three = ops.Concat(x, x, x, axis=0).output
        assert not matches(wrap_type(ops.Concat, any_input(), any_input()), three)
        assert matches(wrap_type(ops.Concat, any_input(), any_input(), ...), three)
        assert matches(wrap_type(ops.Concat, ...), three)
        assert not matches(wrap_type(ops.Concat, *[any_input()] * 4, ...), three)

    def test_the_rest_comes_last(self) -> None:
        with pytest.raises(InternalError, match="it comes last"):
            wrap_type(ops.Concat, ..., any_input())

    def test_one_value_twice(self, x: Value) -> None:
        y = ops.ReLU(x).output
        square = wrap_type(ops.Multiply, p := any_input(name="p"), p)
        assert matches(square, ops.Multiply(y, y).output)
        assert "is not the value that p matched before" in why(square, ops.Multiply(x, y).output)

    def test_a_diamond(self, x: Value) -> None:
        p = any_input()
        diamond = wrap_type(ops.Add, wrap_type(ops.ReLU, p), wrap_type(ops.Tanh, p))
        other = parameter(x.graph, 2, 3)
        assert matches(diamond, ops.Add(ops.ReLU(x), ops.Tanh(x)).output)
        assert not matches(diamond, ops.Add(ops.ReLU(x), ops.Tanh(other)).output)

    def test_constants(self, x: Value) -> None:
        pattern = wrap_type(ops.Add, any_input(), c := constant(value_equals(1)))
        match = Matcher(pattern).match(y := ops.Add(x, 1.0))
        assert match is not None
        assert match.node(c) is y.inputs[1].node  # type: ignore[union-attr]
        assert "wants the value 1, found 2." in why(pattern, ops.Add(x, 2.0).output)


class TestOutputs:
    @pytest.fixture
    def halves(self, graph: Graph) -> tuple[Value, ...]:
        return ops.Split(parameter(graph, 4), 0, num_splits=2).outputs

    def test_one_output(self, halves: tuple[Value, ...]) -> None:
        split = wrap_type(ops.Split)
        pattern = wrap_type(ops.ReLU, split.output(1))
        assert matches(pattern, ops.ReLU(halves[1]).output)
        assert why(pattern, ops.ReLU(halves[0]).output).endswith("is output 0")

    def test_two_outputs_of_one_node(self, graph: Graph, halves: tuple[Value, ...]) -> None:
        split = wrap_type(ops.Split)
        pattern = wrap_type(ops.Subtract, split.output(1), split.output(0))
        others = ops.Split(parameter(graph, 4), 0, num_splits=2).outputs
        match = Matcher(pattern).match(ops.Subtract(halves[1], halves[0]))
        assert match is not None and match.node(split) is halves[0].node
        assert not matches(pattern, ops.Subtract(halves[0], halves[1]).output)
        assert not matches(pattern, ops.Subtract(halves[1], others[0]).output)

    def test_a_root_of_several_outputs_is_found_by_any(self, halves: tuple[Value, ...]) -> None:
        assert matches(wrap_type(ops.Split), halves[0]) and matches(wrap_type(ops.Split).output(1), halves[0])
        assert not matches(wrap_type(ops.Split).output(2), halves[0])


class TestOptional:
    def test_present_and_missing(self, x: Value) -> None:
        pattern = wrap_type(ops.Tanh, gate := optional(ops.ReLU, p := any_input()))
        y = ops.ReLU(x).output
        with_it, without = Matcher(pattern).match(ops.Tanh(y)), Matcher(pattern).match(ops.Tanh(x))
        assert with_it is not None and without is not None
        assert (with_it.get(gate), gate in with_it, with_it[p]) == (y, True, x)
        assert (without.get(gate), gate in without, without[p]) == (None, False, x) and without[gate] is x

    def test_in_the_middle(self, x: Value) -> None:
        pattern = wrap_type(ops.Tanh, optional(ops.ReLU, wrap_type(ops.Sigmoid, any_input())))
        gate = ops.Sigmoid(x).output
        assert matches(pattern, ops.Tanh(ops.ReLU(gate)).output) and matches(pattern, ops.Tanh(gate).output)
        assert not matches(pattern, ops.Tanh(ops.ReLU(x)).output)

    def test_another_kind_is_not_skipped(self, x: Value) -> None:
        pattern = wrap_type(ops.Tanh, optional(ops.ReLU, wrap_type(ops.Sigmoid)))
        assert not matches(pattern, ops.Tanh(ops.Abs(ops.Sigmoid(x))).output)

    def test_given_up_where_the_rest_needs_it(self, x: Value) -> None:
        y = ops.ReLU(x).output  # y could be the optional ReLU above x, but the other input shows that it is the source
        pattern = wrap_type(ops.Add, p := any_input(), optional(ops.ReLU, p))
        assert matches(pattern, ops.Add(y, y).output) and matches(pattern, ops.Add(x, y).output)

    def test_used_twice_it_is_one_value(self, x: Value) -> None:
        y = ops.ReLU(x).output
        gate = optional(ops.ReLU, any_input())
        pattern = wrap_type(ops.Add, gate, gate)
        assert matches(pattern, ops.Add(y, y).output) and matches(pattern, ops.Add(x, x).output)
        assert not matches(pattern, ops.Add(x, y).output) and not matches(pattern, ops.Add(y, x).output)

    def test_more_inputs(self, x: Value) -> None:
        pattern = wrap_type(ops.Tanh, optional(ops.Add, p := any_input(), constant(), when=consumers_count(1)))
        match = Matcher(pattern).match(ops.Tanh(ops.Add(x, 1.0)))
        assert match is not None and match[p] is x


class TestAnyOf:
    def test_alternatives(self, x: Value) -> None:
        relu, tanh = wrap_type(ops.ReLU), wrap_type(ops.Tanh)
        pattern = any_of(relu, tanh)
        match = Matcher(pattern).match(ops.Tanh(x))
        assert match is not None and relu not in match and tanh in match
        assert not matches(pattern, ops.Sigmoid(x).output)

    def test_the_rest_may_refuse_the_first(self, x: Value) -> None:
        y = ops.ReLU(x).output
        p = any_input()
        # Both alternatives match y alone; the other input allows the second only.
        pattern = wrap_type(ops.Add, p, any_of(wrap_type(ops.ReLU, p), wrap_type(ops.ReLU, any_input())))
        assert matches(pattern, ops.Add(parameter(x.graph, 2, 3), y).output)
        match = Matcher(pattern).match(ops.Add(x, y))
        assert match is not None and match[p] is x

    def test_a_predicate(self, x: Value) -> None:
        pattern = any_of(wrap_type(ops.ReLU), wrap_type(ops.Tanh), when=rank_equals(3))
        assert "wants rank 3" in why(pattern, ops.Tanh(x).output)

    def test_alternatives_inside_alternatives(self, x: Value) -> None:
        inner = any_of(wrap_type(ops.ReLU), wrap_type(ops.Tanh))
        pattern = any_of(wrap_type(ops.Abs, inner), wrap_type(ops.Sigmoid, inner))
        assert matches(pattern, ops.Sigmoid(ops.Tanh(x)).output)
        assert not matches(pattern, ops.Sigmoid(ops.Abs(x)).output)


class TestAnyOrder:
    def test_two_inputs(self, x: Value) -> None:
        gate = wrap_type(ops.Sigmoid, p := any_input())
        pattern = any_order(ops.Multiply, p, gate)
        for node in (ops.Multiply(x, ops.Sigmoid(x)), ops.Multiply(ops.Sigmoid(x), x)):
            match = Matcher(pattern).match(node)
            assert match is not None and match[p] is x and type(match.node(gate)) is ops.Sigmoid
        assert not matches(pattern, ops.Multiply(parameter(x.graph, 2, 3), ops.Sigmoid(x)).output)

    def test_three_inputs(self, x: Value) -> None:
        a, b, c = ops.ReLU(x).output, ops.Tanh(x).output, ops.Abs(x).output
        pattern = any_order(ops.Concat, wrap_type(ops.ReLU), wrap_type(ops.Tanh), wrap_type(ops.Abs))
        for order in ((a, b, c), (c, a, b), (b, c, a), (c, b, a)):
            assert matches(pattern, ops.Concat(*order, axis=0).output)
        assert not matches(pattern, ops.Concat(a, b, b, axis=0).output)
        assert not matches(pattern, ops.Concat(a, b, axis=0).output)

    def test_a_value_shared_with_another_branch(self, x: Value) -> None:
        # (x * c) + c, both with their inputs exchanged as well
        scaled = any_order(ops.Multiply, any_input(), c := constant())
        pattern = any_order(ops.Add, scaled, c)
        one = ops.Constant(2.0, graph=x.graph, dtype=x.dtype).output
        two = ops.Constant(2.0, graph=x.graph, dtype=x.dtype).output
        assert matches(pattern, ops.Add(ops.Multiply(one, x), one).output)
        assert matches(pattern, ops.Add(one, ops.Multiply(x, one)).output)
        assert not matches(pattern, ops.Add(one, ops.Multiply(x, two)).output)

    def test_two_constants_are_told_apart_by_the_rest(self, x: Value) -> None:
        c, d = (ops.Constant(2.0, graph=x.graph, dtype=x.dtype).output for _ in range(2))
        p = constant()
        pattern = wrap_type(ops.Subtract, any_order(ops.Add, any_input(), p), p)
        both = ops.Add(c, d).output
        assert matches(pattern, ops.Subtract(both, c).output) and matches(pattern, ops.Subtract(both, d).output)


class TestRepeated:
    def run_of(self, length: int, **limits: int | None) -> tuple[Pattern, Pattern]:
        source = any_input(name="source")
        return repeated(lambda previous: wrap_type(ops.Negative, previous), source, **limits), source  # type: ignore[arg-type]

    def test_the_longest_chain_in_the_order_of_the_data(self) -> None:
        graph, nodes = chain(4)
        pattern, source = self.run_of(4)
        match = Matcher(pattern).match(nodes[-1])
        assert match is not None and match.chain(pattern) == nodes and match[source] is graph.parameters[0].output
        assert match.nodes[0] is nodes[-1] and set(match.nodes) == set(nodes)

    def test_none_one_and_the_limits(self) -> None:
        graph, nodes = chain(3)
        x = graph.parameters[0]
        assert Matcher(self.run_of(1)[0]).match(x) is None
        none = Matcher(p := self.run_of(0, at_least=0)[0]).match(x)
        assert none is not None and none.chain(p) == []
        one = Matcher(p := self.run_of(1)[0]).match(nodes[0])
        assert one is not None and one.chain(p) == nodes[:1]
        two = Matcher(p := self.run_of(2, at_most=2)[0]).match(nodes[2])
        assert two is not None and two.chain(p) == nodes[1:]
        assert Matcher(self.run_of(4, at_least=4)[0]).match(nodes[2]) is None

    def test_five_thousand_steps(self) -> None:
        graph, nodes = chain(5000)
        pattern, source = self.run_of(5000)
        match = Matcher(wrap_type(ops.Abs, pattern), contained=False).match(ops.Abs(nodes[-1]))
        assert match is not None and match.chain(pattern) == nodes and match[source] is graph.parameters[0].output
        assert len(match.nodes) == 5001

    def test_shorter_where_the_rest_needs_it(self, x: Value) -> None:
        bottom = ops.Negative(x).output
        top = ops.Negative(ops.Negative(bottom)).output
        source = wrap_type(ops.Negative, any_input(), when=consumers_count(2))
        pattern = repeated(lambda p: wrap_type(ops.Negative, p), source)
        ops.Abs(bottom)
        match = Matcher(pattern).match(top.node)
        assert match is not None and match[source] is bottom and len(match.chain(pattern)) == 2

    def test_shorter_down_to_none(self, x: Value) -> None:
        y = ops.ReLU(ops.ReLU(x)).output
        p = any_input()
        pattern = wrap_type(ops.Add, p, repeated(lambda each: wrap_type(ops.ReLU, each), p, at_least=0))
        match = Matcher(pattern).match(ops.Add(y, y))
        assert match is not None and match[p] is y

    def test_steps_of_several_nodes(self, x: Value) -> None:
        value, every = x, []
        for number in range(3):
            scaled = ops.Multiply(value, float(number))
            every += [scaled, ops.Add(scaled, 1.0)]
            value = every[-1].output
        pattern = repeated(
            lambda p: wrap_type(ops.Add, wrap_type(ops.Multiply, p, any_input()), any_input()), any_input()
        )
        match = Matcher(pattern, contained=True).match(value.node)
        assert match is not None and match.chain(pattern) == every[1::2] and set(match.nodes) == set(every)

    def test_an_inner_node_of_a_step_that_leaks(self, x: Value) -> None:
        inner = ops.Multiply(x, 2.0).output
        last = ops.Add(ops.Multiply(ops.Add(inner, 1.0), 2.0), 1.0).output
        ops.Abs(inner)
        pattern = repeated(
            lambda p: wrap_type(ops.Add, wrap_type(ops.Multiply, p, any_input()), any_input()), any_input()
        )
        assert matches(pattern, last) and "outside the match" in why(pattern, last, contained=True)

    @pytest.mark.parametrize("chain_first", [False, True])
    def test_what_comes_from_outside_is_one_value_in_all_steps(self, x: Value, chain_first: bool) -> None:
        a, b = (ops.Constant(1.0, graph=x.graph, dtype=x.dtype).output for _ in range(2))
        c = constant(name="c")
        steps = repeated(lambda p: wrap_type(ops.Add, p, c), any_input(), at_least=2)
        inputs = (steps, c) if chain_first else (c, steps)
        pattern = wrap_type(ops.Multiply, *inputs)

        def product(first: Value, second: Value, last: Value) -> Value:
            value = ops.Add(ops.Add(x, first), second).output
            return ops.Multiply(*((value, last) if chain_first else (last, value))).output

        assert matches(pattern, product(a, a, a)) and not matches(pattern, product(a, b, a))
        assert not matches(pattern, product(b, a, a)) and not matches(pattern, product(a, a, b))

    def test_what_the_step_makes_may_differ(self, x: Value) -> None:
        pattern = repeated(lambda p: wrap_type(ops.Add, p, constant()), any_input(), at_least=3)
        assert matches(pattern, ops.Add(ops.Add(ops.Add(x, 1.0), 2.0), 3.0).output)

    def test_a_step_that_may_be_missing_ends_the_chain(self, x: Value) -> None:
        pattern = repeated(lambda p: optional(ops.ReLU, p), any_input(), at_least=0)
        match = Matcher(pattern).match(ops.ReLU(ops.ReLU(x)))
        assert match is not None and len(match.chain(pattern)) == 2

    def test_a_step_reads_the_one_before(self) -> None:
        with pytest.raises(InternalError, match="does not use its argument"):
            repeated(lambda _: wrap_type(ops.ReLU), any_input())

    def test_a_chain_of_chains(self, x: Value) -> None:
        value = x
        for _ in range(3):
            value = ops.Tanh(ops.ReLU(ops.ReLU(value))).output
        inner = lambda p: wrap_type(ops.Tanh, repeated(lambda q: wrap_type(ops.ReLU, q), p))  # noqa: E731
        pattern = repeated(inner, source := any_input())
        match = Matcher(pattern).match(value.node)
        assert match is not None and [type(node) for node in match.chain(pattern)] == [ops.Tanh] * 3
        assert match[source] is x and len(match.nodes) == 9


class TestMatch:
    def test_each_match_is_fresh(self, x: Value) -> None:
        pattern = wrap_type(ops.ReLU, p := any_input())
        matcher = Matcher(pattern)
        first_node, second_node = ops.ReLU(x), ops.ReLU(ops.Tanh(x))
        first = matcher.match(first_node)
        assert matcher.match(ops.Tanh(x)) is None
        second = matcher.match(second_node)
        assert first is not None and second is not None and first[p] is x
        assert type(second.node(p)) is ops.Tanh and matcher.match(first_node) is not first

    def test_a_pattern_of_several_matchers(self, x: Value) -> None:
        shared = wrap_type(ops.Sigmoid, p := any_input())
        product, total = Matcher(wrap_type(ops.Multiply, p, shared)), Matcher(wrap_type(ops.Add, p, shared))
        gate = ops.Sigmoid(x)
        a, b = product.match(ops.Multiply(x, gate)), total.match(ops.Add(x, gate))
        assert a is not None and b is not None and a[shared] is b[shared] is gate.output
        assert total.match(a.root) is None

    def test_contained(self, x: Value) -> None:
        pattern = wrap_type(ops.Tanh, wrap_type(ops.ReLU, any_input()))
        inner = ops.ReLU(x).output
        root = ops.Tanh(inner).output
        assert Matcher(pattern, contained=True).match(root.node) is not None
        ops.Abs(inner)
        assert Matcher(pattern).match(root.node) is not None
        assert why(pattern, root, contained=True) == "Tanh at ReLU#1: a node outside the match reads it"

    def test_contained_looks_at_every_output(self, graph: Graph) -> None:
        low, high = ops.Split(parameter(graph, 4), 0, num_splits=2).outputs
        root = ops.ReLU(low).output
        pattern = wrap_type(ops.ReLU, wrap_type(ops.Split).output(0))
        assert Matcher(pattern, contained=True).match(root.node) is not None
        ops.Abs(high)
        assert Matcher(pattern, contained=True).match(root.node) is None

    def test_contained_lets_constants_be_read(self, x: Value) -> None:
        one = ops.Constant(1.0, graph=x.graph, dtype=x.dtype)
        ops.Multiply(x, one)
        pattern = wrap_type(ops.Add, any_input(), constant())
        assert Matcher(pattern, contained=True).match(ops.Add(x, one)) is not None

    def test_nodes_name_each_once_the_root_first(self, x: Value) -> None:
        relu = ops.ReLU(x)
        root = ops.Multiply(relu, relu)
        match = Matcher(wrap_type(ops.Multiply, p := wrap_type(ops.ReLU, any_input()), p)).match(root)
        assert match is not None and match.nodes == [root, relu]

    def test_a_node_without_outputs_is_no_match(self, x: Value) -> None:
        assert Matcher(any_input()).match(ops.Result(x)) is None

    def test_the_deepest_refusal_is_the_one_kept(self, x: Value) -> None:
        near = wrap_type(ops.Abs, wrap_type(ops.Abs))
        far = wrap_type(ops.Abs, wrap_type(ops.ReLU, wrap_type(ops.Tanh, name="gate")))
        node = ops.Abs(ops.ReLU(ops.Sigmoid(x))).output
        for pattern in (any_of(near, far), any_of(far, near)):
            assert why(pattern, node).startswith("gate at Sigmoid#")

    def test_an_index_of_another_type(self, graph: Graph) -> None:
        n = ops.Parameter(graph=graph, dtype=i64, shape=()).output
        assert matches(wrap_type(ops.Add, any_input(), any_input()), ops.Add(n, 1).output)
