"""Decoders with caches in variables: the numbers of explicit caches, and attention that holds its caches."""

from collections.abc import Iterator

import numpy as np
import onnx
import pytest

from tests import MODELS
from tests.runtime.states.stepping import Outcome, Sequence, stepped

LAYERS = 2
CROSS = {"t5_step_dynamo": 2, "whisper_step_dynamo": 2}
"""The attentions to an encoder, whose keys are not a cache."""


def run(name: str, beams: bool) -> Outcome:
    model = onnx.load(MODELS / "transformers" / f"{name}.onnx")
    random = np.random.default_rng(7)
    return stepped(model, [Sequence(batch, list(_steps(model, batch, random))) for batch in (2, 1, 2)], beams=beams)


def _steps(model: onnx.ModelProto, batch: int, random: np.random.Generator) -> Iterator[dict[str, np.ndarray]]:
    """Eight tokens; the states of an encoder stay the same."""
    states: dict[str, np.ndarray] = {}
    for port in model.graph.input:
        if port.name == "encoder_states":
            dims = port.type.tensor_type.shape.dim
            shape = [dim.dim_value or {"batch": batch}.get(dim.dim_param, 6) for dim in dims]
            states[port.name] = random.standard_normal(shape).astype(np.float32)
    for _ in range(8):
        yield {"input_ids": random.integers(0, 50, (batch, 1)), **states}


@pytest.mark.parametrize("name", ["gpt2_step_dynamo", "llama_step_dynamo", "t5_step_dynamo", "whisper_step_dynamo"])
@pytest.mark.parametrize("beams", [False, True])
def test_step_models(name: str, beams: bool) -> None:
    found = run(name, beams)
    assert found.worst < 1e-5
    assert found.fused == LAYERS
    assert found.kinds.get("Softmax", 0) == CROSS.get(name, 0)
    assert found.kinds.get("MatMul", 0) == 2 * CROSS.get(name, 0)
