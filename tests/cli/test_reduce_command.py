"""`mo-loop reduce` as a user runs it."""

import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.harness import parsed
from tests.runtime.verify.test_reduce import NESTED, WRONG

from .commands import PROGRAM, ended, mo_loop, saved


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    saved(parsed(NESTED), tmp_path)
    (tmp_path / "wrong.py").write_text(WRONG.replace("WHERE", "True"))
    return tmp_path


def test_the_model_and_its_inputs_are_written_and_show_the_difference(folder: Path) -> None:
    fault = ("--extension", "wrong.py")
    done = ended(mo_loop("reduce", "model.onnx", "-o", "small.onnx", "--if", "differs", *fault, cwd=folder))
    first, second, last = done.stdout.splitlines()
    assert first.startswith("model.onnx: 12 nodes, ") and second == "small.onnx: 1 nodes, 0 bytes of weights: Tanh"
    assert "trials" in last
    assert list(np.load(folder / "small.npz")) == [onnx.load(folder / "small.onnx").graph.input[0].name]
    assert mo_loop("verify", "small.onnx", "--inputs", "small.npz", *fault, cwd=folder).returncode == 1
    assert mo_loop("verify", "small.onnx", "--inputs", "small.npz", cwd=folder).returncode == 0


@pytest.mark.parametrize(("number", "how"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])
@pytest.mark.parametrize("is_written", [True, False])
def test_a_signal_keeps_the_smallest_model_so_far(folder: Path, number: int, how: str, is_written: bool) -> None:
    """Every trial waits, so the search does not end by itself."""
    check = folder / "check.sh"
    check.write_text("touch began; sleep 0.3; grep -q Tanh $1\n" if is_written else "touch began; sleep 60\n")
    process = subprocess.Popen(
        [str(PROGRAM), "reduce", "model.onnx", "-o", "small.onnx", "--if", "sh check.sh {}", "-j", "1"],
        cwd=folder, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    )
    end = time.monotonic() + 60
    while not (folder / ("small.onnx" if is_written else "began")).exists() and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    left = "small.onnx holds the smallest model so far; to continue, reduce it" if is_written else "nothing was written"
    assert process.returncode == 128 + number and said.splitlines()[-1] == f"error: {how}: {left}"
    if is_written:
        onnx.checker.check_model(onnx.load(folder / "small.onnx"))
