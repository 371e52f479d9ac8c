"""Models whose inputs have no shape, or whose shapes have an unknown length, run with the rank that nodes force."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

from tests.harness import check, parsed

RNG = np.random.default_rng(3)
FILTERS = RNG.standard_normal((2, 3, 3, 3)).astype(np.float32)
IMAGES = RNG.standard_normal((2, 3, 6, 5)).astype(np.float32)


def test_an_image_without_shape() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Conv", ["a", "w"], ["y"])]
    ports = [helper.make_tensor_value_info("x", 1, None), helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], [numpy_helper.from_array(FILTERS, "w")])
    check(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), {"x": IMAGES},
          {"x": IMAGES[:1, :, :4]})


@pytest.mark.parametrize("op", ["Reshape", "Expand", "ConstantOfShape"])
def test_a_shape_of_unknown_length(op: str) -> None:
    """Also inside a body; Transpose forces three dimensions."""
    inputs = "s" if op == "ConstantOfShape" else "x, s"
    model = parsed(f"""main (float[N] x, int64[K] s, int64 n) => (float[] z, float[M] y) {{
          a = {op} ({inputs})
          b = Transpose <perm = [2, 0, 1]> (a)  z = ReduceSum <keepdims = 0> (b)
          y = Loop (n, "", x) <body = step (int64 i, bool c, float[L] t) => (bool d, float[L] u) {{
            d = Identity (c)
            e = {op} ({inputs})
            f = Transpose <perm = [2, 0, 1]> (e)  g = ReduceSum <keepdims = 0> (f)  u = Add (t, g) }}> }}""")
    x = RNG.standard_normal(6).astype(np.float32)
    shape = np.array([2, 3, 1]) if op == "Reshape" else np.array([2, 4, 6])
    check(model, {"x": x, "s": shape, "n": 2}, {"x": x, "s": shape[::-1] if op == "Reshape" else shape, "n": 1})
