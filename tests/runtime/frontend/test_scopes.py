"""Names in bodies: which value a name refers to. Numbers are compared with ONNX Runtime's."""

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from mo_loop.api import convert_model
from mo_loop.errors import ModelError
from tests.cases import read_cases
from tests.harness import floats, parsed, raised, refusal

from .models import X, functions, same_numbers
from .models import nested as nested

# -- captures


CHAINS = [c for depth in (1, 2, 3) for c in itertools.product(("Loop", "If", "Scan"), repeat=depth)]
CHAINS += [("Loop", "If", "Scan", "Loop"), ("Scan", "Loop", "If", "Scan"), ("If", "Scan", "Scan", "If")]


# -- names


def test_shadowed_name_is_the_inner_ones() -> None:
    """A body's input that hides an outer value has priority, with a warning."""
    made = parsed("""main (float[3] x, float[3] w, int64 n) => (float[3] y) {
          h = Add (x, w)
          y = Loop (n, "", x) <body = step (int64 i, bool c, float[3] w) => (bool d, float[3] t) {
            d = Identity (c) u = Mul (w, h) t = Sub (u, w) }> }""")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        convert_model(made)
    assert [str(each.message) for each in heard] == ["y/step: 'w' hides an outer value of that name"]
    plain = parsed("""main (float[3] x, float[3] w, int64 n) => (float[3] y) {
          h = Add (x, w)
          y = Loop (n, "", x) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
            d = Identity (c) u = Mul (s, h) t = Sub (u, s) }> }""")
    same_numbers(made, plain, *({"x": X[n], "w": X[3], "n": n} for n in (2, 0, 3)))


def test_nodes_and_initializers_of_a_body_hide_outer_names() -> None:
    made = parsed("""main (float[3] x, bool flag, float[3] w) => (float[3] y) {
          h = Neg (x)
          y = If (flag) <
            then_branch = yes () => (float[3] r) <float[3] w = {1.0, 2.0, 3.0}> { r = Mul (x, w) },
            else_branch = no () => (float[3] q) { h = Abs (x) q = Mul (h, w) }
          >
          unused = Add (h, w) }""")
    with pytest.warns(UserWarning, match="'w' hides an outer value") as heard:
        convert_model(made)
    assert len(heard) == 1  # `h` of the branch hides one that is never needed, hence never made
    same_numbers(made, parsed("""main (float[3] x, bool flag, float[3] w) => (float[3] y) {
          y = If (flag) <
            then_branch = yes () => (float[3] r) <float[3] v = {1.0, 2.0, 3.0}> { r = Mul (x, v) },
            else_branch = no () => (float[3] q) { g = Abs (x) q = Mul (g, w) }
          >
        }"""), *({"x": X[n], "w": X[3], "flag": bool(n % 2)} for n in range(3)))


def test_body_inputs_named_as_outer_values() -> None:
    """PaddleOCR's SLANet: 16 body inputs with outer names in another order, most of them passed through unchanged."""
    count = 14
    outer = [f"v{k}" for k in range(count)]
    inner = [*outer[5:], *outer[:5]]  # state k is called what the outer graph calls state k + 5
    made = parsed("main (int64 n, bool go, float[2] v0) => (float[2] y) { y = Neg (v0) }")
    graph = made.graph
    del graph.node[:], graph.output[:]
    graph.input.extend(helper.make_tensor_value_info(name, 1, [2]) for name in outer[1:])
    changed = {0: ("Add", inner[1]), 7: ("Mul", inner[0])}
    nodes = [helper.make_node("Identity", ["go"], ["go_out"])]
    results = []
    for k, name in enumerate(inner):
        if k in changed:
            op, other = changed[k]
            nodes.append(helper.make_node(op, [name, other], [f"r{k}"]))
            results.append(f"r{k}")
        else:
            results.append(name)
    body = helper.make_graph(nodes, "body",
                             [helper.make_tensor_value_info("n", 7, []), helper.make_tensor_value_info("go", 9, [])]
                             + [helper.make_tensor_value_info(name, 1, [2]) for name in inner],
                             [helper.make_tensor_value_info("go_out", 9, [])]
                             + [helper.make_tensor_value_info(name, 1, [2]) for name in results])
    assert len(body.input) == 16
    outputs = [f"y{k}" for k in range(count)]
    graph.node.append(helper.make_node("Loop", ["n", "go", *outer], outputs, name="loop", body=body))
    graph.output.extend(helper.make_tensor_value_info(name, 1, [2]) for name in outputs)
    plain = onnx.ModelProto()
    plain.CopyFrom(made)
    renamed(plain.graph.node[0].attribute[0].g, "in_")
    sets = [{"n": n, "go": True, **{name: floats(2, seed=k) for k, name in enumerate(outer)}} for n in (3, 0, 1)]
    same_numbers(made, plain, *sets)


def renamed(graph: Any, prefix: str) -> None:
    """Give every name of a body (one without captures) a prefix."""
    for each in (*graph.input, *graph.output):
        each.name = prefix + each.name
    for node in graph.node:
        node.input[:] = [prefix + name for name in node.input]
        node.output[:] = [prefix + name for name in node.output]


# -- order


def shuffled(graph: Any, seed: int) -> None:
    """List the nodes of a graph and of its bodies in another order."""
    nodes = list(graph.node)
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                shuffled(attribute.g, seed)
    order = np.random.default_rng(seed).permutation(len(nodes))
    copies = [onnx.NodeProto.FromString(nodes[k].SerializeToString()) for k in order]
    del graph.node[:]
    graph.node.extend(copies)


@pytest.mark.parametrize("seed", range(4))
def test_nodes_out_of_order(seed: int) -> None:
    """In the main graph and in bodies; a node reads what its bodies capture."""
    made = parsed("""main (float[3] x, int64 n, bool flag) => (float[3] y) {
          a = Neg (x)  b = Mul (a, x)
          z = Loop (n, "", b) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
            d = Identity (c)  p = Add (s, a)
            q = If (flag) <
              then_branch = yes () => (float[3] r) { o = Mul (p, late) r = Neg (o) },
              else_branch = no () => (float[3] r2) { o2 = Add (p, b) r2 = Abs (o2) }
            >
            t = Mul (q, p) }>
          late = Exp (a)  y = Add (z, late) }""")
    ordered = onnx.ModelProto.FromString(made.SerializeToString())
    ordered.graph.node.insert(0, ordered.graph.node[3])
    del ordered.graph.node[4]
    ordered.graph.node.insert(0, ordered.graph.node[1])
    del ordered.graph.node[2]
    shuffled(made.graph, seed)
    same_numbers(made, ordered, *({"x": X[n] / 4, "n": n, "flag": n == 1} for n in range(3)))


def test_cycle_of_nodes_is_reported() -> None:
    made = parsed("""main (float[3] x, bool flag) => (float[3] y) {
          [first] a = Add (x, b)
          [second] b = If (flag) <
            then_branch = yes () => (float[3] r) { r = Neg (a) }, else_branch = no () => (float[3] q) { q = Abs (x) }>
          [third] y = Neg (b)
        }""")
    caught = raised(ModelError, convert_model, made)
    assert caught.code == "ML224"
    assert "first" in str(caught) and "second" in str(caught)


# -- what is wrong with names


@pytest.fixture(params=["main", "Loop", "If", "function"])
def undefined(request: pytest.FixtureRequest) -> Iterator[tuple[onnx.ModelProto, str]]:
    """A model in which nothing defines `ghost`, and the path of its reader."""
    models = {
        "main": ("main (float[3] x) => (float[3] y) { [here] y = Add (x, ghost) }", "here"),
        "Loop": ("""main (float[3] x, int64 n) => (float[3] y) {
              [loop] y = Loop (n, "", x) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
                d = Identity (c) [here] t = Add (s, ghost) }> }""", "loop/step/here"),
        "If": ("""main (float[3] x, bool f) => (float[3] y) {
              [choice] y = If (f) <then_branch = yes () => (float[3] p) { [here] p = Add (x, ghost) },
                else_branch = no () => (float[3] q) { q = Neg (x) }> }""", "choice/yes/here"),
        "function": ("", "call/here"),
    }
    text, place = models[request.param]
    if request.param == "function":
        # A function sees its own names only, not `x` of the graph that calls it.
        yield (
            functions("main (float[3] ghost) => (float[3] y) { [call] y = local.f (ghost) }",
                      "f (v) => (r) { [here] r = Add (v, ghost) }"),
            place,
        )
        return
    yield parsed(text), place


def test_undefined_name(undefined: tuple[onnx.ModelProto, str]) -> None:
    made, place = undefined
    error = refusal(made)
    assert (error.code, error.exit_code) == ("ML223", 2)
    assert "'ghost'" in str(error)
    assert f"where: {place}\n" in f"{error}\n"


def test_name_of_a_body_is_not_visible_outside() -> None:
    assert refusal(parsed("""main (float[3] x, bool f) => (float[3] y) {
          p = If (f) <then_branch = yes () => (float[3] a) { t = Neg (x) a = Abs (t) },
            else_branch = no () => (float[3] b) { b = Neg (x) }>
          [here] y = Add (p, t) }""")).code == "ML223"


read_cases(globals())
