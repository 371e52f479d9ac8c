"""Captured values of bodies."""

import pytest

from tests.harness import check, floats, parsed

pytestmark = pytest.mark.keeps_loops

X = floats(2, 3, seed=1)


@pytest.mark.parametrize("flag", [True, False])
def test_two_names_of_one_captured_value(flag: bool) -> None:
    """`same` is `x`: a branch that reads both has one Parameter for them."""
    model = parsed("""g (float[2,3] x, bool flag) => (float[2,3] y) {
      same = Identity (x)
      y = If (flag) <then_branch = yes () => (float[2,3] a) { a = Add (x, same) },
                     else_branch = no () => (float[2,3] b) { n = Neg (same) b = Mul (n, x) }> }""")
    check(model, {"x": X, "flag": flag}, {"x": X + 1, "flag": not flag})
