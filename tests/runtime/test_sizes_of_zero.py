"""Sizes that become 0: what the IR refuses because the runtime would end the process or be wrong."""

from pathlib import Path

import numpy as np
import pytest

from tests.cases import read_cases
from tests.harness import floats, with_weights
from tests.runtime.test_sizes import converted
from tests.runtime.test_sizes import judge as judge

W = floats(4, 4)


@pytest.mark.parametrize("nodes", [
    "y = Add (x, x)", "y = MatMul (x, w)", "t = Transpose (x)  y = Softmax (t)",
    "u = Unsqueeze (x, axes)  v = Sin (u)  y = Squeeze (v, axes)", "s = Shape (x)  y = Reshape (x, s)",
])
def test_sizes_that_become_0(nodes: str, tmp_path: Path) -> None:
    text = f"main (float[2,3] x) => (y) <float[3,1] w = {{1,2,3}}, int64[2] axes = {{0,2}}> {{ {nodes} }}"
    converted(with_weights(text), tmp_path)
    assert "VariadicSplit" not in (tmp_path / "model.xml").read_text(encoding="utf-8")
    judge(with_weights(text), {"x": np.zeros((0, 3), np.float32)})


read_cases(globals())
