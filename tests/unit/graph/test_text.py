"""Graphs as text: round trips of random graphs, and the canonical form."""

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
from mo_loop.errors import ConversionErrors, TypeError_, UnsupportedError
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.dimension import Dim, named
from mo_loop.graph.tensor import ArrayTensor
from mo_loop.graph.types import ALL, TensorType, f32, i64
from mo_loop.graph.verifier import invariants
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.ops.port_map import Branched, Concatenated, Final, Invariant, Merged, Selected, Sliced
from mo_loop.text import parse, to_text
from mo_loop.text.literals import SeededTensor
from mo_loop.text.printer import statement
from mo_loop.text.spelling import show_dim

# -- graphs that hypothesis draws

TYPE = TensorType(f32, (2, named("N")))
texts = st.text(max_size=6).filter(lambda text: "\x00" not in text)
names = st.one_of(st.just(""), st.sampled_from(["a", "b", "layer_1", "x:0"]), texts)
FACTORS = st.integers(-3, 3)
UNARY = (ops.Abs, ops.Negative, ops.Tanh, ops.Identity, ops.ReLU)
BINARY = (ops.Add, ops.Multiply, ops.Maximum)


class Draft:
    """Adds random nodes to a graph. All values have one type, so that any can be an input of any node."""

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
            np.int64(3), np.array(True), self.value(), self.value(), graph=self.graph, body=body, iteration=iteration,
            condition=go, input_map=(Merged(state, following), Invariant(captured)),
            output_map=(Concatenated(joined, axis=0), Final(following)),
        )
        self.values.append(node.outputs[1])

    def iterator(self) -> None:
        body, (state, piece), inner = self.body(2)
        backwards = {"start": -1, "end": 0, "stride": -1} if self.draw(st.booleans()) else {}
        following = Result(ops.Add(inner.value(), piece.output))
        source = ops.Concat(self.value(), self.value(), self.value(), axis=0)
        node = ops.TensorIterator(
            self.value(), source, body=body, output_map=(Final(following), Final(following)),
            input_map=(Merged(state, following), Sliced(piece, axis=0, **backwards, part_size=2)),
        )
        self.values.append(node.outputs[1])

    def choice(self) -> None:
        then_body, (a,), then = self.body(1)
        else_body, (b,), otherwise = self.body(1)
        condition = Constant(self.draw(st.booleans()), graph=self.graph)
        shared = self.draw(st.booleans())
        node = ops.If(
            condition, self.value(), *([] if shared else [self.value()]), then_body=then_body, else_body=else_body,
            input_map=(Branched(a, b),) if shared else (Branched(a, None), Branched(None, b)),
            output_map=(Selected(Result(then.value()), Result(otherwise.value())),),
        )
        self.values.append(node.output)


@st.composite
def graphs(draw: Any) -> Graph:
    graph = Graph(draw(names))
    inputs = [Parameter(graph=graph, type=TYPE, name=draw(names)).output for _ in range(draw(st.integers(1, 3)))]
    draft = Draft(draw, graph, inputs, 0)
    draft.fill()
    for _ in range(draw(st.integers(0, 3))):
        Result(draft.value(), name=draw(names), names=tuple(draw(st.lists(names.filter(bool), max_size=2))))
    if draw(st.booleans()):  # a younger node is the input of an older one
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
    @settings(max_examples=80, deadline=None)
    @given(graphs())
    def test_of_anything(self, graph: Graph) -> None:
        text, canonical = to_text(graph), to_text(graph, names=False)
        again = parse(text)
        assert to_text(again) == text and to_text(again, names=False) == canonical
        assert to_text(parse(canonical), names=False) == canonical and not invariants(again)

    @settings(max_examples=60, deadline=None)
    @given(graphs(), st.integers(0, 99))
    def test_the_canonical_form_does_not_know_the_order_of_making(self, graph: Graph, seed: int) -> None:
        graph.sweep()
        assert to_text(shuffled(graph, seed), names=False) == to_text(graph, names=False)

    @settings(deadline=None)
    @given(
        st.lists(st.tuples(st.sampled_from(["K", "N", "an odd name", "a*b", "7", "floor"]), FACTORS), max_size=3),
        st.integers(-9, 9), st.integers(0, 2),
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
        assert "seed(" in text and to_text(again) == text and again.of(Constant)[0].array.shape == (100,)
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


@given(graphs())
@settings(max_examples=50, deadline=None)
def test_a_statement_alone_is_that_of_the_whole_text(graph: Graph) -> None:
    """But for constants that several nodes read, which it writes instead of their labels."""
    nodes = [node for scope in graph.scopes() for node in scope.ordered()]
    numbers = {value: str(number) for number, value in enumerate(value for node in nodes for value in node.outputs)}
    lines = {line.strip() for line in to_text(graph, label=numbers.__getitem__).splitlines()}
    for node in nodes:
        inputs = [value for value in node.inputs if value is not None]
        is_shared = any(isinstance(each.node, Constant) and each.only_use is None for each in inputs)
        if not node.bodies and not is_shared and not isinstance(node, Constant | Result):
            assert statement(node, numbers.__getitem__) in lines


def test_onnx_is_not_loaded() -> None:
    code = "import sys, mo_loop.text, mo_loop.text.dot; sys.exit('onnx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0
