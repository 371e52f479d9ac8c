"""Runs a model with states step by step, and ONNX Runtime with explicit states.

    found = stepped(model, [Sequence(2, [{"ids": ids}, ...]), ...], beams=True)
    found.fused                           # the operations of the runtime that hold caches
    found.worst                           # the largest difference, relative to numbers above 1

Each sequence begins with zeros; caches begin empty. With `beams` the sequences are reordered before each step but the
first. Native code runs in a worker process.
"""

import tempfile
from collections.abc import Callable, Mapping
from collections.abc import Sequence as Many
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from mo_loop.api import Model, convert_model, save_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.ops.recurrent import ReadValue
from tools.runtimes import chosen_interpreter

Array = np.ndarray[Any, Any]
Feeds = dict[str, Array]

SETTINGS = {"INFERENCE_PRECISION_HINT": "f32"}
"""The precision of fused caches is that of the IR."""


@dataclass(frozen=True)
class Sequence:
    """The inputs of each step, for `batch` sequences."""

    batch: int
    steps: Many[Mapping[str, Any]]


@dataclass(frozen=True)
class Outcome:
    """The operations that the runtime executes, by kind, and the largest difference."""

    kinds: Mapping[str, int]
    worst: float

    @property
    def fused(self) -> int:
        return self.kinds.get("ScaledDotProductAttention", 0)


def stepped(model: onnx.ModelProto, sequences: Many[Sequence], *, beams: bool = False, compress_to_fp16: bool = False,
            pairs: Mapping[str, str] | None = None, prepared: Callable[[Feeds], Feeds] = dict,
            **options: Any) -> Outcome:
    """Convert with states, those that are given and those that are found, and compare each step of each sequence.

    `options` are more arguments of convert_model; `prepared` gives the inputs that they make of those of a step.
    AssertionError for another shape or name.
    """
    converted = convert_model(model, stateful=True, beam_idx=beams, stateful_pairs=pairs, **options)
    states = pairs_of(converted, model)
    runs = [_with_orders(each, seed) if beams else list(each.steps) for seed, each in enumerate(sequences)]
    sources = [[prepared(step) for step in run] for run in runs]
    wanted = isolated(explicit, model.SerializeToString(), states, [each.batch for each in sequences], sources)
    if chosen_interpreter() is not None:
        pytest.skip("states run on the release of this environment")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        save_model(converted, path, compress_to_fp16=compress_to_fp16)
        kinds, found = isolated(stateful, path, runs)
    worst = 0.0
    for given, expected in zip(found, wanted, strict=True):
        assert given.keys() == expected.keys() - set(states.values())
        for name, array in given.items():
            assert array.shape == expected[name].shape, name
            assert np.array_equal(np.isnan(array), np.isnan(expected[name])), name
            difference = np.abs(np.nan_to_num(array) - np.nan_to_num(expected[name])) if array.size else np.zeros(1)
            scale = max(1.0, float(np.nanmax(np.abs(expected[name]), initial=1.0)))
            worst = max(worst, float(difference.max()) / scale)
    return Outcome(kinds, worst)


def pairs_of(converted: Model, model: onnx.ModelProto) -> dict[str, str]:
    """The states: input -> output, from the ids of the variables."""
    ids = {node.variable_id for node in converted.graph.of(ReadValue)}
    ports = [(before.name, after.name) for before in model.graph.input for after in model.graph.output]
    found = {before: after for before, after in ports if before + after in ids}
    assert len(found) == len(ids)
    return found


def _with_orders(sequence: Sequence, seed: int) -> list[Feeds]:
    random = np.random.default_rng(seed)
    steps: list[Feeds] = []
    for number, step in enumerate(sequence.steps):
        order = random.integers(0, sequence.batch, sequence.batch) if number else np.arange(sequence.batch)
        steps.append({**step, "beam_idx": order.astype(np.int32)})
    return steps


# -- in the worker


def explicit(model: bytes, pairs: Mapping[str, str], batches: list[int], runs: list[list[Feeds]]) -> list[Feeds]:
    """All outputs of every step, by ONNX Runtime."""
    import onnxruntime

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    axes = {each.name: _batch_axis(each.shape) for each in session.get_inputs()}
    found: list[Feeds] = []
    for batch, steps in zip(batches, runs, strict=True):
        states = {each.name: _zeros(each, batch) for each in session.get_inputs() if each.name in pairs}
        for step in steps:
            feeds = dict(step)
            order = feeds.pop("beam_idx", None)
            if order is not None:
                states = {name: _ordered(state, order, axes[name]) for name, state in states.items()}
            outputs = dict(zip(names, session.run(None, {**feeds, **states}), strict=True))
            states = {before: outputs[after] for before, after in pairs.items()}
            found.append(outputs)
    return found


def _batch_axis(shape: list[Any]) -> int | None:
    return shape.index("batch") if "batch" in shape else None


def _ordered(state: Array, order: Array, axis: int | None) -> Array:
    return state if axis is None else np.take(state, order, axis)


def _zeros(port: Any, batch: int) -> Array:
    """A state before the first step: symbols other than `batch` count what is appended."""
    names = {"float": "float32", "float16": "float16", "int32": "int32", "int64": "int64", "bool": "bool"}
    shape = [dim if isinstance(dim, int) else batch if dim == "batch" else 0 for dim in port.shape]
    return np.zeros(shape, names[port.type.removeprefix("tensor(").removesuffix(")")])


def stateful(path: Path, runs: list[list[Feeds]]) -> tuple[dict[str, int], list[Feeds]]:
    """How often the runtime executes each kind of operation, and the outputs of every step."""
    import openvino

    compiled = openvino.Core().compile_model(path, "CPU", SETTINGS)
    kinds: dict[str, int] = {}
    for node in compiled.get_runtime_model().get_ops():
        kind = node.get_rt_info()["layerType"].astype(str)
        kinds[kind] = kinds.get(kind, 0) + 1
    request = compiled.create_infer_request()
    found: list[Feeds] = []
    for steps in runs:
        request.reset_state()
        for step in steps:
            outputs = request.infer(step)
            found.append({port.get_any_name(): np.array(outputs[port]) for port in compiled.outputs})
    return kinds, found
