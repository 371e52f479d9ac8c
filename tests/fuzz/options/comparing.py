"""Converts a model with a pair of options and holds it against ONNX Runtime with inputs that numpy prepares."""

import re
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from mo_loop.api import convert_model, save_model
from mo_loop.errors import MoLoopError
from tests.fuzz.options.choices import (
    CHOICES,
    CONDITIONS,
    FITTING,
    HAS_ONE_STEP,
    HAS_OTHER_STATES,
    MAKING_STATES,
    Plan,
    planned,
)
from tests.fuzz.options.subjects import KINDS, Array, Rng, drawn
from tests.fuzz.states.comparing import difference, stepped_on

RIGHT, WRONG, REFUSED, SILENT = "right", "wrong", "refused", "silent"
SEQUENCES, STEPS = 2, 3
Feeds = dict[str, Array]


@dataclass(frozen=True)
class Answer:
    """The result for one pair: `silent` if an option of it changed nothing and nothing reports it."""

    status: str
    label: str
    text: str = ""


def pair(seed: int, number: int) -> tuple[Rng, Plan]:
    """The plan of this number; the same for the same seed."""
    rng = np.random.default_rng([seed, number])
    while True:
        kind = str(rng.choice(list(KINDS)))
        fitting = [name for name in CHOICES if kind in FITTING.get(name, KINDS)]
        names = tuple(str(each) for each in rng.choice(fitting if rng.random() < 0.9 else list(CHOICES), 2, False))
        makes = len(set(names) & set(MAKING_STATES))
        is_stepped = "transform" in names
        is_unclear = (makes and (is_stepped or kind in HAS_OTHER_STATES)) or (is_stepped and kind in HAS_ONE_STEP)
        if {"scale", "scale_values"} == set(names) or makes == 2 or is_unclear:
            continue
        plan = planned(rng, drawn(rng, kind), names)
        if plan is not None:
            return rng, plan


def compare(task: tuple[int, int, str | None]) -> Answer:
    """Convert, run and compare the pair of a seed and number on the release of an interpreter."""
    seed, number, python = task
    rng, plan = pair(seed, number)
    label = f"{number}: {plan.subject.kind} with {' and '.join(map(repr, plan.by_option.values()))}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.xml")
        try:
            said = _convert(plan, plan.arguments, path)
        except MoLoopError as error:
            return Answer(REFUSED if error.exit_code in (2, 3) and error.code else WRONG, label, str(error))
        text = _compared(rng, plan, path, python)
        if text:
            return Answer(WRONG, label, text)
        without = "" if said else _without_effect(plan, path, Path(folder, "other.xml"))
    return Answer(SILENT, label, f"{without} changes nothing") if without else Answer(RIGHT, label)


def _convert(plan: Plan, arguments: dict[str, Any], path: Path) -> list[str]:
    """Write the IR; returns the warnings."""
    arguments = dict(arguments)
    compress = arguments.pop("compress_to_fp16", False)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        save_model(convert_model(plan.subject.model, **arguments), path, compress_to_fp16=compress)
    return [str(each.message) for each in heard]


def _without_effect(plan: Plan, path: Path, other: Path) -> str:
    """The first option without which the files are the same."""
    for name in plan.names:
        if name in CONDITIONS or (name == "unroll" and plan.is_stepped):  # LowLatency2 does what it asks for
            continue
        arguments: dict[str, Any] = {}
        for each in plan.names:
            arguments |= plan.by_option[each] if each != name else {}
        try:
            _convert(plan, arguments, other)
        except MoLoopError:
            continue
        files = [(each.read_text("utf-8").rpartition("</edges>")[0], each.with_suffix(".bin").read_bytes())
                 for each in (path, other)]
        is_unrolled = name == "unroll" and not re.search('type="(Loop|TensorIterator)"', files[0][0])
        if files[0] == files[1] and not is_unrolled:  # other passes may leave no loop either
            return name
    return ""


# -- numbers


def _compared(rng: Rng, plan: Plan, path: Path, python: str | None) -> str:
    runs = [list(_steps(rng, plan)) for _ in range(SEQUENCES)]
    sequences = [[_of_ir(plan, feeds) for feeds in run] for run in runs]
    try:
        found = stepped_on(path, sequences, python, path.parent)
    except Exception as error:
        return f"the runtime: {type(error).__name__}: {str(error)[:300]}"
    session, names = _session(plan)
    for place, (run, steps) in enumerate(zip(runs, found, strict=True)):
        wanted = _whole(plan, session, names, run) if plan.is_stepped else _each(plan, session, names, run)
        for name in _outputs(plan):
            arrays = [step[list(_outputs(plan)).index(name)] for step in steps]
            each = [([array], expected) for array, expected in zip(arrays, wanted[name], strict=False)]
            sides = [(arrays, wanted[name])] if plan.is_stepped else each
            for number, (actual, expected) in enumerate(sides):
                text = difference(actual, plan.in_layout(name, expected), plan.tolerance)
                if text:
                    return f"sequence {place}, step {number}, output {name}: {text}"
    return ""


def _outputs(plan: Plan) -> tuple[str, ...]:
    """The outputs of the IR."""
    states = set(plan.subject.states.values()) if plan.has_states else set()
    return tuple(name for name in plan.outputs or plan.subject.outputs if name not in states)


def _steps(rng: Rng, plan: Plan) -> Iterator[Feeds]:
    """The tensors of each step in the layout of the model, before they are prepared."""
    fixed = {name: plan.port(name).array(rng, plan.sizes()) for name in plan.ports if name not in plan.subject.steps}
    for _ in range(STEPS):
        sizes = {**plan.sizes(), **({"T": 1} if plan.is_stepped else {})}
        feeds = {name: plan.port(name).array(rng, sizes) for name in plan.ports}
        if plan.is_stepped:
            feeds |= fixed
        if plan.has_beams:
            count = plan.batch or plan.sizes()["N"] if "N" in _dims(plan) or plan.batch else _static_batch(plan)
            feeds["beam_idx"] = np.arange(count, dtype=np.int32)
        yield feeds


def _dims(plan: Plan) -> set[Any]:
    return {dim for port in plan.ports.values() for dim in port.dims}


def _static_batch(plan: Plan) -> int:
    sizes = [port.dims[axis] for port in plan.ports.values() if (axis := port.axis("n")) is not None]
    return int(sizes[0])


def _of_ir(plan: Plan, feeds: Feeds) -> Feeds:
    given = {plan.renamed.get(name, name): plan.in_layout(name, array)
             for name, array in feeds.items() if name in plan.inputs or name == "beam_idx"}
    return given


def _session(plan: Plan) -> tuple[Any, list[str]]:
    """ONNX Runtime with the cut model, whose inputs have any sizes, and the outputs that are compared or carried."""
    import onnxruntime

    model = onnx.ModelProto()
    model.CopyFrom(plan.subject.model)
    graph = model.graph
    for name, array in plan.frozen.items():
        graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    if plan.cut:
        for node in [node for node in graph.node if plan.cut in node.output]:
            graph.node.remove(node)
        if plan.cut not in plan.frozen:
            rank = len(plan.ports[plan.cut].dims)
            graph.input.append(onnx.helper.make_tensor_value_info(plan.cut, 1, [None] * rank))
    for port in graph.input:
        for dim in port.type.tensor_type.shape.dim:
            dim.Clear()
    for each in [each for each in graph.input if each.name not in plan.ports]:
        graph.input.remove(each)
    names = list(dict.fromkeys([*_outputs(plan), *(plan.subject.states.values() if plan.has_states else ())]))
    for each in list(graph.output):
        graph.output.remove(each)
    graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names)
    if plan.cut:  # nodes that only the replaced input needs
        known = {each.name for each in (*graph.input, *graph.initializer)} | {o for n in graph.node for o in n.output}
        dead = [node for node in graph.node if any(name and name not in known for name in node.input)]
        for node in dead:
            graph.node.remove(node)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options), names


def _each(plan: Plan, session: Any, names: list[str], run: list[Feeds]) -> dict[str, list[Array]]:
    """The outputs of each step; states begin with zeros."""
    wanted: dict[str, list[Array]] = {name: [] for name in names}
    states: Feeds = {}
    if plan.has_states:
        states = {name: plan.port(name).zeros(plan.sizes(), plan.subject.growing)
                  for name in plan.subject.states if name in plan.ports}
    for feeds in run:
        given = {name: plan.prepared(name, array) for name, array in feeds.items() if name in plan.ports} | states
        outputs = dict(zip(names, session.run(names, given), strict=True))
        states = {name: outputs[plan.subject.states[name]] for name in states}
        for name, array in outputs.items():
            wanted[name].append(array)
    return wanted


def _whole(plan: Plan, session: Any, names: list[str], run: list[Feeds]) -> Feeds:
    """The outputs of one run over the whole sequence."""
    steps = [{name: plan.prepared(name, array) for name, array in feeds.items()} for feeds in run]
    axes = plan.subject.steps
    given = {name: np.concatenate([each[name] for each in steps], axes[name]) if name in axes else array
             for name, array in steps[0].items()}
    return dict(zip(names, session.run(names, given), strict=True))
