"""Graphs as text: round trips of whatever can be built, canonical form, and errors that name the line."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mo_loop import ops
from mo_loop.check import invariants
from mo_loop.errors import ConversionErrors, InputError, MoLoopError, TypeError_, UnsupportedError
from mo_loop.graph import Graph, Node, Value
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.ops.control import Branched, Concatenated, Final, Invariant, Merged, Selected, Sliced
from mo_loop.shape import Dim, fresh, named
from mo_loop.tensor import ArrayTensor
from mo_loop.text import parse, to_text
from mo_loop.text.literals import SeededTensor
from mo_loop.text.spelling import show_dim
from mo_loop.types import ALL, TensorType, boolean, f32, i64

# -- graphs that hypothesis draws

TYPE = TensorType(f32, (2, named("N")))
texts = st.text(max_size=6).filter(lambda text: "\x00" not in text)
names = st.one_of(st.just(""), st.sampled_from(["a", "b", "layer_1", "x:0"]), texts)
FACTORS = st.integers(-3, 3)
UNARY = (ops.Abs, ops.Negative, ops.Tanh, ops.Identity, ops.ReLU)
BINARY = (ops.Add, ops.Multiply, ops.Maximum)


class Draft:
    """Adds random nodes to a graph. Every value is of one type, so that any may feed any."""

    def __init__(self, draw: Any, graph: Graph, values: list[Value], depth: int) -> None:
        self.draw, self.graph, self.values, self.depth = draw, graph, values, depth

    def value(self) -> Value:
        found: Value = self.draw(st.sampled_from(self.values))
        return found

    def fill(self) -> None:
        for _ in range(self.draw(st.integers(0, 5))):
            kinds = [self.unary, self.binary, self.literal, self.constant, self.split]
            kinds += [self.loop, self.iterator, self.choice] if self.depth < 2 else []
            self.draw(st.sampled_from(kinds))()
            self.values[-1].node.name = self.draw(names)
            self.values[-1].names = tuple(self.draw(st.lists(names.filter(bool), max_size=2)))

    def unary(self) -> None:
        self.values.append(self.draw(st.sampled_from(UNARY))(self.value()).output)

    def binary(self) -> None:
        self.values.append(self.draw(st.sampled_from(BINARY))(self.value(), self.value()).output)

    def literal(self) -> None:
        number = self.draw(st.floats(width=32, allow_nan=False))
        self.values.append(ops.Add(self.value(), number).output)

    def constant(self) -> None:
        shared = Constant(np.float32(self.draw(st.integers(0, 9))), graph=self.graph).output
        self.values.append(ops.Multiply(shared, self.value()).output)
        self.values.append(ops.Add(self.value(), shared).output)

    def split(self) -> None:
        first, second = ops.Split(self.value(), 0, num_splits=2).outputs
        self.values.append(ops.Concat(second, first, axis=0).output)

    def body(self, count: int) -> tuple[Graph, list[Parameter], Draft]:
        graph = Graph(self.draw(names))
        parameters = [Parameter(graph=graph, type=TYPE, name=self.draw(names)) for _ in range(count)]
        inner = Draft(self.draw, graph, [each.output for each in parameters], self.depth + 1)
        inner.fill()
        return graph, parameters, inner

    def loop(self) -> None:
        body, (state, captured), inner = self.body(2)
        iteration = Parameter(graph=body, dtype=i64, shape=()) if self.draw(st.booleans()) else None
        go = Result(Constant(True, graph=body))
        following = Result(inner.value())
        joined = Result(ops.Unsqueeze(inner.value(), 0))
        node = ops.Loop(
            3, np.array(True), self.value(), self.value(), graph=self.graph, body=body, iteration=iteration,
            condition=go, input_map=(Merged(state, following), Invariant(captured)),
            output_map=(Concatenated(joined, axis=0), Final(following)),
        )  # fmt: skip
        self.values.append(node.outputs[1])

    def iterator(self) -> None:
        body, (state, piece), inner = self.body(2)
        backwards = {"start": -1, "end": 0, "stride": -1} if self.draw(st.booleans()) else {}
        following = Result(ops.Add(inner.value(), piece.output))
        source = ops.Concat(self.value(), self.value(), self.value(), axis=0)
        node = ops.TensorIterator(
            self.value(), source, body=body, output_map=(Final(following), Final(following)),
            input_map=(Merged(state, following), Sliced(piece, axis=0, **backwards, part_size=2)),
        )  # fmt: skip
        self.values.append(node.outputs[1])

    def choice(self) -> None:
        then_body, (a, _), then = self.body(2)
        else_body, (b, _), otherwise = self.body(2)
        for body, unused in ((then_body, 1), (else_body, 1)):
            if not body.parameters[unused].output.is_used:
                body.remove(body.parameters[unused])
        extra = [each.parameters[1] if len(each.parameters) > 1 else None for each in (then_body, else_body)]
        results = [
            Result(each.value() if each.value().node in each.graph else each.values[0]) for each in (then, otherwise)
        ]
        condition = Constant(self.draw(st.booleans()), graph=self.graph)
        node = ops.If(
            condition, self.value(), self.value(), then_body=then_body, else_body=else_body,
            input_map=(Branched(a, b), Branched(*extra)), output_map=(Selected(*results),),
        )  # fmt: skip
        self.values.append(node.output)


@st.composite
def graphs(draw: Any) -> Graph:
    graph = Graph(draw(names))
    inputs = [Parameter(graph=graph, type=TYPE, name=draw(names)).output for _ in range(draw(st.integers(1, 3)))]
    draft = Draft(draw, graph, inputs, 0)
    draft.fill()
    for _ in range(draw(st.integers(0, 3))):
        Result(draft.value(), name=draw(names), names=tuple(draw(st.lists(names.filter(bool), max_size=2))))
    if draw(st.booleans()):  # a younger node feeds an older one
        older = ops.Abs(inputs[0])
        Result(older)
        graph.set_input(older, 0, ops.Exp(inputs[-1]).output)
    return graph


def shuffled(graph: Graph, seed: int) -> Graph:
    """A copy whose nodes were made in another order."""
    source = random.Random(seed)
    waiting = {node: {value.node for value in node.inputs if value is not None} for node in graph.ordered()}
    order: list[Node] = []
    while waiting:
        node = source.choice([each for each, needs in waiting.items() if needs.isdisjoint(waiting)])
        del waiting[node]
        order.append(node)
    copy = graph.clone()
    twins = dict(zip(graph.ordered(), copy.ordered(), strict=True))
    copy._order = [twins[node] for node in order]
    return copy.clone()


class TestRoundTrip:
    @settings(max_examples=150, deadline=None)
    @given(graphs())
    def test_of_anything(self, graph: Graph) -> None:
        text, canonical = to_text(graph), to_text(graph, names=False)
        again = parse(text)
        assert to_text(again) == text
        assert to_text(again, names=False) == canonical
        assert to_text(parse(canonical), names=False) == canonical
        assert not invariants(again)

    @settings(max_examples=60, deadline=None)
    @given(graphs(), st.integers(0, 99))
    def test_the_canonical_form_does_not_know_the_order_of_making(self, graph: Graph, seed: int) -> None:
        graph.sweep()
        other = shuffled(graph, seed)
        assert to_text(other, names=False) == to_text(graph, names=False)

    @settings(deadline=None)
    @given(
        st.lists(st.tuples(st.sampled_from(["K", "N", "an odd name", "a*b", "7", "floor"]), FACTORS), max_size=3),
        st.integers(-9, 9),
        st.integers(0, 2),
    )
    def test_of_dimensions(self, terms: list[tuple[str, int]], const: int, lo: int) -> None:
        dim: Any = const
        for name, factor in terms:
            dim = dim + named(name, lo) * factor
        if isinstance(dim, Dim):
            for each in (dim, dim * named("N"), dim // 2, dim * 2 // 3 + named("K")):
                type_ = TensorType(f32, (each,))
                (parameter,) = parse(f"%x = Parameter : f32[{show_dim(each)}]").parameters
                assert parameter.output.type == type_

    @pytest.mark.parametrize("dtype", ALL, ids=repr)
    @pytest.mark.parametrize("shape", [(), (3,), (2, 0, 1), (0,), (2, 2), (4, 5), (40,)], ids=str)
    def test_of_constants(self, dtype: Any, shape: tuple[int, ...]) -> None:
        graph = Graph()
        filler = SeededTensor("7", dtype, shape)
        Result(Constant(ArrayTensor(filler.array(), dtype), graph=graph))
        text = to_text(graph)
        again = parse(text)
        assert to_text(again) == text
        (constant,) = again.of(Constant)
        assert constant.output.type == graph.of(Constant)[0].output.type
        if constant.tensor.size <= 16:
            assert constant.array.tobytes() == filler.array().tobytes() or dtype.name == "string"
            assert constant.array.tolist() == filler.array().tolist() or dtype.name == "f8e8m0"

    @pytest.mark.parametrize("dtype", [each for each in ALL if each.bits in (8, 16) and each.is_float], ids=repr)
    def test_of_every_narrow_float(self, dtype: Any) -> None:
        codes = np.arange(1 << dtype.bits, dtype=np.uint8 if dtype.bits == 8 else np.uint16)
        array = codes.view(dtype.numpy)
        array = array[~np.isnan(array.astype(np.float32))]
        graph = Graph()
        Constant(ArrayTensor(array, dtype), graph=graph)
        (constant,) = parse(to_text(graph, weights_limit=1 << 16)).of(Constant)
        assert constant.array.tobytes() == array.tobytes()

    @given(st.lists(st.floats(width=32, allow_nan=False), max_size=16), st.lists(st.floats(), max_size=16))
    def test_of_floats(self, singles: list[float], doubles: list[float]) -> None:
        graph = Graph()
        Constant(np.array(singles, np.float32), graph=graph)
        Constant(np.array(doubles, np.float64), graph=graph)
        again = parse(to_text(graph)).of(Constant)
        assert again[0].array.tobytes() == np.array(singles, np.float32).tobytes()
        np.testing.assert_array_equal(again[1].array, np.array(doubles, np.float64))

    @given(st.lists(st.one_of(st.text(), st.binary()), min_size=1, max_size=4))
    def test_of_strings(self, items: list[str | bytes]) -> None:
        graph = Graph()
        array = np.empty(len(items), object)
        array[:] = [item.encode("utf-8", "replace").decode() if isinstance(item, str) else item for item in items]
        constant = Constant(ArrayTensor(array), graph=graph)
        (again,) = parse(to_text(graph)).of(Constant)
        assert b"".join(again.tensor.blocks()) == b"".join(constant.tensor.blocks())

    def test_filler_prints_as_the_seed_it_was_made_from(self) -> None:
        graph = Graph()
        Constant(np.arange(100, dtype=np.float32), graph=graph)
        text = to_text(graph)
        again = parse(text)
        assert "seed(" in text and to_text(again) == text
        assert again.of(Constant)[0].array.shape == (100,)
        np.testing.assert_array_equal(parse(text).of(Constant)[0].array, again.of(Constant)[0].array)

    def test_one_value_all_over_survives(self) -> None:
        (constant,) = parse("%c = Constant 2.5 : f32[100,3]").of(Constant)
        assert constant.array.shape == (100, 3) and (constant.array == 2.5).all()
        assert "Constant 2.5 : f32[100,3]" in to_text(constant.graph)

    def test_errors_of_failed_nodes_survive(self) -> None:
        graph = Graph()
        x = Parameter(graph=graph, dtype=f32, shape=()).output
        one = UnsupportedError("no \"such\" thing\n", where="a/b", hint="try", code="ML302")
        many = ConversionErrors([one, TypeError_("odd")])
        ops.Failed(x, graph=graph, error=one, count=2)
        ops.Failed(x, None, graph=graph, error=many, count=1)
        first, second = parse(to_text(graph)).of(ops.Failed)
        assert (str(first.error), first.count, type(first.error)) == (str(one), 2, UnsupportedError)
        assert str(second.error) == str(many)
        assert [type(each) for each in second.error.errors] == [UnsupportedError, TypeError_]


class TestHandWriting:
    def test_the_shortest_form(self) -> None:
        graph = parse("%x = Parameter : f32[2] %y = Add(%x, 1) Result(%y)")
        assert [type(node).__name__ for node in graph] == ["Parameter", "Constant", "Add", "Result"]
        assert graph.of(Constant)[0].output.dtype is f32

    @pytest.mark.parametrize(
        ("statement", "type_"),
        [
            ("%y = Add(%x, 1)", "f32[]"),
            ("%y = Reshape(%x, [1, 2])", "i64[2]"),
            ("%y = Select(true, %x, 0.5)", "boolean[] f32[]"),
            ("%y = Gather(%x, i32 [0], 0)", "i32[1] i64[]"),
            ("%y = Add(%i, -3)", "i32[]"),
            ("%y = Equal(%i, [1, 2, 3])", "i32[3]"),
            ("%y = Reshape(%x, [])", "i64[0]"),
            ("%y = Power(%d, 2)", "f64[]"),
        ],
    )
    def test_types_of_literals(self, statement: str, type_: str) -> None:
        dims = "1" if "[])" in statement else "2"
        graph = parse(f"%x = Parameter : f32[{dims}] %i = Parameter : i32[3] %d = Parameter : f64[] {statement}")
        assert " ".join(str(each.output.type) for each in graph.of(Constant)) == type_

    def test_in_control_flow_a_literal_is_i64_or_f32(self) -> None:
        graph = parse("""
            %x = Parameter : f16[2]
            %y = Loop(5, true, %x, 1, 2.0) {
              condition: @go, input_map: [Merged(%a, @a), Merged(%b, @b), Merged(%c, @c)], output_map: [Final(@a)]
            }
              body {
                %a = Parameter
                %b = Parameter
                %c = Parameter
                Result(true) @go
                Result(%a)
                Result(%b)
                Result(%c)
              }
        """)
        assert [str(each.output.type) for each in graph.of(Constant)] == ["i64[]", "boolean[]", "i64[]", "f32[]"]

    def test_parameters_of_a_body_are_typed_by_what_feeds_them(self) -> None:
        graph = parse("""
            %x = Parameter : f32[6,N]
            %y = TensorIterator(%x, %x) {
              input_map: [Sliced(%s, axis: 0, stride: 2, part_size: 2), Invariant(%k)], output_map: [Final(@s)]
            }
              body {
                %s = Parameter
                %k = Parameter
                Result(%s)
              }
            %z = Scan(%x) {input_map: [Sliced(%e, axis: 1)], output_map: [Concatenated(@e, axis: 0)]}
              body {
                %e = Parameter
                Result(%e)
              }
        """)
        bodies = [node.bodies[0] for node in graph.holders()]
        shown = [[str(each.output.type) for each in body.parameters] for body in bodies]
        assert shown == [["f32[2,N]", "f32[6,N]"], ["f32[6]"]]

    def test_a_growing_state_is_widened(self) -> None:
        graph = parse("""
            %y = Loop(5, true, f32 [0.0]) {condition: @go, input_map: [Merged(%a, @n)], output_map: [Final(@n)]}
              body {
                %a = Parameter
                %n = Concat(%a, %a) {axis: 0}
                Result(true) @go
                Result(%n)
              }
        """)
        assert [str(value.type) for value in graph.of(ops.Loop)[0].outputs] == ["f32[?]"]

    def test_attributes_with_their_default_are_left_out(self) -> None:
        graph = parse("""
            %x = Parameter : f32[2]
            %a = ReduceSum(%x, 0) {keep_dims: false}
            %b = ReduceSum(%x, 0) {keep_dims: true}
            %c = Round(%x) {mode: half_away_from_zero}
            %d = Convert(%x) {destination_type: i64}
        """)
        shown = [line.strip() for line in to_text(graph).splitlines()[2:-1]]
        assert shown == [
            "%1 = ReduceSum(%0, 0) : f32[]",
            "%2 = ReduceSum(%0, 0) {keep_dims: true} : f32[1]",
            "%3 = Round(%0) {mode: half_away_from_zero} : f32[2]",
            "%4 = Convert(%0) {destination_type: i64} : i64[2]",
        ]

    def test_values_that_are_known_are_known_again(self) -> None:
        graph = parse("""
            %x = Parameter : f32[2,N,3]
            %s = ShapeOf(%x)
            %n = Gather(%s, [1], 0)
            %p = Concat(%n, [6]) {axis: 0}
            %y = Reshape(%x, %p) : f32[N,6]
        """)
        assert graph.of(ops.Reshape)[0].output.shape == (named("N"), 6)

    def test_fresh_dimensions_compare_by_their_bounds(self) -> None:
        parse("%x = Parameter : f32[?,1..4] %y = Abs(%x) : f32[?,1..4]")
        assert parse("%x = Parameter : f32[?]").parameters[0].output.shape != (fresh(),)


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "line", "says"),
        [
            ("%x = Parameter", 1, "needs a type"),
            ("%x = Parameter : f33[2]", 1, "'f33' is no element type"),
            ("%x = Parameter : f32[2\n%y = Abs(%x)", 2, "expected ','"),
            ("\n\n%y = Abs(%x)", 3, "%x is not defined"),
            ("%x = Parameter : f32[2]\n%y = Abz(%x)", 2, "no operation Abz"),
            ("%x = Parameter : f32[2]\n%y = Unary(%x)", 2, "no operation Unary"),
            ("%x = Parameter : f32[2]\n%y = Abs(%x) : f32[3]", 2, "%y is f32[2] by inference, the text says f32[3]"),
            ("%x = Parameter : f32[2]\n# note\n%y = Add(%x, [1, 2, 3])", 3, "cannot be broadcast"),
            ("%x = Parameter : f32[2]\n%y = Add(%x, true)", 2, "element types f32, boolean differ"),
            ("%x = Parameter : i64[2]\n%y = Add(%x, 1.5)", 2, "differ"),
            ("%x = Parameter : u8[2]\n%y = Add(%x, 300)", 2, "300 is not u8"),
            ("%x = Parameter : f32[2]\n%y = Abs(%x) {speed: 3}", 2, "Abs has no attribute speed"),
            ("%x = Parameter : f32[2]\n%y = Split(%x, 0) {num_splits: 2}", 2, "1 outputs for a Split of 2"),
            ("%x = Parameter : f32[2]\n%y = Split(%x, 0)", 2, "needs the attribute num_splits"),
            ("%x = Parameter : f32[2]\n%x = Abs(%x)", 2, "%x is defined twice"),
            ("%x = Parameter : f32[2]\n%y = Abs(%x,\n%x)", 2, "wants x"),
            ("%c = Constant [[1, 2], [3]]", 1, "differ in length"),
            ("%c = Constant [1, true]", 1, "a literal of bool and int"),
            ("%c = Constant [1, 2, 3] : f32[2]", 1, "shape [3] for a constant of f32[2]"),
            ("%c = Constant 1 : f32[N]", 1, "cannot be of type"),
            ("%c = Constant seed(3)", 1, "a seed needs a type"),
            ("%c = Constant 1.5 : i64[]", 1, "a literal of float is not i64"),
            ("%c = Constant i32 1 : i64[]", 1, "the literal is of i32"),
            ("graph {\n%x = Parameter : f32[2]", 2, "expected '}'"),
            ("%x = Parameter : f32[2] }", 1, "expected a statement"),
            ("Result()", 1, "a Result has one input"),
            ("%x = Parameter : seq(f32[2]", 1, "expected ')'"),
        ],
    )  # fmt: skip
    def test_the_line_is_named(self, text: str, line: int, says: str) -> None:
        with pytest.raises(InputError) as caught:
            parse(text)
        assert caught.value.message.startswith(f"line {line}: ") and says in caught.value.message

    LOOP = """%x = Parameter : f32[2]
%y = Loop(3, true, %x) {{condition: {condition}, input_map: [{entry}], output_map: [Final(@n)]}}
  body {{
    %s = Parameter
    %n = Add(%s, {operand})
    Result(true) @go
    Result(%n)
  }}
"""

    @pytest.mark.parametrize(
        ("changes", "line", "says"),
        [
            ({"operand": "%x"}, 5, "%x is not defined"),
            ({"condition": "@stop"}, 2, "@stop is not defined in the body"),
            ({"entry": "Merged(%s, @t)"}, 2, "@t is not defined in the body"),
            ({"entry": "Mergd(%s, @n)"}, 2, "'Mergd' is no entry"),
            ({"entry": "Merged(%s, @n, 3)"}, 2, "expected '_'"),
            ({"entry": "Merged(%s, @n, axis: 3)"}, 2, "Merged has no 'axis'"),
            ({"entry": "Sliced(%s)"}, 2, "Sliced takes parameter, axis"),
            ({"entry": ""}, 4, "a Parameter needs a type where no port map feeds it"),
            ({"entry": "Merged(%s, @n), Invariant(%s)"}, 2, "1 inputs for a port map of 2"),
        ],
    )  # fmt: skip
    def test_in_port_maps(self, changes: dict[str, str], line: int, says: str) -> None:
        good = {"condition": "@go", "entry": "Merged(%s, @n)", "operand": "1"}
        parse(self.LOOP.format(**good))
        with pytest.raises(InputError) as caught:
            parse(self.LOOP.format(**{**good, **changes}))
        assert says in caught.value.message
        assert caught.value.message.startswith(f"line {line}: ")

    def test_a_code_and_a_hint_are_kept(self) -> None:
        with pytest.raises(MoLoopError) as caught:
            parse("%x = Parameter : f32[2]\n%y = Add(%x, [1, 2, 3])")
        assert caught.value.code == "ML232"
        with pytest.raises(InputError) as caught:
            parse("%x = Parameter : f32[2]\n%y = Reshap(%x, [2])")
        assert "Reshape" in caught.value.hint and caught.value.code == "ML209"

    def test_types_in_a_body_are_held_against_the_settled_ones(self) -> None:
        text = self.LOOP.format(condition="@go", entry="Merged(%s, @n)", operand="1")
        parse(text.replace("%n = Add(%s, 1)", "%n = Add(%s, 1) : f32[2]"))
        with pytest.raises(InputError, match="line 5: %n is f32"):
            parse(text.replace("%n = Add(%s, 1)", "%n = Add(%s, 1) : f32[?]"))


def test_onnx_is_not_loaded() -> None:
    code = "import sys, mo_loop.text, mo_loop.dot; sys.exit('onnx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


def test_booleans_are_not_numbers() -> None:
    graph = parse("%c = Constant true Result(%c)")
    assert graph.of(Constant)[0].output.dtype is boolean
