"""One model of known sizes, converted, and its IR given other sizes. `judge` runs in a worker process.

    task = Task("lstm", model.SerializeToString(), {"x": x}, seed=1, most=8)
    found = judge(task)         # Found(changes=[Change("x[0] 6 -> 12", "reshape", "right"), ...])

A change gives dimensions of inputs other sizes: doubled, one more, one less, 1, those of two axes exchanged, the batch
of all inputs, all dimensions that have one size. It reaches the IR in one of `WAYS`: as numbers, as the batch, with all
dimensions unknown, within bounds. Expected values are those of ONNX Runtime for the model with unknown sizes: a change
that it refuses is left out, because ONNX itself cannot make it.
"""

import random
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from mo_loop.compare.execution.isolated import IsolatedError, brief, isolated
from mo_loop.compare.oracle.graph_edits import of_unknown_sizes
from mo_loop.compare.results.array_comparison import Named, compare_all
from mo_loop.compare.verify_options import PEER
from mo_loop.support.workers import report_stage
from tests.fuzz.reshaped import BATCH, BOUNDS, NUMBERS, UNKNOWN, run_reshaped
from tests.running.samples import CONVERTERS, OURS, empty_alike, expected_values

RIGHT, WRONG, ERROR, SIGNAL, LEFT_OUT = "right", "wrong", "error", "signal", "left out"
WAYS = (NUMBERS, NUMBERS, UNKNOWN, BOUNDS)
TOLERANCE = 2e-3
TOLERANCES = {"bfloat16": 2e-2, "float16": 5e-3, "float32": TOLERANCE, "float64": TOLERANCE}
"""The largest difference, as a share of the largest number of a result."""

BELOW_8_BITS = {21, 22, 23, 25, 26}
"""The element types uint4, int4, float4e2m1, uint2 and int2: the arrays that are given other sizes here hold bytes."""

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Task:
    """A model, arrays for its inputs, and which changes are tried: `most` of them, drawn from `seed`."""

    name: str
    model: bytes
    feeds: Mapping[str, Any]
    seed: int = 1
    most: int = 8
    arguments: Mapping[str, Any] = field(default_factory=dict)
    python: str | None = None
    peer: bool = True
    """Whether the peer's IR is tried where ours is not right."""


@dataclass
class Change:
    """One change of sizes and its result; `peer` is the result of the IR of the other converter."""

    what: str
    way: str
    result: str
    message: str = ""
    peer: str = ""


@dataclass
class Found:
    """The changes of one model; `refused` is why it was not converted, or is not tried."""

    changes: list[Change] = field(default_factory=list)
    refused: str = ""


def of_known_sizes(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> onnx.ModelProto:
    """The model whose inputs have the sizes of `feeds`; its outputs and inner tensors have no declared shape."""
    model = of_unknown_sizes(model)
    constants = {each.name for each in model.graph.initializer}
    for port in model.graph.input:
        kind = port.type.tensor_type
        if port.name in feeds and port.name not in constants and kind.HasField("shape"):
            new = onnx.helper.make_tensor_type_proto(kind.elem_type, np.shape(feeds[port.name]))
            kind.shape.CopyFrom(new.tensor_type.shape)
    return model


def judge(task: Task) -> Found:
    """Convert the model, and try the changes one after the other."""
    model = onnx.load_from_string(task.model)
    open_model = of_unknown_sizes(model).SerializeToString()
    with tempfile.TemporaryDirectory() as folder:
        report_stage("convert")
        source, ours, peer = (Path(folder, name) for name in ("model.onnx", "ours.xml", "peer.xml"))
        source.write_bytes(task.model)
        try:
            CONVERTERS[OURS](source, ours, dict(task.arguments))
        except Exception as error:  # a refusal is not a fault of a change
            return Found(refused=brief(error))
        found = Found()
        said = _declared(model, ours, task)
        if said:
            return Found(refused=f"not compared: {said}")
        for what, way, shapes in changes(task):
            report_stage(f"{what} {way}")
            feeds = {name: _resized(array, shapes.get(name, np.shape(array))) for name, array in task.feeds.items()}
            try:
                expected = isolated(expected_values, open_model, [feeds]).values[0]
            except IsolatedError as error:
                found.changes.append(Change(what, way, LEFT_OUT, error.message.splitlines()[-1][:200]))
                continue
            change = Change(what, way, *_result(ours, way, feeds, task, expected))
            if change.result not in (RIGHT, LEFT_OUT) and task.peer:
                if not peer.exists():
                    try:
                        isolated(_convert, PEER, source, peer)
                    except IsolatedError as error:
                        peer.write_text("")
                        change.peer = f"refused: {error.message.splitlines()[-1][:100]}"
                if not change.peer:
                    change.peer = _result(peer, way, feeds, task, expected)[0] if peer.stat().st_size else "refused"
            found.changes.append(change)
        return found


def _declared(model: onnx.ModelProto, path: Path, task: Task) -> str:
    """Why no change is tried: numbers have less than 8 bits, or the results for the declared sizes are wrong."""
    if any(entry.type.tensor_type.elem_type in BELOW_8_BITS for entry in (*model.graph.input, *model.graph.output)):
        return "numbers below 8 bits"
    feeds = dict(task.feeds)
    try:
        expected = isolated(expected_values, task.model, [feeds]).values[0]
    except IsolatedError as error:
        return error.message.splitlines()[-1][:200]
    result, message = _result(path, NUMBERS, feeds, task, expected)
    return "" if result == RIGHT else f"for the declared sizes {result}: {message}"


def _convert(converter: str, source: Path, target: Path) -> None:
    CONVERTERS[converter](source, target)


def _result(path: Path, way: str, feeds: Mapping[str, Any], task: Task, expected: Named) -> tuple[str, str]:
    try:
        before = {name: np.shape(array) for name, array in task.feeds.items()}
        results = isolated(run_reshaped, path, way, dict(feeds), before, python=task.python)
    except IsolatedError as error:
        return (ERROR if error.status == "error" else SIGNAL), error.message.splitlines()[-1][:300]
    expected, results = _within_f32(expected), _within_f32(results)
    floats = [array for _, array in expected if isinstance(array, np.ndarray) and array.dtype.name in TOLERANCES]
    finite = [np.abs(array[np.isfinite(array)]) for array in floats]
    largest = max([float(array.max()) for array in finite if array.size] + [0.0])
    share = max([TOLERANCES[array.dtype.name] for array in floats] + [TOLERANCE])
    differing = [each for each in compare_all(expected, results, rtol=share, atol=share * max(largest, 0.01))
                 if not each and (each.kind == "values" or not empty_alike(each.name, expected, results))]
    return (WRONG, f"{differing[0].kind}: {differing[0]}"[:300]) if differing else (RIGHT, "")


def _within_f32(results: Named) -> Named:
    """The runtime computes f64 in f32 and writes the largest finite number for larger ones, also for infinite ones."""
    top = float(np.finfo(np.float32).max)
    return [(name, np.clip(array, -top, top) if getattr(array, "dtype", None) == np.float64 else array)
            for name, array in results]


def _resized(array: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The array repeated, or cut, along each axis: values stay in their domain, such as indices. Zeros for nothing."""
    array = np.asarray(array)
    if not array.size:
        return np.zeros(shape, array.dtype)
    for axis, size in enumerate(shape):
        array = np.take(array, np.arange(size) % array.shape[axis], axis)
    return array


def changes(task: Task) -> Iterator[tuple[str, str, Shapes]]:
    """The changes to try: text, way, and the shapes of the inputs."""
    rng = random.Random(f"{task.seed} {task.name}")
    drawn = list(_possible({name: np.shape(array) for name, array in task.feeds.items()}))
    rng.shuffle(drawn)
    seen: set[str] = set()
    for what, shapes in drawn:
        if str(sorted(shapes.items())) in seen:
            continue
        seen.add(str(sorted(shapes.items())))
        if len(seen) > task.most:
            return
        batch = what.startswith("batch") and rng.random() < 0.5
        yield what, BATCH if batch else rng.choice(WAYS), shapes


def _possible(shapes: Shapes) -> Iterator[tuple[str, Shapes]]:
    for name, shape in shapes.items():
        for axis, size in enumerate(shape):
            for new in {2 * size, size + 1, max(size - 1, 0), 1, 0} - {size}:
                yield f"{name}[{axis}] {size} -> {new}", {name: (*shape[:axis], new, *shape[axis + 1 :])}
            if axis + 1 < len(shape) and shape[axis + 1] != size:
                swapped = (*shape[:axis], shape[axis + 1], size, *shape[axis + 2 :])
                yield f"{name}[{axis}], {name}[{axis + 1}] {size}, {shape[axis + 1]} exchanged", {name: swapped}
    sizes = {size for shape in shapes.values() for size in shape}
    for size in sorted(sizes):
        if sum(size in shape for shape in shapes.values()) > 1:
            for new in {2 * size, size + 1, max(size - 1, 1)} - {size}:
                yield f"all {size} -> {new}", {
                    name: tuple(new if each == size else each for each in shape) for name, shape in shapes.items()
                }
    batched = [shape for shape in shapes.values() if shape]
    if len(batched) == len(shapes) and len({shape[0] for shape in batched}) == 1:
        for new in (2 * batched[0][0], batched[0][0] + 2):
            yield f"batch {batched[0][0]} -> {new}", {name: (new, *shape[1:]) for name, shape in shapes.items()}
