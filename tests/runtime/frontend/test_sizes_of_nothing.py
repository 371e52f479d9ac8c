"""Tensors without elements that the runtime computes incorrectly in the obvious form: one small model for each rule."""

import pytest

from tests.harness import check, floats, parsed

pytestmark = pytest.mark.keeps_loops


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
