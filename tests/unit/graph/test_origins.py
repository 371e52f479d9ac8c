"""Nodes and values keep their origin, an ONNX node or tensor, in all passes."""

from typing import Any

import pytest

from mo_loop import convert_model, ops
from mo_loop.frontend.model import load
from mo_loop.frontend.translate import translate
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.renaming import rename_tensors
from mo_loop.graph.types import f32
from mo_loop.look.conversion_record import Record, mapping
from mo_loop.origin import Origin, current, made_for, union
from mo_loop.transforms import FunctionPass, Manager, MatcherPass, any_input, wrap_type
from mo_loop.transforms.replace import copy_runtime_info, insert_after, replace_node
from tests.cases import read_cases
from tests.harness import folded, parsed, raised

LOOP = """
main (float[3] x, int64 n) => (float[3] y) {
  [loop] y = Loop (n, "", x) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
    d = Identity (c) BODY }> }"""

TWO_BRANCHES = """
main (float[3] x, bool f) => (float[3] y) {
  [choice] y = If (f) <then_branch = sub () => (float[3] p) { [n] q = Neg (x) [m] p = Abs (q) },
    else_branch = sub () => (float[3] p) { [n] q = Exp (x) [m] p = Sqrt (q) }> }"""


def translated(text: str, **domains: int) -> Graph:
    return translate(load(parsed(text, **domains)))


def converted(text: str, **options: Any) -> Graph:
    return convert_model(parsed(text), **folded(**options)).graph


def only(graph: Graph, kind: type[Node]) -> Node:
    found = [node for scope in graph.scopes() for node in scope.of(kind)]
    assert len(found) == 1, found
    return found[0]


def rows(text: str, **options: Any) -> dict[tuple[str, str], dict[str, Any]]:
    record = Record(tensors=True)
    model = convert_model(parsed(text), observers=[record], **options)
    record.graph = model.graph
    return {(row["scope"], row["tensor"]): row for row in mapping(record)["tensors"]}


# -- the front end


def test_equal_names_in_two_bodies() -> None:
    """Even if the bodies have the same name: the attributes that hold them distinguish them."""
    graph = converted(TWO_BRANCHES)
    assert only(graph, ops.Negative).origin == Origin(("choice", "then_branch"), "n", "Neg")
    assert only(graph, ops.Exp).origin == Origin(("choice", "else_branch"), "n", "Exp")
    found = rows(TWO_BRANCHES)
    assert found["choice/then_branch", "q"]["kind"] == "Neg" and found["choice/else_branch", "q"]["kind"] == "Exp"
    assert {found[f"choice/{branch}", "q"]["became"] for branch in ("then_branch", "else_branch")} == {"kept"}


def test_renaming_in_one_of_two_bodies() -> None:
    graph = converted(TWO_BRANCHES)
    rename_tensors(graph, {"choice/else_branch/q": "other"})
    assert only(graph, ops.Exp).output.names == ("other",) and only(graph, ops.Negative).output.names == ("q",)


@pytest.mark.keeps_loops
def test_an_inner_name_that_hides_an_outer_one() -> None:
    text = LOOP.replace("BODY", "n = Neg (s) t = Exp (n)")
    with pytest.warns(match="hides an outer value"):
        graph = converted(text)
    tensors = {each for value in only(graph, ops.Negative).outputs for each in value.origins}
    assert tensors == {Origin(("loop", "step"), "n", "Neg", "n")}
    with pytest.warns(match="hides an outer value"):
        found = rows(text)
    assert found["", "n"]["where"] == "" and found["", "n"]["kind"] == "input"
    assert found["loop/step", "n"]["kind"] == "Neg" and found["loop/step", "n"]["where"] != ""


def test_captures_have_the_origin_of_what_they_capture() -> None:
    graph = translated(LOOP.replace("BODY", "t = Add (s, x)"))
    captured = next(each for each in only(graph, ops.Loop).bodies[0].parameters if each.name == "x")
    assert captured.origins == captured.output.origins == (Origin(output="x"),)


def test_inlined_branches() -> None:
    graph = converted(TWO_BRANCHES, freeze={"f": True})
    negative = only(graph, ops.Negative)
    assert negative.graph is graph and negative.origin == Origin(("choice", "then_branch"), "n", "Neg")
    rename_tensors(graph, {"choice/then_branch/q": "inner"})
    assert negative.output.names == ("inner",)


# -- passes


class SwishOfSigmoid(MatcherPass):
    """x * Sigmoid(x)  ->  Swish(x)"""

    x = any_input()
    pattern = wrap_type(ops.Multiply, x, wrap_type(ops.Sigmoid, x))

    def matched(self, match: Any) -> bool:
        return self.replace(match, ops.Swish(match[self.x], 1.0))


def test_unrolled_loops() -> None:
    text = LOOP.replace("BODY", "[neg] t = Exp (s)")
    graph = converted(text, freeze={"n": 3}, unroll=3)
    assert [node.origins for node in graph.of(ops.Exp)] == [(Origin(("loop", "step"), "neg", "Exp"),)] * 3
    assert not graph.of(ops.Loop)
    assert rows(text, freeze={"n": 3}, unroll=3)["loop/step", "t"]["became"] == "removed"  # no port has it alone


class InTheBody(FunctionPass):
    """Negative(x)  ->  Multiply(x, -1)"""

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, ops.Negative, self._rewrite)

    def _rewrite(self, node: ops.Negative) -> bool:
        assert node.inputs[0] is not None
        replace_node(node, ops.Multiply(node.inputs[0], ops.Constant(-1.0, graph=node.graph, dtype=f32)))
        return self.accept(node)


def test_what_a_pass_makes_of_a_candidate() -> None:
    graph = translated(LOOP.replace("BODY", "[neg] t = Neg (s)"))
    Manager([InTheBody()]).run(graph)
    multiply = only(graph, ops.Multiply)
    origins = (Origin(("loop", "step"), "neg", "Neg"),)
    assert multiply.origins == origins
    assert multiply.inputs[1] is not None and multiply.inputs[1].node.origins == origins
    assert multiply.output.origins == (Origin(("loop", "step"), "neg", "Neg", "t"),)


def test_an_error_leaves_no_current_origin() -> None:
    class Fails(InTheBody):
        def _rewrite(self, node: ops.Negative) -> bool:
            raise ValueError("no")

    graph = translated(LOOP.replace("BODY", "[neg] t = Neg (s)"))
    caught = raised(Exception, Manager([Fails()]).run, graph, match="no")
    assert caught.origin == Origin(("loop", "step"), "neg", "Neg")  # type: ignore[attr-defined]
    assert current.get() == ()


# -- helpers of passes


@pytest.fixture
def chain() -> tuple[Graph, Node, Node]:
    graph = translated("main (float[3] x) => (float[3] y) { [a] p = Exp (x) [b] y = Abs (p) }")
    return graph, only(graph, ops.Exp), only(graph, ops.Abs)


def test_replace_node_outside_of_a_pass(chain: tuple[Graph, Node, Node]) -> None:
    graph, exp, _ = chain
    constant = ops.Constant([1.0, 2.0, 3.0], graph=graph, dtype=f32)
    assert constant.origins == ()
    replace_node(exp, constant)
    assert constant.origins == (Origin((), "a", "Exp"),)
    assert constant.output.origins == ()  # as with its names: a constant does not take the origins of what it replaces


def test_insert_after(chain: tuple[Graph, Node, Node]) -> None:
    _, exp, _ = chain
    relu = insert_after(exp.output, ops.ReLU)
    assert relu.origins == exp.origins  # those of its input: there is no current origin
    assert relu.output.origins == (Origin((), "a", "Exp", "p"),) and exp.output.origins == ()


def test_copy_runtime_info(chain: tuple[Graph, Node, Node]) -> None:
    _, exp, absolute = chain
    copy_runtime_info([exp, absolute], absolute)
    assert absolute.origins == (Origin((), "b", "Abs"), Origin((), "a", "Exp"))


def test_clone_and_inline() -> None:
    graph = translated(LOOP.replace("BODY", "[neg] t = Neg (s)"))
    loop, clone = only(graph, ops.Loop), graph.clone()
    twin = only(clone, ops.Loop)
    assert twin.origins == loop.origins and twin.outputs[0].origins == loop.outputs[0].origins
    assert twin.bodies[0].scope == loop.bodies[0].scope == ("loop", "step")
    assert only(clone, ops.Negative).origins == only(graph, ops.Negative).origins
    bindings: list[Value] = [
        ops.Constant(0, graph=graph).output, ops.Constant(True, graph=graph).output, graph.parameters[0].output,
    ]
    body = loop.bodies[0]
    graph.inline(body, bindings[-len(body.parameters) :])
    assert [node.origin for node in graph.of(ops.Negative)] == [Origin(("loop", "step"), "neg", "Neg")]


def test_an_edge_of_a_graph_without_origins() -> None:
    """A graph made by hand has none; its nodes then have their own."""
    graph = Graph("main")
    x = ops.Parameter(dtype=f32, shape=(3,), graph=graph, name="x").output
    negative = ops.Negative(x, name="n")
    assert negative.origins == () and negative.origin == Origin((), "n", "Negative")
    with made_for((Origin((), "a", "Abs"),)):
        assert ops.Abs(negative).origin == Origin((), "a", "Abs")


def test_joined() -> None:
    a, b, c = (Origin((), name, "Neg") for name in "abc")
    assert union((a, b), (b, c)) == (a, b, c) and union((), (a,)) == union((a,), ()) == union((a,), (a,)) == (a,)


def test_below() -> None:
    loop = Origin((), "loop", "Loop")
    assert Origin(("loop", "step"), "add", "Add").is_below(loop)
    assert not Origin(("loop/step",), "add", "Add").is_below(loop)
    assert not Origin(("loop2", "step"), "add", "Add").is_below(loop) and not loop.is_below(loop)


read_cases(globals())
