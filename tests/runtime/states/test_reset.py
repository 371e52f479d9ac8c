"""A reset empties a cache, also if the next sequence begins with as many rows as the last one."""

from pathlib import Path

import numpy as np
import pytest

from mo_loop.api import convert_model, save_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.execution.runtime import PROPERTIES
from tests.harness import parsed

ONE_CACHE = """
step (float[batch, new, 4] x, float[batch, past, 4] past) => (float[batch, new, 4] y, float[batch, total, 4] present) {
  present = Concat <axis = 1> (past, x)  turned = Transpose <perm = [0, 2, 1]> (present)
  scores = MatMul (x, turned)  y = MatMul (scores, present) }"""
SIZES = [(1, 1), (2, 3), (5, 4), (5, 4), (2, 3), (2, 3), (3, 1)]
"""The sequences and the rows of each step."""
STEPS = 3


def lengths(path: str) -> list[list[int]]:
    """In the worker: the shape of the cache after each step."""
    import openvino

    request = openvino.Core().compile_model(path, "CPU", dict(PROPERTIES)).create_infer_request()
    model_inputs = {name for port in request.model_inputs for name in port.get_names()}
    found = []
    for batch, rows in SIZES:
        request.reset_state()
        for _ in range(STEPS):
            given = {"x": np.ones((batch, rows, 4), np.float32), "beam_idx": np.arange(batch, dtype=np.int32)}
            request.infer({name: array for name, array in given.items() if name in model_inputs})
            found.append(list(request.query_state()[0].state.shape))
    return found


@pytest.mark.parametrize("beams", [False, True])
def test_one_cache(beams: bool, tmp_path: Path) -> None:
    save_model(convert_model(parsed(ONE_CACHE, 17), stateful=True, beam_idx=beams), tmp_path / "model.xml")
    found = isolated(lengths, str(tmp_path / "model.xml"))
    assert found == [[batch, rows * step, 4] for batch, rows in SIZES for step in range(1, STEPS + 1)]
