"""Small models for errors that random models found (tools/fuzz_controlflow.py), each named after its cause."""

from typing import Any

import onnx
import pytest

from tests.cases import read_cases
from tests.harness import check, floats, parsed
from tests.runtime.frontend.models import same_numbers

pytestmark = pytest.mark.keeps_loops

X = floats(2, 3, seed=1)


def runs(*counts: int, **feeds: Any) -> list[dict[str, Any]]:
    return [{"n": count, **feeds} for count in counts]


# -- no iterations


def test_sizes_that_only_the_body_declares_may_be_wrong() -> None:
    """Where the loop runs, the numbers do not depend on a wrong declaration."""
    text = """g (float[?,?] x, int64 n) => (float[?,?,?] y) {{ y = Loop (n, "") <
      body = step (int64 i, bool c) => (bool d, float[{}] r) {{ d = Identity (c) r = Neg (x) }}> }}"""
    same_numbers(parsed(text.format("5,7")), parsed(text.format("?,?")), *runs(2, 1, x=X))


# -- what a body declares


@pytest.mark.parametrize(("returned", "declared", "read"), [
    ("bool[1]", "bool", "t = Sub (s, k)"),
    ("bool", "bool", "t = Sub (s, k)"),
    ("bool[1]", "bool[1]", "m = ReduceSum <keepdims = 0> (k, axes)  t = Sub (s, m)"),  # no scalar can be summed
])
def test_undeclared_condition_is_as_the_body_returns_it(returned: str, declared: str, read: str) -> None:
    """Without a condition given nothing else gives its rank."""
    text = f"""g (float[2] x, int64 n) => (float[2] y) <int64[1] axes = {{0}}> {{
      y = Loop (n, "", x) <body = step (int64 i, {returned} c, float[2] s) => ({declared} d, float[2] t) {{
        d = Constant <value = {returned} {{1}}> () k = Cast <to = 1> (c) {read} }}> }}"""
    plain, bare = parsed(text), parsed(text)
    bare.graph.node[0].attribute[0].g.input[1].ClearField("type")
    same_numbers(bare, plain, *runs(0, 2, x=floats(2)))


# -- Scan


def test_unread_slice_beside_an_output_in_reverse() -> None:
    """The runtime builds a loop anew to take out an input, and cannot where an output is joined in reverse."""
    model = parsed("""g (float[3,N] x, float[3,3] k, float[?,2] p) => (float[N,2] y, float[?,3] z) {
      y, z = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_directions = [0, 1],
        body = outer (float[3] e) => (float[2] a, float[3] b) {
          q = Scan <num_scan_inputs = 2, body = inner (float[3] f, float[2] h) => (float[2] r) { r = Neg (h) }> (k, p)
          a = ReduceSum <keepdims = 0> (q, first) b = Abs (e) }> (x) }""")
    model.graph.initializer.append(onnx.helper.make_tensor("first", onnx.TensorProto.INT64, [1], [0]))
    check(model, {"x": floats(3, 2), "k": floats(3, 3), "p": floats(3, 2, seed=5)})


# -- names


def test_outer_names_as_body_inputs_of_states_passed_through() -> None:
    """As Paddle writes it: sixteen body inputs called as the values that feed them, most of them just handed on."""
    count = 16
    names = [f"v{i}" for i in range(count)]
    inner = names[:1]
    ports = ", ".join(f"float[2] {name}" for name in names)
    results = ", ".join(["float[2] t0", *(f"float[2] {name}" for name in names[1:])])
    made = " ".join(f"v{i} = Mul (x, k{i})" for i in range(count))
    constants = ", ".join(f"float k{i} = {{{i}.0}}" for i in range(count))
    outs = ", ".join(f"o{i}" for i in range(count))
    text = f"""g (float[2] x, int64 n) => ({", ".join(f"float[2] o{i}" for i in range(count))}) <{constants}> {{
      {made}
      {outs} = Loop (n, "", {", ".join(names)}) <body = step (int64 i, bool c, {ports}) => (bool d, {results}) {{
        d = Identity (c) t0 = Add ({inner[0]}, v15) }}> }}"""
    shadowed, plain = parsed(text), parsed(text)
    renamed(plain.graph.node[-1].attribute[0].g, {name: f"{name}_inner" for name in names})
    same_numbers(shadowed, plain, *runs(0, 3, 1, x=floats(2)))


def renamed(graph: onnx.GraphProto, names: dict[str, str]) -> None:
    for port in (*graph.input, *graph.output):
        port.name = names.get(port.name, port.name)
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]


read_cases(globals())
