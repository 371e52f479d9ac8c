"""Small models for errors that random models found (tools/fuzz_controlflow.py), each named after its cause."""

from typing import Any

import numpy as np
import onnx
import pytest

from tests.harness import check, check_model, floats, parsed
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


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sizes_that_only_the_body_of_a_scan_declares(axis: int) -> None:
    """ONNX Runtime refuses a Scan without steps."""
    model = parsed(f"""g (float[?,?] x, float[T,4] e) => (float[?,?,?] y) {{
      y = Scan <num_scan_inputs = 1, scan_output_axes = [{axis}], body = step (float[4] a) => (float[2,3] r) {{
        r = Neg (x) }}> (e) }}""")
    check(model, {"x": X, "e": floats(2, 4)})
    sizes = {0: (0, 2, 3), 1: (2, 0, 3), -1: (2, 3, 0)}[axis]
    check_model(model, {"x": X, "e": floats(0, 4)}, expected=[np.zeros(sizes, np.float32)])


def test_unread_slice_beside_an_output_in_reverse() -> None:
    """The runtime builds a loop anew to take out an input, and cannot where an output is joined in reverse."""
    model = parsed("""g (float[3,N] x, float[3,3] k, float[?,2] p) => (float[N,2] y, float[?,3] z) {
      y, z = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_directions = [0, 1],
        body = outer (float[3] e) => (float[2] a, float[3] b) {
          q = Scan <num_scan_inputs = 2, body = inner (float[3] f, float[2] h) => (float[2] r) { r = Neg (h) }> (k, p)
          a = ReduceSum <keepdims = 0> (q, first) b = Abs (e) }> (x) }""")
    model.graph.initializer.append(onnx.helper.make_tensor("first", onnx.TensorProto.INT64, [1], [0]))
    check(model, {"x": floats(3, 2), "k": floats(3, 3), "p": floats(3, 2, seed=5)})


def test_scan_8_of_length_0() -> None:
    """The states stay as they are. (ONNX Runtime changes them.)"""
    model = parsed("""g (float[2,2] s, float[2,N,2] x) => (float[2,2] y, float[2,N,2] z) {
      y, z = Scan <num_scan_inputs = 1, body = step (float[2] a, float[2] e) => (float[2] t, float[2] r) {
        t = Add (a, e) r = Neg (t) }> ("", s, x) }""", opset=8)
    model.ir_version = 8
    state, two, none = floats(2, 2), floats(2, 2, 2, seed=4), np.zeros((2, 0, 2), np.float32)
    sums = np.cumsum(np.concatenate([state[:, None], two], 1), 1)[:, 1:]
    expected = [[("y", sums[:, -1]), ("z", -sums)], [("y", state), ("z", none)]]
    check(model, {"s": state, "x": two}, {"s": state, "x": none}, expected=expected)


def test_the_length_of_a_scan_8_is_known_where_a_loop_does_not_run() -> None:
    """It is that of the input, for any lengths of the sequences."""
    model = parsed("""g (int64 n, int64[2] lengths, float[2,3,1] x) => (float[?,?,?,?] all) {
      all = Loop (n, "") <body = step (int64 i, bool go) => (bool go2, float[?,?,?] z) {
        go2 = Identity (go)
        z = Scan <num_scan_inputs = 1, body = row (float[1] e) => (float[1] r) { r = Neg (e) }> (lengths, x) }>
    }""", opset=8)
    model.ir_version = 8
    lengths, x = np.array([2, 3]), floats(2, 3, 1)
    rows = -x
    rows[0, 2] = 0
    expected = [[("all", np.stack([rows, rows]))], [("all", np.zeros((0, 2, 3, 1), np.float32))]]
    check(model, *({"n": np.array(n), "lengths": lengths, "x": x} for n in (2, 0)), expected=expected)


# -- nothing, and more dimensions


@pytest.mark.parametrize("op", ["Add", "Less"])
@pytest.mark.parametrize("source",
                         ["Gather <axis = 0> (x, at)", "Squeeze (x, axes)", "ReduceSum <keepdims = 0> (x, axes)"])
def test_constant_of_one_element_and_more_dimensions(source: str, op: str) -> None:
    """The runtime moves the operation to the other side of a Gather or Squeeze and forgets the new dimensions."""
    result = "float[1,1,1]" if op == "Add" else "bool[1,1,1]"
    model = parsed(f"""g (float[1,1] x) => ({result} y)
      <float[1,1,1] c = {{0.5}}, int64 at = {{0}}, int64[1] axes = {{0}}> {{ v = {source} y = {op} (v, c) }}""")
    check(model, {"x": floats(1, 1)})


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


def test_a_loop_of_constants_whose_inner_loop_does_not_run() -> None:
    """The runtime evaluates the outer loop while it reads, and cannot evaluate the inner one in its last iteration."""
    check(parsed("""g (float[N] x) => (int64[3] y) {
        three = Constant <value = int64 {3}> ()  on = Constant <value = bool {1}> ()
        y = Loop (three, on) <body = outer (int64 i, bool c) => (bool d, int64 t) {
            d = Identity (c)  one = Constant <value = int64 {1}> ()  left = Sub (one, i)
            t = Loop (left, c, i) <body = inner (int64 j, bool e, int64 s) => (bool f, int64 u) {
                f = Identity (e)  u = Add (s, one) }> }> }"""), {"x": X[0]}, expected=[[("y", np.array([1, 1, 2]))]])


def test_a_condition_that_a_loop_of_constants_gives() -> None:
    """The runtime evaluated both loops, although the second does not run, and did not read the model."""
    check(parsed("""g () => (float y) {
        half = Constant <value = float {0.5}> ()  on = Constant <value = bool[1,1] {1}> ()
        off = Constant <value = bool {0}> ()  one = Constant <value = int64 {1}> ()
        axes = Constant <value = int64[2] {0, 1}> ()
        last = Loop ("", "", on) <body = first (int64 i, bool c, bool[1,1] s) => (bool d, bool[1,1] t) {
            t = Xor (s, off)  d = Identity (off) }>
        whole = Cast <to = 7> (last)  total = ReduceSum <keepdims = 0> (whole, axes)  go = Greater (total, one)
        y = Loop (one, go, half) <body = second (int64 i, bool c, float s) => (bool d, float t) {
            t = Sin (s)  d = Less (i, one) }> }"""), {}, expected=[[("y", np.float32(0.5))]])


# -- Captured values of bodies


@pytest.mark.parametrize("flag", [True, False])
def test_two_names_of_one_captured_value(flag: bool) -> None:
    """`same` is `x`: a branch that reads both has one Parameter for them."""
    model = parsed("""g (float[2,3] x, bool flag) => (float[2,3] y) {
      same = Identity (x)
      y = If (flag) <then_branch = yes () => (float[2,3] a) { a = Add (x, same) },
                     else_branch = no () => (float[2,3] b) { n = Neg (same) b = Mul (n, x) }> }""")
    check(model, {"x": X, "flag": flag}, {"x": X + 1, "flag": not flag})
