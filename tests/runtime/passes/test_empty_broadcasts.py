"""Broadcasts that are moved after element-wise operations, among the other rules."""

import pytest

from mo_loop import conversion
from tests.harness import check, floats, parsed


def test_a_constant_beside_a_moved_broadcast_gets_its_last_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operand that replaces the Broadcast has another rank than the constant: the rules of constants
    come after the move."""
    monkeypatch.setattr(conversion, "CHECK_PASSES", True)
    model = parsed("""main (float[1] x, float[N, M] z) => (float[?, ?] y) <float[1, 1] c = {2.0}> {
          s = Shape (z)  e = Expand (x, s)  y = Max (e, c) }""")
    check(model, *({"x": floats(1), "z": floats(*shape)} for shape in ((2, 3), (0, 3), (1, 1))))
