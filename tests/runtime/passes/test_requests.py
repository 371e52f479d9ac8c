"""Inference requests of one compiled model, which have memory of their own for inputs and outputs."""

from pathlib import Path

import numpy as np
import pytest

from mo_loop.api import convert_model, save_model
from mo_loop.compare.execution.runtime import compile_ir
from tests.harness import floats, parsed

SECOND = """
t = Loop (n, "", x) <body = b (int64 i, bool c, float[N,4] p) => (bool d, float[N,4] q) {
  d = Identity (c) r = Mul (p, last) q = Sin (r) }>"""


@pytest.mark.parametrize("returned", ["y = Identity (last)", "y = Unsqueeze (last, zero)"])
def test_a_loop_reads_what_another_loop_of_its_request_returns(returned: str, tmp_path: Path) -> None:
    """The runtime gave the second loop the memory of the request before."""
    shape = "1,N,4" if "Unsqueeze" in returned else "N,4"
    model = parsed(f"""main (float[N,4] x, int64 n) => (float[{shape}] y, float[N,4] t) <int64[1] zero = {{0}}> {{
      last = Loop (n, "", x) <body = a (int64 i, bool c, float[N,4] p) => (bool d, float[N,4] q) {{
        d = Identity (c) r = Add (p, p) q = Tanh (r) }}>
      {returned} {SECOND} }}""", 19)
    save_model(convert_model(model), tmp_path / "m.xml")
    compiled = compile_ir(tmp_path / "m.xml")
    first = compiled.request
    for number in range(4):
        compiled.request = compiled.model.create_infer_request() if number % 2 else first
        x = floats(5, 4, seed=number)
        last = t = x
        for _ in range(3):
            last = np.tanh(last + last)
        for _ in range(3):
            t = np.sin(t * last)
        (_, made), (_, read) = compiled.run({"x": x, "n": np.int64(3)})
        np.testing.assert_allclose(made.reshape(5, 4), last, rtol=1e-5)
        np.testing.assert_allclose(read, t, rtol=1e-5)
