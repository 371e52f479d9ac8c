"""Tensors without elements that the runtime computes incorrectly in the obvious form: one small model for each rule."""

import pytest

from tests.harness import boolean, check, floats, i64, parsed

pytestmark = pytest.mark.keeps_loops


def test_grown_to_no_columns_before_operations() -> None:
    """The runtime moves the Broadcast after them, and the 0 that meets the 1 of `c` becomes 1."""
    check(parsed("""main (float[1,1] c, float[4,N] x) => (float[A,B] y) <float[1,1] half = {0.5}> {
          sizes = Shape (x)  grown = Expand (half, sizes)  least = Min (c, grown)
          y = Sub (least, c) }"""), *({"c": floats(1, 1, seed=n), "x": floats(4, n)} for n in (3, 0, 1, 0)))


def test_a_dimension_of_1_moved_past_a_size_of_0() -> None:
    """The runtime replaces the Transpose by a Reshape, and misreads the 0 in its sizes."""
    model = parsed("""main (float[1,N,M] x) => (float[A,B,C] y) {
          e = Exp (x)  moved = Transpose <perm = [1, 2, 0]> (e)  y = Neg (moved) }""")
    check(model, *({"x": floats(1, n, 2)} for n in (3, 0, 1, 0)))


@pytest.mark.parametrize("shape", ["0,N", "N,0", "1,N,0", "N,1,0", "2,0,N", "N,M,0"])
@pytest.mark.parametrize(
    "nodes",
    ["y = Unsqueeze (x, zero)", "t = Unsqueeze (x, zero)  r = Relu (t)  y = Squeeze (r, zero)",
     "t = Unsqueeze (x, zero)  y = Shape (t)", "y = Flatten <axis = 1> (x)", "y = Transpose (x)",
     "axis = Constant <value_ints = [1]> ()  y = ReduceSum <keepdims = 0> (x, axis)"],
)
def test_a_size_beside_a_0_that_is_known(shape: str, nodes: str) -> None:
    """The runtime makes 0 of the sizes N and M, if 0 is in the file."""
    model = parsed(f"main (float[{shape}] x) => (y) {{ zero = Constant <value_ints = [0]> ()  {nodes} }}")
    sizes = ([int(each) if each.isdigit() else n for each in shape.split(",")] for n in (2, 3, 1))
    check(model, *({"x": floats(*each)} for each in sizes))


def test_sizes_that_pass_from_a_loop_to_the_next() -> None:
    """OpenVINO 2024.6 does not know the 3 after the first loop, and does not set it after the second one either."""
    model = parsed("""main (float[N,3] x, bool go, int64[1] k, int64 steps) => (float[A,B,C] rows, float[D,E,F,G] y) {
          zero = Constant <value_ints = [0]> ()  one = Constant <value_ints = [1]> ()
          five = Constant <value_int = 5> ()
          last, rows = Loop (steps, "", x) <
            body = first (int64 i, bool c, float[N,3] s) => (bool d, float[N,3] t, float[?,3] r) {
            d = Identity (c)  u = Sub (s, x)  t = Tanh (u)  r = Slice (t, zero, k) }>
          end, y = Loop (five, go, rows) <
            body = second (int64 i, bool c, float[?,?,3] s) => (bool d, float[?,?,3] t, float[?,?,3] r) {
            d = Identity (c)  t = Tanh (s)  u = Slice (t, zero, k)  r = Slice (u, zero, k, one) }> }""")
    runs = ((False, 2), (True, 2), (False, 2), (True, 0), (False, 0), (True, 3))
    x, k = floats(4, 3), i64([2])
    check(model, *({"x": x, "go": boolean(go), "k": k, "steps": i64(steps)} for go, steps in runs))
