"""Products of Unsqueezes, whose dimensions of 1 are removed again."""

import pytest

from tests.harness import check, floats, parsed

TEXT = """main (float[M, N] x, float[M] y) => (float t, float e) {{
      zero = Constant <value_ints = [0]> ()
      one = Constant <value_ints = [1]> () first = Constant <value_ints = [0, 1]> ()
      {}
    }}"""


@pytest.mark.parametrize("body", [
    "a = Unsqueeze (x, zero) b = Unsqueeze (y, one) p = Mul (a, b) t = Squeeze (p, zero) e = Exp (p)",
    "a = Unsqueeze (x, zero) b = Unsqueeze (y, one) p = Mul (a, b) t = Transpose <perm = [1, 0, 2]> (p) e = Exp (p)",
    "a = Unsqueeze (x, first) b = Unsqueeze (y, one) p = Mul (a, b) t = Squeeze (p, first) e = Exp (t)",
    "a = Unsqueeze (x, first) b = Unsqueeze (y, one) p = Sub (b, a) t = Squeeze (p, zero) e = Exp (t)",
])
def test_values(body: str) -> None:
    model = parsed(TEXT.format(body))
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    check(model, *({"x": floats(*shape), "y": floats(shape[0])} for shape in ((4, 2), (1, 3), (4, 1), (0, 2))))


def test_values_of_a_product_with_an_input_whose_sizes_are_checked() -> None:
    """The check is a Reshape, through which the runtime moves the Squeeze too."""
    model = parsed("""main (float[1, 4, N, M] x, float[N] y) => (float[4, N, M, 1] t) {
      one = Constant <value_ints = [1]> ()
      b = Unsqueeze (y, one) p = Mul (x, b) t = Transpose <perm = [1, 2, 3, 0]> (p)
    }""")
    check(model, *({"x": floats(1, 4, *sizes), "y": floats(sizes[0])} for sizes in ((2, 3), (1, 3), (4, 1))))
