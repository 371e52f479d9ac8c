"""Holds the steps of a stateful IR against ONNX Runtime's run over the whole sequence."""

import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.api import convert_model, save_model
from mo_loop.errors import ConversionWarning
from mo_loop.target import ANY
from tests.fuzz.states import stepping
from tests.fuzz.states.carried import Carried, carried
from tests.fuzz.states.models import KINDS, Recurrent, drawn
from tools import runtimes

Array = np.ndarray[Any, Any]
SHARE = len(KINDS) + 1
"""Of so many models one has states that its caller carries."""
LENGTHS = (3, 1, 5)
"""The lengths of the sequences, with a reset between them."""

TRANSFORM = "LowLatency2[use_const_initializer=False;sequence_length=1]"
FROM_ZEROS = "LowLatency2[sequence_length=1]"


def compare(task: tuple[int, int, str | None, str]) -> str:
    """The difference for a seed and number on the release of an interpreter, in an IR for a device; empty if there is
    none."""
    seed, number, python, device = task
    if number % SHARE == SHARE - 1:
        return compared_carried(carried(seed, number), python, device)
    return compared(drawn(seed, number - number // SHARE), python, device)


def compared(recurrent: Recurrent, python: str | None = None, device: str = ANY) -> str:
    """The difference between the steps of a model and a whole run of it; empty if there is none."""
    transform = FROM_ZEROS if recurrent.from_zeros else TRANSFORM
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConversionWarning)  # zeros in place of the model's initial values
        path = Path(folder, "model.xml")
        save_model(convert_model(recurrent.model, transform=transform, device=device), path)
        spans = list(zip(np.cumsum([0, *LENGTHS]), LENGTHS, strict=False))
        sequences = [[recurrent.step(start + each) for each in range(length)] for start, length in spans]
        found = stepped_on(path, sequences, python, Path(folder))
        wanted = _whole(recurrent, [recurrent.whole(start, length) for start, length in spans])
    for place, (steps, arrays) in enumerate(zip(found, wanted, strict=True)):
        for output, array in enumerate(arrays):
            said = difference([step[output] for step in steps], array)
            if said:
                return f"{recurrent.name}: sequence {place} of length {LENGTHS[place]}, output {output}: {said}"
    return ""


def compared_carried(model: Carried, python: str | None = None, device: str = ANY) -> str:
    """The difference between the steps of a model with variables and with states that its caller carries."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.xml")
        pairs = None if model.is_found else {name: state.after for name, state in model.states.items()}
        made = convert_model(
            model.model, stateful=True, stateful_pairs=pairs, beam_idx=model.beams, device=device
        )
        save_model(made, path)
        found = stepped_on(path, model.sequences, python, Path(folder))
    session = _session(model.model)
    for place, (sequence, steps) in enumerate(zip(model.sequences, found, strict=True)):
        states = {name: state.first(model.batches[place]) for name, state in model.states.items()}
        for number, (feeds, outputs) in enumerate(zip(sequence, steps, strict=True)):
            given = dict(feeds)
            order = given.pop("beam_idx", None)
            if order is not None:
                states = {name: model.states[name].ordered(array, order) for name, array in states.items()}
            wanted = dict(zip(model.outputs, session.run(list(model.outputs), {**given, **states}), strict=True))
            states = {name: wanted.pop(state.after) for name, state in model.states.items()}
            for (name, array), output in zip(wanted.items(), outputs, strict=True):
                said = difference([output], array)
                if said:
                    return f"{model.name}: sequence {place}, step {number}, output {name}: {said}"
    return ""


def _session(model: Any) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def _whole(recurrent: Recurrent, sets: Sequence[dict[str, Array]]) -> list[list[Array]]:
    session = _session(recurrent.model)
    return [session.run(None, feeds) for feeds in sets]


def stepped_on(path: Path, sequences: Any, python: str | None, folder: Path) -> Any:
    """On the installed release, or in a process of another."""
    if python is None:
        return stepping.stepped(path, sequences)
    task, answer = folder / "task", folder / "answer"
    task.write_bytes(pickle.dumps((str(path), sequences, False, runtimes.device(python))))
    done = subprocess.run([python, stepping.__file__, task, answer], capture_output=True, text=True, timeout=100)
    if done.returncode:
        raise RuntimeError(done.stderr[-600:])
    return pickle.loads(answer.read_bytes())


def difference(steps: Sequence[Array], whole: Array, rtol: float = 1e-4) -> str:
    """Whether the outputs of the steps are those of the whole: one step each along an axis, or the last one."""
    last = steps[-1]
    if last.ndim != whole.ndim:
        return f"rank {last.ndim}, not {whole.ndim}"
    if last.shape != whole.shape:
        axes = [axis for axis in range(whole.ndim) if last.shape[axis] == 1 and whole.shape[axis] == len(steps)]
        if not axes:
            return f"{last.shape} after {len(steps)} steps, not {whole.shape}"
        last = np.concatenate(steps, axes[0])
    if last.shape != whole.shape:
        return f"{last.shape}, not {whole.shape}"
    if not np.allclose(last.astype(np.float64), whole.astype(np.float64), rtol=rtol, atol=rtol / 10):
        return f"differs by {np.abs(last.astype(np.float64) - whole.astype(np.float64)).max():.3g}"
    return ""


if __name__ == "__main__":
    print(compare((int(sys.argv[1]), int(sys.argv[2]), None, ANY)) or "equal")
