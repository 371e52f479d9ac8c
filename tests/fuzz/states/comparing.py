"""Holds the steps of a stateful IR against ONNX Runtime's run over the whole sequence."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.api import convert_model, save_model
from tests.fuzz.states import stepping
from tests.fuzz.states.models import Recurrent, drawn

Array = np.ndarray[Any, Any]
LENGTHS = (3, 1, 5)
"""The lengths of the sequences, with a reset between them."""

TRANSFORM = "LowLatency2[use_const_initializer=False;sequence_length=1]"


def compare(task: tuple[int, int, str | None]) -> str:
    """What differs for a seed and number on the release of an interpreter; empty if nothing does."""
    seed, number, python = task
    return compared(drawn(seed, number), python)


def compared(recurrent: Recurrent, python: str | None = None, transform: str = TRANSFORM) -> str:
    """What differs between the steps of a model and a whole run of it; empty if nothing does."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.xml")
        save_model(convert_model(recurrent.model, transform=transform), path)
        starts = np.cumsum([0, *LENGTHS])
        spans = list(zip(starts, LENGTHS, strict=False))
        sequences = [[recurrent.step(start + each) for each in range(length)] for start, length in spans]
        found = _stepped(path, sequences, python, Path(folder))
        wanted = _whole(recurrent, [recurrent.whole(start, length) for start, length in spans])
    for place, (steps, arrays) in enumerate(zip(found, wanted, strict=True)):
        for output, array in enumerate(arrays):
            said = difference([step[output] for step in steps], array)
            if said:
                return f"{recurrent.name}: sequence {place} of length {LENGTHS[place]}, output {output}: {said}"
    return ""


def _whole(recurrent: Recurrent, sets: Sequence[dict[str, Array]]) -> list[list[Array]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(recurrent.model.SerializeToString(), options)
    return [session.run(None, feeds) for feeds in sets]


def _stepped(path: Path, sequences: Any, python: str | None, folder: Path) -> Any:
    """On the installed release, or in a process of another."""
    if python is None:
        return stepping.stepped(path, sequences)
    task, answer = folder / "task", folder / "answer"
    task.write_bytes(pickle.dumps((str(path), sequences)))
    done = subprocess.run([python, stepping.__file__, task, answer], capture_output=True, text=True, timeout=100)
    if done.returncode:
        raise RuntimeError(done.stderr[-600:])
    return pickle.loads(answer.read_bytes())


def difference(steps: Sequence[Array], whole: Array) -> str:
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
    if not np.allclose(last.astype(np.float64), whole.astype(np.float64), rtol=1e-4, atol=1e-5):
        return f"differs by {np.abs(last.astype(np.float64) - whole.astype(np.float64)).max():.3g}"
    return ""


if __name__ == "__main__":
    print(compare((int(sys.argv[1]), int(sys.argv[2]), None)) or "equal")
