"""Averages of quantised tensors that have few elements, without AVX-512."""

import numpy as np
import onnx
import pytest

from mo_loop import convert_model
from tests.harness import oracle
from tests.runtime.passes.test_dynamic_quantisation import results_of

KINDS = {"of channels": "GlobalAveragePool (b)", "of places": "AveragePool <kernel_shape = [5, 5]> (b)",
         "maximum of places": "MaxPool <kernel_shape = [5, 5]> (b)"}
BEHIND = {"nothing": "Identity (p)", "a view": "Flatten (p)", "a number": "Mul (p, half)"}
SHAPES = {"static": "1,3,6,6", "unknown image": "1,3,H,W"}


@pytest.mark.filterwarnings("ignore:.*may saturate")
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("pool", KINDS)
def test_averages_before_a_quantisation(pool: str, shape: str, signed: bool) -> None:
    """The weights are small, so that no sum saturates. A step of the second scale is 0.02."""
    random = np.random.default_rng(34)
    weights = random.integers(-50, 50, (3, 3, 1, 1)).astype(np.int8)
    feeds = {"x": random.uniform(-1, 3, (1, 3, 6, 6)).astype(np.float32)}
    for behind in BEHIND.values():
        is_matrix = "Flatten" in behind
        kind, zero = ("int8", "-10") if signed else ("uint8", "0")
        model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 13]>
            main (float[{SHAPES[shape]}] x) => (float[{"a,b" if is_matrix else "a,b,c,d"}] y)
            <float s1 = {{0.03}}, float s2 = {{0.02}}, float half = {{0.5}}, {kind} z = {{{zero}}}, int8 n = {{0}}> {{
                q = QuantizeLinear (x, s1, z)  d = DequantizeLinear (q, s1, z)
                v = DequantizeLinear (w, s2, n)  c = Conv (d, v)
                r = QuantizeLinear (c, s1, z)  b = DequantizeLinear (r, s1, z)
                p = {KINDS[pool]}  h = {behind}
                t = QuantizeLinear (h, s2, z)  e = DequantizeLinear (t, s2, z)
                y = {"Abs (e)" if is_matrix else "Conv (e, v)"}
            }}""")
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
        wanted = oracle(model, [feeds]).values[0][0][1]
        (found,) = results_of(convert_model(model), [feeds], "AVX2")
        assert np.abs(found - wanted).max() <= 0.05, behind
