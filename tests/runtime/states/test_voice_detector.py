"""A streaming detector of voice: states that an If reads and returns become variables."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest

from mo_loop.api import Model, convert_model, save_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.execution.runtime import PROPERTIES
from mo_loop.ops.control import If
from mo_loop.ops.recurrent import ReadValue
from tests.models.sources.voice_detector import HIDDEN, SAMPLES, voice_detector

STEPS = 5
STATES: Mapping[bool, Mapping[str, str]] = {False: {"state": "stateN"}, True: {"h": "hn", "c": "cn"}}
Feeds = Mapping[str, np.ndarray]
BOTH = pytest.mark.parametrize("split", [False, True])


def sequence(seed: int, batch: int, rate: int) -> list[Feeds]:
    """The inputs of all steps of one sequence."""
    pieces = np.random.default_rng(seed).standard_normal((STEPS, batch, SAMPLES[rate])).astype(np.float32)
    return [{"input": piece, "sr": np.array(rate, np.int64)} for piece in pieces]


SEQUENCES = [sequence(1, 1, 16000), sequence(2, 3, 8000), sequence(3, 2, 16000)]


def with_inputs(model: bytes, states: Mapping[str, str], sequences: Sequence[Sequence[Feeds]]) -> list[np.ndarray]:
    """In the worker: the output of each step by ONNX Runtime, whose caller carries the states."""
    import onnxruntime

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    found = []
    for steps in sequences:
        carried = {name: np.zeros((2, steps[0]["input"].shape[0], HIDDEN), np.float32) for name in states}
        for feeds in steps:
            output, *after = session.run(["output", *states.values()], {**feeds, **carried})
            carried = dict(zip(states, after, strict=True))
            found.append(output)
    return found


def with_variables(path: str, sequences: Sequence[Sequence[Feeds]]) -> tuple[list[str], list[np.ndarray]]:
    """In the worker: the names of the variables, and the output of each step; a reset precedes each sequence."""
    import openvino

    request = openvino.Core().compile_model(path, "CPU", dict(PROPERTIES)).create_infer_request()
    known = {name for port in request.model_inputs for name in port.get_names()}
    found = []
    for steps in sequences:
        request.reset_state()
        for feeds in steps:
            result = request.infer({name: array for name, array in feeds.items() if name in known})
            found.append(np.array(result["output"]))
    return [each.name for each in request.query_state()], found


def compare(model: onnx.ModelProto, converted: Model, states: Mapping[str, str], sequences: Sequence[Sequence[Feeds]],
            folder: Path) -> None:
    save_model(converted, folder / "model.xml")
    wanted = isolated(with_inputs, model.SerializeToString(), states, sequences)
    variables, found = isolated(with_variables, str(folder / "model.xml"), sequences)
    assert sorted(variables) == sorted(before + after for before, after in states.items())
    for number, (expected, output) in enumerate(zip(wanted, found, strict=True)):
        np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5, err_msg=f"step {number}")
    assert np.abs(wanted[1] - wanted[0]).max() > 1e-4  # the states matter


@BOTH
def test_states_leave_the_interface(split: bool, tmp_path: Path) -> None:
    model = voice_detector(split)
    converted = convert_model(model, stateful=True)
    assert converted.inputs == ["input", "sr"]
    assert converted.outputs == ["output"]
    compare(model, converted, STATES[split], SEQUENCES, tmp_path)


@BOTH
def test_one_rate(split: bool, tmp_path: Path) -> None:
    model = voice_detector(split)
    converted = convert_model(model, stateful=True, freeze={"sr": 16000})
    assert converted.inputs == ["input"]
    assert not converted.graph.has(If)
    assert len(list(converted.graph.of(ReadValue))) == len(STATES[split])
    compare(model, converted, STATES[split], [SEQUENCES[0], SEQUENCES[2]], tmp_path)


def test_given_pairs_alone(tmp_path: Path) -> None:
    model = voice_detector(split=True)
    converted = convert_model(model, transform=[("MakeStateful", {"param_res_names": {"c": "cn"}})])
    assert converted.inputs == ["input", "h", "sr"]
    assert converted.outputs == ["output", "hn"]


def test_both_states_without_a_reset_continue(tmp_path: Path) -> None:
    """Two sequences of one batch without a reset between them are one sequence."""
    model = voice_detector()
    joined = [*sequence(4, 2, 16000), *sequence(5, 2, 16000)]
    compare(model, convert_model(model, stateful=True), STATES[False], [joined], tmp_path)
