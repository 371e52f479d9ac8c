"""ONNX models whose caller carries states, and their IR with variables, made here by editing the converted graph.

    path = saved(parsed(ATTENTION), folder)
    ir = with_states(path, {"past": "present"}, beam=True)         # what a right conversion gives
    ir = with_states(path, {"past": "present"}, fault="assign")    # an IR with a planted fault
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.api import Model, convert_model, save_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.graph import Graph, Value
from mo_loop.graph.dimension import Dim, fresh
from mo_loop.graph.types import f32, i32
from tests.texts import texts

TEXTS = texts(__file__)


def numbers(seed: int, count: int) -> str:
    """Weights, as text of a model."""
    return ", ".join(f"{each:.3f}" for each in np.random.default_rng(seed).standard_normal(count))


ATTENTION = TEXTS["attention"]
ATTENTION = ATTENTION.replace("TABLE", numbers(1, 88)).replace("PLACES", numbers(2, 128))
"""Attention with one layer: keys and values are caches that grow along axis 2."""

HISTORY = TEXTS["history"]
"""Three caches that grow along axis 1, without attention, which the device would fuse with them.

The CPU device of OpenVINO 2026.4 does not compile a cache in a Concat if nothing else reads its computed initial value
("Invalid graph status"), so there are at least two caches with one initial value in all tests.
"""

CELL = TEXTS["cell"]
"""A recurrent step: the state has one size, and nothing grows."""

RECURRENT = TEXTS["recurrent"]
RECURRENT = RECURRENT.replace("INPUT", numbers(3, 24)).replace("STATE", numbers(4, 16))
"""A layer over a sequence along axis 0."""

SCANNED = TEXTS["scanned"]
"""Running sums along axis 1."""

HISTORIES = {"past_a": "present_a", "past_b": "present_b", "past_c": "present_c"}
CACHES = {"past_key": "present_key", "past_value": "present_value"}


def one_step(source: Path, shapes: str, *, keep_initial: bool = False, target: str = "one_step.xml") -> Path:
    """The path of the IR that OpenVINO's LowLatency2 makes of a model; `shapes` give its sequence one step."""
    whole = source.with_name("whole.xml")
    save_model(convert_model(source, input=shapes), whole)
    path = source.with_name(target)
    isolated(_low_latency, str(whole), str(path), keep_initial)
    return path


def _low_latency(source: str, target: str, keep_initial: bool) -> None:
    """In the worker. The variables begin with zeros, or with the inputs of the model."""
    import openvino
    from openvino.passes import LowLatency2, Manager

    model = openvino.Core().read_model(source)
    manager = Manager()
    manager.register_pass(LowLatency2(not keep_initial))
    manager.run_passes(model)
    openvino.save_model(model, target, compress_to_fp16=False)


def with_states(source: Path, pairs: Mapping[str, str], *, axis: int | None = 2, beam: bool = False, fault: str = "",
                target: str = "stateful.xml") -> Path:
    """The path of an IR whose `pairs` of inputs and outputs are variables; they grow along `axis`.

    `fault`: "assign" stores another value in the last variable, "short" one without its last element along the axis,
    "initial" begins all with ones, "beam" does not reorder it, "lost" begins it anew in each step,
    "cut" has an empty cache in place of the variable.
    """
    graph = convert_model(source).graph
    rows = ops.Parameter(graph=graph, dtype=i32, shape=(fresh(),), name="beam_idx") if beam else None
    if rows is not None:
        rows.output.add_name("beam_idx")
    first = graph.parameters[0].output
    for place, (name, output) in enumerate(pairs.items()):
        is_last = place == len(pairs) - 1
        _carry(graph, name, output, axis, first, rows, fault if is_last or fault == "initial" else "")
    path = source.with_name(target)
    save_model(Model(graph), path)
    return path


def _carry(graph: Graph, name: str, output: str, axis: int | None, like: Value, rows: Any, fault: str) -> None:
    parameter = next(each for each in graph.parameters if name in (each.name, *each.output.names))
    result = next(each for each in graph.results if output in (*each.output_names, *each.value.names))
    shape = parameter.output.shape
    assert shape is not None
    zero = ops.Constant(np.float32(1.0 if fault == "initial" else 0.0), graph=graph)
    sizes: list[Any] = [dim if isinstance(dim, int) else 0 for dim in shape]
    batch = ops.Gather(ops.ShapeOf(like), [0], 0)
    if axis is not None and fault == "initial":
        sizes[axis] = 1
    rest = ops.Constant(np.array(sizes[1:], np.int64), graph=graph)
    initial = ops.Broadcast(zero, ops.Concat(batch, rest, axis=0))
    declared = tuple(fresh() if isinstance(dim, Dim) else dim for dim in shape)
    about: dict[str, Any] = {"variable_id": name + output, "variable_type": f32, "variable_shape": declared}
    read = initial if fault == "cut" else ops.ReadValue(initial, **about)
    value = read.output
    if rows is not None and fault != "beam":
        value = ops.Gather(value, rows, 0).output
    if fault == "lost":
        value = ops.Multiply(value, np.float32(0)).output
    parameter.output.replace_with(value)
    stored = result.value
    if fault == "assign":
        stored = ops.Multiply(stored, np.float32(1.5)).output
    if fault == "short":
        stored = ops.Slice(stored, [0], [-1], [1], [axis]).output
    if fault != "cut":
        ops.Assign(stored, **about)
    graph.results.remove(result)
    graph.remove(result)
    graph.parameters.remove(parameter)
    graph.remove(parameter)
