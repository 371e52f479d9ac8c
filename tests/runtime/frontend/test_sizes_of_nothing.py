"""Tensors without elements that the runtime gets wrong in the obvious form: small models, each for one rule."""

from __future__ import annotations

from tests.harness import check, floats, parsed


def test_grown_to_no_columns_before_operations() -> None:
    """The runtime moves the Broadcast behind them, and makes 1 of the 0 that meets the 1 of `c`."""
    model = parsed("""
        main (float[1,1] c, float[4,N] x) => (float[A,B] y) <float[1,1] half = {0.5}> {
          sizes = Shape (x)
          grown = Expand (half, sizes)
          least = Min (c, grown)
          y = Sub (least, c)
        }""")
    check(model, *({"c": floats(1, 1, seed=n), "x": floats(4, n)} for n in (3, 0, 1, 0)))


def test_a_dimension_of_1_moved_past_none() -> None:
    """The runtime makes a Reshape of the Transpose, to sizes of which it misreads the 0."""
    model = parsed("""
        main (float[1,N,M] x) => (float[A,B,C] y) {
          e = Exp (x)
          moved = Transpose <perm = [1, 2, 0]> (e)
          y = Neg (moved)
        }""")
    check(model, *({"x": floats(1, n, 2)} for n in (3, 0, 1, 0)))
