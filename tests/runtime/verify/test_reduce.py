"""Reduction on models with one fault, which an extension plants into every conversion."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from mo_loop.compare.layers.rounding import amplification
from mo_loop.compare.oracle.checked_oracle import Oracle
from mo_loop.compare.oracle.oracle import OnnxRuntime
from mo_loop.compare.reducing import Reduced, reduce, windows
from mo_loop.compare.reducing.candidates import Candidate, unwrapped
from mo_loop.compare.reducing.candidates import with_nodes as with_nodes
from mo_loop.compare.reducing.trial import Condition, Trial
from mo_loop.compare.results.array_comparison import compare
from mo_loop.compare.verify_options import VerifyOptions
from mo_loop.errors import InputError, NotComparableError, UsageError
from mo_loop.options import ConvertOptions
from tests.cases import read_cases
from tests.cli.commands import saved
from tests.harness import floats, parsed, raised, with_weights

WRONG = """
import numpy as np

from mo_loop import ops
from mo_loop.transforms.function_pass import FunctionPass


class Wrong(FunctionPass):
    def run_on_graph(self, graph):
        for scope in graph.scopes():
            for node in list(scope.of(ops.Tanh)):
                if WHERE and "wrong" not in node.rt_info:
                    new = ops.Tanh(node.inputs[0])
                    new.rt_info["wrong"] = "true"
                    node.output.replace_with(ops.Multiply(new.output, np.float32(1.5)).output)
        return True


def register(extensions):
    extensions.add_pass(Wrong, at="start")
"""

NESTED = """
main (float[N,3] x, int64 n, float[3] b) => (float[N,3] y, float[K,N,3] all, float[N,3] other)
<float[3] w = {1.0, 2.0, 3.0}> {
  before = Mul (x, w)  more = Add (before, b)
  y, all = Loop (n, "", more) <body = outer (int64 i, bool c, float[N,3] s) => (bool d, float[N,3] t, float[N,3] u) {
    d = Identity (c)  scaled = Mul (s, w)
    u = Loop (n, "", scaled) <body = inner (int64 j, bool e, float[N,3] p) => (bool f, float[N,3] q) {
      f = Identity (e)  half = Sub (p, b)  wrong = Tanh (half)  q = Add (wrong, p) }>
    t = Sub (u, s) }>
  other = Exp (x) }"""


def extension(folder: Path, where: str = "True") -> ConvertOptions:
    path = folder / "wrong.py"
    path.write_text(WRONG.replace("WHERE", where))
    return ConvertOptions(extensions=[str(path)])


def operators(found: Reduced) -> Counter[str]:
    return Counter(node.op_type for graph in found.best.graphs for node in graph.node)


def test_a_fault_in_a_nested_body_is_reduced_to_its_node(tmp_path: Path) -> None:
    smaller: list[Candidate] = []
    found = reduce(saved(parsed(NESTED), tmp_path), "differs", options=extension(tmp_path), seconds=600,
                   better=lambda candidate, _: smaller.append(candidate))
    assert operators(found) == {"Tanh": 1}
    assert found.trials < 100
    assert [each.size for each in smaller] == sorted((each.size for each in smaller), reverse=True)
    assert smaller[-1] == found.best
    (feeds,) = found.best.sets
    assert sum(np.size(value) for value in feeds.values()) <= 2


def test_a_fault_that_needs_the_loop_keeps_it(tmp_path: Path) -> None:
    options = extension(tmp_path, "scope.owner is not None")
    found = reduce(saved(parsed(NESTED), tmp_path), "differs", options=options, seconds=600)
    left = operators(found)
    assert found.trials < 60
    assert (left["Loop"], left["Tanh"], left["Exp"]) == (1, 1, 0)
    assert left.total() - left["Identity"] <= 4


def test_an_error_of_the_conversion_is_reduced_to_its_operator(tmp_path: Path) -> None:
    found = reduce(saved(parsed(NESTED.replace("Exp (x)", "Unheard (more)")), tmp_path), "fails ML302")
    assert operators(found) == {"Unheard": 1}


def test_a_command_decides_by_its_exit_code(tmp_path: Path) -> None:
    assert operators(reduce(saved(parsed(NESTED), tmp_path), "grep -q Tanh {}")) == {"Tanh": 1}


def test_weights_lose_their_content_and_dimensions_become_short(tmp_path: Path) -> None:
    text = "main (float[5,64] x) => (float[5,64] y) { h = MatMul (x, w) y = Tanh (h) }"
    model = with_weights(text, w=floats(64, 64))
    (weight,) = reduce(saved(model, tmp_path), "grep -q MatMul {}").best.proto.graph.initializer
    array = onnx.numpy_helper.to_array(weight)
    assert array.size <= 4
    assert (array == array.flat[0]).all()


def test_rounding_is_no_difference(tmp_path: Path) -> None:
    text = "main (float[4,64] x) => (float[4,8] y) { a = MatMul (x, w) b = MatMul (x, v) y = Sub (a, b) }"
    w = 1000 * floats(64, 8)
    model = with_weights(text, w=w, v=w * np.float32(1.00001))
    path, feeds = tmp_path / "model.onnx", {"x": floats(4, 64)}
    onnx.save(model, path)
    expected = Oracle(str(path)).run(feeds)
    moved = amplification(str(path), feeds, {})["y"]
    trial = Trial(Candidate(model.SerializeToString()), Condition("differs"), VerifyOptions())
    for factor, differs in ((1.0, False), (100.0, True)):
        found = [("y", (expected[0][1] + np.float32(factor * moved)))]
        assert not compare(expected[0][1], found[0][1])
        assert trial.differs(path, feeds, expected, found) == differs
    strict = replace(trial, settings=VerifyOptions(rtol=1e-9, atol=1e-9))
    assert strict.differs(path, feeds, expected, expected) is False


def test_a_model_without_the_condition_is_refused(tmp_path: Path) -> None:
    path = saved(parsed(NESTED), tmp_path)
    raised(InputError, reduce, path, "differs", match="does not show the condition")
    raised(InputError, reduce, path, "differs", options=ConvertOptions(output="y"), match="name tensors of the model")


def test_a_model_that_onnx_runtime_does_not_run_is_refused(tmp_path: Path) -> None:
    """The nodes of a body are not in order, which the conversion accepts."""
    model = parsed(NESTED)
    body = next(each.g for node in model.graph.node for each in node.attribute if each.HasField("g"))
    nodes = list(reversed(body.node))
    del body.node[:]
    body.node.extend(nodes)
    raised(NotComparableError, reduce, saved(model, tmp_path), "differs", match="ONNX Runtime does not run the model")


@pytest.mark.parametrize("text", ["differ", "fails ML1", "grep -q x", 'grep "{}'])
def test_a_condition_that_cannot_be_understood_is_refused(text: str) -> None:
    raised(UsageError, Condition.parse, text, match="cannot be understood")


LOOPS = {
    "Loop": """main (float[3] x, int64 n) => (float[3] y, float[K,3] z) {
          y, z = Loop (n, "", x) <body = step (int64 i, bool c, float[3] x1) => (bool d, float[3] t, float[3] u) {
            d = Identity (c) f = Cast <to = 1> (i) t = Add (x1, f) u = Neg (t) }> }""",
    "Scan": """main (float[3] x, float[2,3] v) => (float[3] y, float[2,3] z) {
          y, z = Scan <num_scan_inputs = 1, body = step (float[3] s, float[3] e) => (float[3] t, float[3] u) {
            t = Add (s, e) u = Neg (t) }> (x, v) }""",
    "If": """main (float[3] x, bool b) => (float[3] y) {
          y = If (b) <then_branch = yes () => (float[3] p) { p = Add (x, x) },
                      else_branch = no () => (float[3] q) { q = Neg (x) }> }""",
}


def test_a_trip_count_becomes_one(tmp_path: Path) -> None:
    model = parsed(LOOPS["Loop"].replace("Loop (n,", "Loop (m,").replace("z) {", "z) <int64 m = {6}> {", 1))
    for each, inputs in ((parsed(LOOPS["Loop"]), {"n": np.array(5)}), (model, {"n": np.array(0)})):
        found = reduce(saved(each, tmp_path), "grep -q Loop {}", inputs=[{"x": floats(3), **inputs}])
        counts = [int(value) for name, value in found.best.sets[0].items() if name == "n"]
        counts += [int(onnx.numpy_helper.to_array(each)) for each in found.best.proto.graph.initializer]
        assert counts == [1]


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("opset", [12, 13, 18])
def test_the_body_in_place_of_a_node_computes_its_first_iteration(kind: str, opset: int) -> None:
    model = parsed(LOOPS[kind], opset)
    feeds: dict[str, Any] = {"x": floats(3), "n": np.array(1), "v": floats(2, 3, seed=1), "b": np.array(True)}
    feeds = {each.name: feeds[each.name] for each in model.graph.input}
    start = Candidate(model.SerializeToString(), (feeds,))
    found = unwrapped(start, 1)
    assert found is not None
    assert found.size.bodies == start.size.bodies - (2 if kind == "If" else 1)
    one = {**feeds, "v": feeds["v"][:1]} if kind == "Scan" else feeds
    wanted = dict(OnnxRuntime(parsed(LOOPS[kind].replace("float[2,3] v", "float[1,3] v"), opset)).run(one))
    for name, array in OnnxRuntime(found.proto).run(feeds):
        assert np.array_equal(array, wanted[name]), name


def long_chain(count: int) -> onnx.ModelProto:
    """`count` layers of three nodes, and an operator that no one has in the middle."""
    lines = []
    for number in range(count):
        lines.append(f"a{number} = MatMul (x{number}, w)")
        lines[-1] += f" b{number} = Tanh (a{number}) x{number + 1} = Add (b{number}, x0)"
    lines[count // 2] += f" q = Unheard (x{count // 2 + 1})"
    lines[count // 2 + 1] = lines[count // 2 + 1].replace(f"(x{count // 2 + 1},", "(q,")
    return with_weights(f"main (float[N,4] x0) => (float[N,4] x{count}) {{ {' '.join(lines)} }}", w=floats(4, 4))


def test_the_search_begins_at_the_node_that_the_error_names(tmp_path: Path) -> None:
    found = reduce(saved(long_chain(200), tmp_path), "fails ML302")
    assert [node.op_type for node in found.best.proto.graph.node] == ["Unheard"]
    assert found.trials < 10


def test_a_node_that_needs_others_keeps_those_near_it() -> None:
    graph = long_chain(20).graph
    number = next(place for place, node in enumerate(graph.node) if node.op_type == "Unheard")
    found = list(windows(graph, number))
    assert found[0] == [number] and all(set(a) < set(b) for a, b in pairwise(found))
    assert len(found[1]) == 3 and len(found[-1]) < len(graph.node)


def test_no_candidate_has_more_nodes_than_the_model(tmp_path: Path) -> None:
    path = saved(parsed(NESTED), tmp_path)
    sizes: list[int] = []
    found = reduce(path, "grep -q Loop {}", better=lambda each, _: sizes.append(each.size.all_nodes))
    assert sizes and max(sizes) <= found.start.size.all_nodes


def test_a_condition_is_a_command_of_the_shell(tmp_path: Path) -> None:
    path = saved(parsed("main (float[2] x) => (float[2] y) { a = Neg (x) b = Abs (a) y = Tanh (b) }"), tmp_path)
    found = reduce(path, "cat {} | grep -q Abs && ! grep -q Unheard {}")
    assert [node.op_type for node in found.best.proto.graph.node] == ["Abs"]
    with pytest.raises(UsageError, match=r"the shell does not find the command of --if: .*no-such-command"):
        reduce(path, "no-such-command {}")


read_cases(globals())
