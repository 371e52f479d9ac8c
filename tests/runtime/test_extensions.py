"""Models converted with translators and passes of the user: OpenVINO gives the right numbers."""

from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.errors import MoLoopError
from mo_loop.extensions import Extensions
from tests.harness import check, floats
from tests.unit.test_extensions import EXAMPLE, NESTED, kinds, scale


def nested(x: Any, w: Any, n: int) -> Any:
    for _ in range(n):
        b = x * np.float32(0.5)
        for _ in range(3):
            b = (b - w) * (b - w)
        x = b / (1 + np.exp(-b))
    return x


@pytest.mark.keeps_loops
def test_the_example_computes_what_it_says() -> None:
    """Translators in a body, a body of their own with a capture through two levels, and both passes."""
    feeds = [{"x": floats(3), "w": floats(3, seed=1) * np.float32(0.3), "n": n} for n in (2, 0, 1)]
    expected = [[("y", nested(**feed))] for feed in feeds]
    check(scale(NESTED), *feeds, expected=expected, extensions=EXAMPLE)
    found = kinds(scale(NESTED), extensions=EXAMPLE)
    assert found.count("Loop") == 2 and {"Swish", "SquaredDifference"} <= set(found)
    assert not {"Sigmoid", "Subtract"} & set(found)


def test_versions() -> None:
    """The newest `since` not above the version that the model imports."""
    second = "main (float[N] x, float f) => (float[N] y) { y = com.example.Scale (x, f) }"
    check(scale(), {"x": floats(3)}, expected=[[("y", 3 * floats(3))]], extensions=EXAMPLE)
    for version in (2, 9):
        feed = {"x": floats(3), "f": np.float32(5)}
        check(scale(second, version), feed, expected=[[("y", 5 * floats(3))]], extensions=EXAMPLE)
    with pytest.raises(MoLoopError, match=r"ML227.*factor"):
        convert_model(scale(version=2), extensions=EXAMPLE)


FUNCTION = """main (float[N] x) => (float[N] y) { y = com.example.Outer (x) }
<domain: "com.example", opset_import: ["": 18, "com.example": 1]>
Outer (a) => (b) { [inner] b = com.example.Scale <factor = 2.0> (a) }"""


def test_inside_functions_and_instead_of_them() -> None:
    check(scale(FUNCTION), {"x": floats(3)}, expected=[[("y", 2 * floats(3))]], extensions=EXAMPLE)

    def register(extensions: Extensions) -> None:
        extensions.translates("Outer", domain="com.example")(lambda a: ops.Exp(a))

    assert kinds(scale(FUNCTION), extensions=register) == ["Exp"]


def test_tensors_as_attributes() -> None:
    """They are Tensors, which an operation accepts as an input."""

    def register(extensions: Extensions) -> None:
        extensions.translates("Biased", domain="com.example")(lambda x, *, bias: ops.Add(x, bias))

    text = "main (float[2] x) => (float[2] y) { y = com.example.Biased <bias = float[2] {1.0, 2.0}> (x) }"
    expected = [[("y", floats(2) + np.float32([1, 2]))]]
    check(scale(text), {"x": floats(2)}, expected=expected, extensions=register)
