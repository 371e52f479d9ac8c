"""Small models for errors that random models found (tools/fuzz_controlflow.py), each named after its cause."""

from typing import Any

import numpy as np
import onnx
import pytest

from tests.harness import check, check_model, floats, parsed
from tests.runtime.frontend.models import same_numbers

pytestmark = pytest.mark.keeps_loops

X = floats(2, 3, seed=1)
FLAGS = [{"a": np.array(bool(n & 1)), "b": np.array(bool(n & 2))} for n in (2, 3, 1, 0, 3)]


def runs(*counts: int, **feeds: Any) -> list[dict[str, Any]]:
    return [{"n": count, **feeds} for count in counts]


# -- no iterations


ROWS = """{source}
  s = Loop (n, "") <body = step (int64 i, bool c) => (bool d, float[?,?] r) {{ d = Identity (c) r = Identity (y) }}>"""


def test_bounds_that_exclude_zero_by_concat() -> None:
    """y has one column at least; without iterations s has none."""
    text = ROWS.format(source="y = Concat <axis = 1> (x, p)")
    model = parsed(f"g (float[N,M] x, float[N,1] p, int64 n) => (float[?,?] y, float[?,?,?] s) {{ {text} }}")
    check(model, *runs(0, 2, 0, -1, x=X, p=X[:, :1]))


def test_bounds_that_exclude_zero_by_branches() -> None:
    """y has one to four columns."""
    text = ROWS.format(source="""y = If (c) <then_branch = yes () => (float[?,?] a) { a = Abs (x) },
                                   else_branch = no () => (float[?,?] b) { b = Neg (p) }>""")
    model = parsed(f"g (float[N,4] x, float[N,1] p, bool c, int64 n) => (float[?,?] y, float[?,?,?] s) {{ {text} }}")
    wide = floats(2, 4, seed=2)
    check(model, *runs(0, 2, 0, x=wide, p=X[:, :1], c=True), *runs(0, 1, x=wide, p=X[:, :1], c=False))


@pytest.mark.parametrize("declared", ["2,3", "2,?", "?,3", "?,?"])
def test_sizes_that_only_the_body_declares(declared: str) -> None:
    """An empty scan output has them, as in ONNX Runtime."""
    check(parsed(f"""g (float[?,?] x, int64 n) => (float[?,?,?] y, float[?,?,?] z) {{
      q = Neg (x)
      y, z = Loop (n, "") <body = step (int64 i, bool c) => (bool d, float[{declared}] r, float[{declared}] t) {{
        d = Identity (c) r = Identity (q) t = Abs (q) }}> }}"""), *runs(0, 2, 0, -1, x=X))


def test_sizes_that_only_the_body_declares_may_be_wrong() -> None:
    """Where the loop runs, the numbers do not depend on a wrong declaration."""
    text = """g (float[?,?] x, int64 n) => (float[?,?,?] y) {{ y = Loop (n, "") <
      body = step (int64 i, bool c) => (bool d, float[{}] r) {{ d = Identity (c) r = Neg (x) }}> }}"""
    same_numbers(parsed(text.format("5,7")), parsed(text.format("?,?")), *runs(2, 1, x=X))


def test_sizes_that_the_runtime_does_not_know() -> None:
    """The inner Scan is of known length, by an input that its body does not read."""
    model = parsed("""g (float[?,2] x, float[3] k, int64 n) => (float[?,?] s) {
      v = Scan <num_scan_inputs = 2, scan_input_axes = [0, 0], body = inner (float[2] e, float f) => (float r) {
        r = ReduceSum <keepdims = 0> (e) }> (x, k)
      s = Loop (n, "") <body = step (int64 i, bool c) => (bool d, float[3] r) { d = Identity (c) r = Neg (v) }> }""")
    check(model, *runs(0, 2, 0, x=floats(3, 2, seed=3), k=floats(3)))


def test_state_that_only_dead_nodes_read() -> None:
    """Such a state counts as unread: its initial value is its final value."""
    check(parsed("""g (float[2] x, int64 n) => (float[2] y) <bool never = {0}> {
      y = Loop (n, "", x) <body = step (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
        d = Identity (c) z = Constant <value = float[2] {5.0, 6.0}> ()
        u, w = Loop (i, never, z) <body = deep (int64 j, bool e, float[2] q) => (bool f, float[2] r, float[2] o) {
          f = Identity (e) r = Identity (z) o = Add (s, q) }>
        h = ReduceSum <keepdims = 0> (w) t = Add (u, h) }> }"""), *runs(0, 2, 0, x=floats(2)))


def test_trip_count_below_zero_by_arithmetic() -> None:
    """A known, negative trip count that is given: no iterations, not endless."""
    check(parsed("""g (float[2] x) => (float[2] y, float[?,2] s) <int64 two = {2}, int64 three = {3}> {
      n = Sub (two, three)
      y, s = Loop (n, "", x) <body = step (int64 i, bool c, float[2] a) => (bool d, float[2] t, float[2] r) {
        d = Identity (c) t = Neg (a) r = Abs (a) }> }"""), {"x": floats(2)})


@pytest.mark.parametrize("trip", ['""', "n"])
def test_omitted_trip_count_is_endless(trip: str) -> None:
    """The body ends the loop; a negative trip count that is given does not start it."""
    check(parsed(f"""g (float[2] x, int64 n) => (float[2] y, float[?,2] s) <int64 three = {{3}}> {{
      y, s = Loop ({trip}, "", x) <body = step (int64 i, bool c, float[2] a) => (bool d, float[2] t, float[2] r) {{
        d = Less (i, three) t = Neg (a) r = Abs (a) }}> }}"""), *runs(-1, 2, 9, x=floats(2)))


def test_trip_count_that_the_runtime_alone_can_compute() -> None:
    """The sum of nothing: 0, which the runtime finds while it compiles."""
    check(parsed("""g (float[2] x) => (float[2] y) <int64[0] none = {}> {
      v, w = Loop (k, "", x) <body = b (int64 i, bool c, float[2] a) => (bool d, float[2] t, int64[0] r) {
        d = Identity (c) t = Neg (a) r = Identity (none) }>
      k = ReduceSum <keepdims = 0> (none) m = ReduceSum <keepdims = 0> (w)
      y = Loop (m, "", v) <body = e (int64 i, bool c, float[2] a) => (bool d, float[2] t) {
        d = Identity (c) t = Neg (a) }> }"""), {"x": floats(2)})


def test_state_that_is_the_condition() -> None:
    """No Select compiles whose condition is one of its values."""
    model = parsed("""g (bool go, bool b, int64 n) => (bool y, bool z) {
      y, z = Loop (n, go, go, b) <body = step (int64 i, bool c, bool s, bool q) => (bool d, bool t, bool u) {
        d = Identity (c) t = Identity (b) u = Identity (go) }> }""")
    check(model, *(feeds for go in (True, False) for b in (True, False) for feeds in runs(0, 2, go=go, b=b)))


def test_state_without_elements_that_the_body_does_not_read() -> None:
    """Its final value is its initial one, and needs no Select: after one, scan outputs were stale."""
    model = parsed("""g (float[2] x, int64 n, bool go) => (float[0] y, float[?,2] s) <float[0] none = {}> {
      y, s = Loop (n, go, none) <body = step (int64 i, bool c, float[0] a) => (bool d, float[0] t, float[2] r) {
        d = Identity (c) t = Constant <value = float[0] {}> () r = Neg (x) }> }""")
    check(model, *runs(0, 3, 0, 2, -1, x=floats(2), go=True), *runs(2, x=floats(2), go=False))


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


@pytest.mark.parametrize("flag", [0, 1])
def test_scan_of_constants_in_reverse(flag: int) -> None:
    """Nothing in the body comes from outside: the runtime computes such a loop beforehand, in order."""
    model = parsed(f"""g (float[1,3] x) => (float[2,3,1] y) <float[2,1] start = {{1.0, 2.0}}> {{
      z, y = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
        scan_output_directions = [{flag}], body = step (float[2,1] s, float[1] e) => (float[2,1] t, float[2,1] r) {{
          two = Constant <value = float {{2.0}}> () t = Mul (s, two) r = Identity (s) }}> (start, x) }}""")
    check(model, {"x": floats(1, 3)})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sizes_that_only_the_body_of_a_scan_declares(axis: int) -> None:
    """ONNX Runtime refuses a Scan without steps."""
    model = parsed(f"""g (float[?,?] x, float[T,4] e) => (float[?,?,?] y) {{
      y = Scan <num_scan_inputs = 1, scan_output_axes = [{axis}], body = step (float[4] a) => (float[2,3] r) {{
        r = Neg (x) }}> (e) }}""")
    check(model, {"x": X, "e": floats(2, 4)})
    sizes = {0: (0, 2, 3), 1: (2, 0, 3), -1: (2, 3, 0)}[axis]
    check_model(model, {"x": X, "e": floats(0, 4)}, expected=[np.zeros(sizes, np.float32)])


def test_slice_that_an_inner_scan_reads_for_its_length() -> None:
    """That is known, so the outer body reads no slice: as a TensorIterator it would run once."""
    check(parsed("""g (float[3,2] x) => (float[3,2,2] y) {
      y = Scan <num_scan_inputs = 1, body = outer (float[2] e) => (float[2,2] r) {
        r = Scan <num_scan_inputs = 1, body = inner (float f) => (float[2] o) {
          o = Constant <value = float[2] {1.0, 2.0}> () }> (e) }> (x) }"""), {"x": floats(3, 2)})


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


def test_scan_lengths_that_may_be_equal_are_not_refused() -> None:
    """N may be 3: only what differs for certain is refused."""
    check(parsed("""g (float[3,2] m, float[N,2] p) => (float[3,2] y) {
      y = Scan <num_scan_inputs = 2, body = step (float[2] e, float[2] f) => (float[2] t) {
        t = Add (e, f) }> (m, p) }"""), {"m": floats(3, 2, seed=1), "p": floats(3, 2, seed=2)})


# -- If


@pytest.mark.parametrize("copied", ["z", "y"])
def test_copy_of_a_boolean_output(copied: str) -> None:
    """The runtime takes out the copy, and reads the first output in place of the second."""
    check(parsed(f"""g (bool a, bool b) => (bool y, bool v) {{
      y, z = If (a) <then_branch = yes () => (bool p, bool q) {{ p = Not (b) q = And (a, b) }},
                     else_branch = no () => (bool r, bool s) {{ r = Or (a, b) s = Xor (a, b) }}>
      v = Identity ({copied}) }}"""), *FLAGS)


# -- nothing, and more dimensions


def test_state_without_elements_grows_along_another_axis() -> None:
    """The runtime leaves out what it joins if it has no elements."""
    check(parsed("""g (float[0,2] x, int64 n) => (float[0,?] y, float[0,?] z) <float[0,3] piece = {}> {
      y = Loop (n, "", x) <body = step (int64 i, bool c, float[0,?] s) => (bool d, float[0,?] t) {
        d = Identity (c) t = Concat <axis = 1> (s, piece) }>
      z = Concat <axis = -1> (x, piece, x) }"""), *runs(0, 2, 1, x=np.zeros((0, 2), np.float32)))


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


@pytest.mark.parametrize("op", ["Add", "Mul", "Max"])
def test_an_invariant_scalar_beside_a_view_of_a_slice(op: str) -> None:
    """The runtime let the operation write into the invariant: running sums, products and maxima came out."""
    check(parsed(f"""g (float[N] x, float p) => (float[M] y) {{
        y = Scan <num_scan_inputs = 1, body = step (float s) => (float t) {{ t = {op} (p, s) }}> (x)
    }}"""), {"x": X[0], "p": np.float32(0.05)}, {"x": X[1], "p": np.float32(0.5)})


# -- Captured values of bodies


@pytest.mark.parametrize("flag", [True, False])
def test_two_names_of_one_captured_value(flag: bool) -> None:
    """`same` is `x`: a branch that reads both has one Parameter for them."""
    model = parsed("""g (float[2,3] x, bool flag) => (float[2,3] y) {
      same = Identity (x)
      y = If (flag) <then_branch = yes () => (float[2,3] a) { a = Add (x, same) },
                     else_branch = no () => (float[2,3] b) { n = Neg (same) b = Mul (n, x) }> }""")
    check(model, {"x": X, "flag": flag}, {"x": X + 1, "flag": not flag})
