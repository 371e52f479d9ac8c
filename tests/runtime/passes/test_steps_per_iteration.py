"""Loops with several steps in each iteration, with numbers of steps that blocks divide and do not divide."""

import numpy as np
import pytest

from mo_loop.api import convert_model
from mo_loop.ops.control import Iteration
from tests.harness import check, floats, folded, parsed

LENGTHS = (17, 0, 1, 16, 40, 15, 2)


def steps_of(model: object) -> list[int]:
    graph = convert_model(model, **folded()).graph
    return [node.steps for scope in graph.scopes() for node in scope if isinstance(node, Iteration)]


def recurrence(length: str, attributes: str = "") -> object:
    """s' = tanh(s x) + x, and all s'."""
    return parsed(f"""main (float[{length},3] x, float[3] first)
      => (float[3] last, float[{length},3] y) {{
      last, y = Scan <num_scan_inputs = 1 {attributes},
        body = step (float[3] s, float[3] e) => (float[3] t, float[3] o) {{
          p = Mul (s, e) q = Tanh (p) t = Add (q, e) o = Identity (t) }}> (first, x) }}""")


def sequence(length: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(length)
    return {"x": rng.standard_normal((length, 3)).astype(np.float32), "first": np.array([0.5, -1, 2], np.float32)}


def expected(feeds: dict[str, np.ndarray], backwards: bool, turned: bool) -> list[tuple[str, np.ndarray]]:
    state, rows = feeds["first"], [np.zeros((0, 3), np.float32)]
    for element in feeds["x"][::-1] if backwards else feeds["x"]:
        state = np.tanh(state * element) + element
        rows.append(state[None])
    every = np.concatenate(rows)
    return [("last", state), ("y", every[::-1] if turned else every)]


@pytest.mark.parametrize("attributes", ["", ", scan_input_directions = [1]", ", scan_output_directions = [1]",
                                        ", scan_input_directions = [1], scan_output_directions = [1]"])
def test_lengths_that_change(attributes: str) -> None:
    model = recurrence("N", attributes)
    assert steps_of(model) == [16]
    sets = [sequence(length) for length in LENGTHS]  # ONNX Runtime runs no Scan over nothing
    check(model, *sets, expected=[expected(each, "input" in attributes, "output" in attributes) for each in sets])


@pytest.mark.parametrize(("length", "found"), [(1, []), (16, []), (17, []), (33, [11]), (45, [9])])
@pytest.mark.parametrize("attributes", ["", ", scan_input_directions = [1], scan_output_directions = [1]"])
def test_known_lengths(length: int, found: list[int], attributes: str) -> None:
    model = recurrence(str(length), attributes)
    assert steps_of(model) == found
    check(model, sequence(length))


@pytest.mark.parametrize(("length", "found"), [(2, []), (6, [1]), (40, [4])])
def test_copies_pay_for_their_compilation(length: int, found: list[int]) -> None:
    """A few steps of a body of 31 operations run one by one: a copy takes longer to compile than iterations save."""
    chain = " ".join(f"v{number + 1} = Tanh (v{number})" for number in range(30))
    model = parsed(f"""main (float[{length},3] x, float[3] first) => (float[3] last) {{
      last = Scan <num_scan_inputs = 1, body = step (float[3] s, float[3] e) => (float[3] t) {{
        v0 = Mul (s, e) {chain} t = Identity (v30) }}> (first, x) }}""")
    assert steps_of(model) == found
    check(model, sequence(length))


def test_a_condition_that_ends_the_loop_between_two_iterations() -> None:
    """States, values of the last step and pieces are those of the step that ends it; a limit of steps holds, too."""
    model = parsed("""main (float[2] x, float limit, int64 n, bool go) => (float[2] last, float sum, float[M,2] all) {
      zero = Constant <value = float {0}> ()
      last, sum, all = Loop (n, go, x, zero) <
        body = step (int64 i, bool c, float[2] s, float k) => (bool d, float[2] t, float m, float[2] o) {
          two = Constant <value = float {1.5}> () t = Mul (s, two) m = ReduceMax <keepdims = 0> (t)
          d = Less (m, limit) o = Identity (t) }> }""")
    assert steps_of(model) == [4]
    x = np.array([1, 0.25], np.float32)
    feeds = [
        {"x": x, "limit": np.float32(limit), "n": np.int64(n), "go": np.bool_(go)}
        for limit, n, go in ((100, 1000, True), (3, 1000, True), (100, 3, True), (0, 9, True), (1e9, 17, True),
                             (9, 9, False), (9, 0, True), (1e20, 2**31 - 1, True), (9, -1, True), (30, 8, True))
    ]
    check(model, *feeds)


def test_a_condition_that_is_a_state() -> None:
    """Selects by the condition of a step read it, or an equal node."""
    model = parsed("""main (bool start) => (bool last) {
      last = Loop ("", start, start) <body = step (int64 i, bool c, bool s) => (bool c2, bool t) {
        three = Constant <value = int64 {3}> () c2 = Less (i, three) t = Identity (c2) }> }""")
    assert steps_of(model) == [8]
    check(model, {"start": np.array(True)}, {"start": np.array(False)})


def test_numbers_of_steps_that_other_operations_read() -> None:
    model = parsed("""main (int64 n, float[2] x) => (float[2] last, int64[M] numbers) {
      last, numbers = Loop (n, "", x) <body = step (int64 i, bool c, float[2] s) => (bool c2, float[2] t, int64 o) {
        c2 = Identity (c) f = Cast <to = 1> (i) p = Tanh (s) t = Add (p, f) o = Mul (i, i) }> }""")
    assert steps_of(model) == [16]
    check(model, *({"n": np.int64(n), "x": np.ones(2, np.float32)} for n in (3, 0, 16, 33, -1, 1)))


@pytest.mark.parametrize("shape", ["N", "N,2", "3,N", "N,M"])
def test_states_of_unknown_size(shape: str) -> None:
    """An iteration of no step keeps the states, so that nothing corrects the results of a loop that did not run."""
    model = parsed(f"""main (int64 n, float[{shape}] x, float[{shape}] z)
      => (float[{shape}] last, float[{shape}] other) {{
      last, other = Loop (n, "", x, z) <body = step (int64 i, bool c, float[{shape}] s, float[{shape}] r)
        => (bool c2, float[{shape}] t, float[{shape}] q) {{
        c2 = Identity (c) f = Cast <to = 1> (i) p = Tanh (s) t = Add (p, f) q = Mul (r, f) }}> }}""")
    sizes = [[int(each) if each.isdigit() else size for each in shape.split(",")] for size in (3, 2, 0, 1, 5)]
    sets = [{"n": np.int64(n), "x": floats(*dims), "z": floats(*dims, seed=1)} for n in (3, 0, -1, 9) for dims in sizes]
    check(model, *sets)


def test_elements_by_the_number_of_the_step() -> None:
    """All steps of an iteration read their elements at once, also of tensors with more elements than steps."""
    model = parsed("""main (float[N,3] x, float[3,M] z, float[3] first) => (float[3] last, float[N,3] y) {
      zero = Constant <value = int64 {0}> ()  sizes = Shape (x)  n = Gather <axis = 0> (sizes, zero)
      last, y = Loop (n, "", first) <
        body = step (int64 i, bool c, float[3] s) => (bool c2, float[3] t, float[3] o) {
          c2 = Identity (c) a = Gather <axis = 0> (x, i) b = Gather <axis = 1> (z, i)
          p = Mul (s, a) q = Tanh (p) t = Add (q, b) o = Identity (t) }> }""")
    assert steps_of(model) == [16]
    check(model, *[{**sequence(length), "z": floats(3, length + 2)} for length in LENGTHS])


def test_one_step_beside_an_input_of_which_only_the_size_is_read() -> None:
    """It needs no loop, so that no body is left with an input that the runtime does not need."""
    model = parsed("""main (float[1,2] x, float[2] h) => (float[2] last, int64[1,1] sizes) {
      last, sizes = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] e) => (float[2] t, int64[1] n) {
        t = Tanh (s) n = Shape (e) }> (h, x) }""")
    assert steps_of(model) == []
    check(model, {"x": floats(1, 2), "h": floats(2, seed=1)})


def test_states_whose_final_values_are_not_read() -> None:
    """They have any values after the last step; the sum, which is read, keeps its own."""
    model = parsed("""main (float[N,3] x, float[3] first) => (float[3] sum, float[N,3] y) {
      unread, sum, y = Scan <num_scan_inputs = 1, body = step (float[3] s, float[3] q, float[3] e)
        => (float[3] t, float[3] r, float[3] o) {
          p = Mul (s, e) t = Sub (p, e) m = Tanh (t) r = Add (q, m) o = Abs (t) }> (first, first, x) }""")
    assert steps_of(model) == [16]
    check(model, *(sequence(length) for length in LENGTHS if length))


@pytest.mark.parametrize("outputs", ["float[A,3] y", "float[A,3] y, float[3] last"])
def test_a_while_loop_whose_final_value_is_not_read(outputs: str) -> None:
    model = parsed(f"""main (float[3] first, float limit, int64 most) => ({outputs}) {{
      axes = Constant <value_ints = [0]> ()
      last, y = Loop (most, "", first) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t, float[3] o) {{
        t = Add (s, s) u = Abs (t) sum = ReduceSum <keepdims = 0> (u, axes) d = Less (sum, limit) o = Neg (t) }}> }}""")
    assert max(steps_of(model)) > 1
    first = floats(3)
    bounds = ((1e3, 100), (0, 100), (1e3, 0), (1e9, 5), (50, 100), (1e3, 1))
    check(model, *({"first": first, "limit": np.float32(limit), "most": np.int64(most)} for limit, most in bounds))


ENDS = ("g = Identity (go)", "z = Abs (t) m = ReduceMax <keepdims = 0> (z) g = Less (m, limit)")


@pytest.mark.parametrize("condition", ENDS)
@pytest.mark.parametrize("outputs", ["float[3] c", "float[3] a, float[3] c"])
def test_states_that_are_exchanged_and_given_back_in_one_iteration(outputs: str, condition: str) -> None:
    """The runtime compiles no Loop with a state that never changes and an output of several steps."""
    model = parsed(f"""main (float[3] x, float[3] y, int64 n) => ({outputs}, float[N,3] rows)
      <float limit = {{0.99}}> {{
      yes = Constant <value = bool {{1}}> ()
      a, b, c, rows = Loop (n, yes, x, y, x) <body = step (int64 i, bool go, float[3] p, float[3] q, float[3] s)
        => (bool g, float[3] r, float[3] u, float[3] t, float[3] o) {{
          r = Identity (q) u = Identity (p) w = Mul (s, p) v = Add (w, q) t = Tanh (v) o = Neg (t)
          {condition} }}> }}""")
    assert steps_of(model) != []
    x, y = np.float32([0.5, -0.25, 0.125]), np.float32([0.25, 0.5, -0.5])
    check(model, *({"x": x, "y": y, "n": np.int64(count)} for count in (5, 0, 1, 4, 33, 2)))


def test_a_captured_tensor_as_final_value_beside_an_output_of_several_steps() -> None:
    """The runtime compiles no Loop with such a final value. Blocks of steps have it, though the loop may not run."""
    model = parsed("""main (float[3] x, int64[M,N] z) => (int64[M,N] last, float[N,1] y) <int64[1] one = {1}> {
      last, y = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
        body = step (int64[M,N] s, int64[M] column) => (int64[M,N] t, float[1] v) {
          v, i = TopK <axis = 0> (x, one) t = Identity (z) }> (z, z) }""")
    assert steps_of(model) != []
    check(model, *({"x": floats(3), "z": np.arange(2 * n).reshape(2, n)} for n in (5, 33, 1, 40)))
