"""Where expected values come from, and calls in a worker process."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import pytest
from openvino import opset8

from mo_loop.compare.execution.isolated import IsolatedError, isolated
from mo_loop.compare.oracle.oracle import ONNX_RUNTIME, OnnxRuntime
from mo_loop.compare.oracle.oracle import REFERENCE as REFERENCE
from mo_loop.errors import NotComparableError
from mo_loop.support.workers import Pool
from tests.cases import read_cases
from tests.harness import floats, node_model, oracle, parsed, raised
from tests.running import samples as elsewhere
from tests.running.samples import (
    BUG,
    CRASH,
    NOT_COMPILABLE,
    NOT_READABLE,
    PASSED,
    WRONG,
    Sample,
    empty_alike,
    expected_values,
    judge,
    judge_ir,
)
from tools import fuzz_controlflow, runtimes

NEG = "main (float[N,M] x) => (float[N,M] y) { y = Neg (x) }"


def test_onnx_runtime_is_tried_first() -> None:
    found = oracle(parsed(NEG), [{"x": floats(2, 3)}, {"x": floats(1, 1)}])
    assert (found.source, found.reason) == (ONNX_RUNTIME, "")
    assert [array.shape for [(_, array)] in found.values] == [(2, 3), (1, 1)]


def test_sessions_are_exact_with_constant_weights() -> None:
    """The optimiser makes unsigned weights of signed ones; it does not run for other models."""
    weights = "<int8[4,1] b = {-128, -128, -128, -128}, float s = {0.5}>"
    found = oracle(parsed(f"""main (float[1,4] a) => (float[1,1] y) {weights} {{
      y = com.microsoft.DynamicQuantizeMatMul (a, b, s)
    }}"""), [{"a": np.ones((1, 4), np.float32)}])
    assert found.source == ONNX_RUNTIME
    assert found.values[0][0][1].item() == pytest.approx(4 * -128 * 0.5, rel=1e-2)


def test_a_verdict_in_one_word() -> None:
    x = floats(2, 3)
    right, wrong = [[("y", -x)]], [[("y", x)]]
    source = parsed(NEG).SerializeToString()

    def verdict(expected: list[list[tuple[str, np.ndarray]]], model: bytes = source) -> tuple[str, str]:
        found = isolated(judge, ("mo_loop", Sample("m", model, [{"x": x}], expected, (0, 0), exact=True)))
        return found.result, found.message

    assert verdict(right) == (PASSED, "")
    assert verdict(wrong)[0] == WRONG and verdict(wrong)[1].startswith("inference 0 (input set 0), values: y: 6 of 6")
    assert verdict(right, b"no model")[0] == BUG
    assert isolated(judge_ir, "gone.xml", Sample("m", b"", [], [], ())).result == NOT_READABLE


def test_a_result_without_elements_may_have_another_name() -> None:
    """A compiled model may name an output after the value that moved to its end."""
    wanted = [("x", np.zeros((0, 0))), ("y", np.zeros((0, 1, 0)))]
    found = [("x", np.zeros((0, 0))), ("z", np.zeros((0, 1, 1)))]
    assert empty_alike("y", wanted, found)
    assert not empty_alike("y", wanted, [*found, ("more", np.zeros(1))])


def on_another_release(python: str, source: bytes, x: np.ndarray, expected: np.ndarray) -> tuple[str, str]:
    """In the worker: the verdict of a model whose IR another interpreter runs."""
    found = judge(("mo_loop", Sample("m", source, [{"x": x}, {"x": -x}], [[("y", expected)]] * 2, (0,), python=python)))
    return found.result, found.message


def test_an_ir_runs_in_another_interpreter() -> None:
    x, source = floats(2, 3), parsed(NEG).SerializeToString()
    assert isolated(on_another_release, sys.executable, source, x, -x) == (PASSED, "")
    result, message = isolated(on_another_release, sys.executable, source, x, x)
    assert result == WRONG and message.startswith("inference 0 (input set 0), values: y: 6 of 6")


@pytest.mark.parametrize("python", [None, sys.executable])
def test_a_file_that_is_read_may_not_compile(python: str | None, tmp_path: Path) -> None:
    """A rank that is known only at run time: the CPU device refuses it, the reader does not."""
    x = opset8.parameter([-1], np.float32, name="x")
    axes = opset8.parameter([-1], np.int64, name="axes")
    openvino.save_model(openvino.Model([opset8.unsqueeze(x, axes)], [x, axes]), tmp_path / "m.xml")
    verdict = isolated(judge_ir, str(tmp_path / "m.xml"), Sample("m", b"", [], [], (), python=python))
    assert verdict.result == NOT_COMPILABLE and "rank" in verdict.message


def test_errors_and_crashes_of_another_interpreter_are_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = Sample("m", b"", [], [], (), python=sys.executable)
    assert judge_ir("gone.xml", sample).result == NOT_READABLE
    monkeypatch.setattr(elsewhere, "_pool", lambda python: Pool(f"{__name__}:failing_task", python=python))
    verdict = judge_ir("crash", sample)
    assert (verdict.result, verdict.message) == (CRASH, "compile: killed by SIGABRT")


def test_a_release_without_environment_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(runtimes, "FOLDER", tmp_path)
    monkeypatch.setenv(runtimes.VARIABLE, "2024.6.0")
    with pytest.raises(FileNotFoundError, match=r"no environment for OpenVINO 2024.6.0 .*make runtimes ARGS=2024.6.0"):
        runtimes.chosen_interpreter()
    raised(SystemExit, fuzz_controlflow.main, ["--runtime", "2024.6.0"])
    python = tmp_path / "2024.6.0" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    python.parent.mkdir(parents=True)
    python.touch()
    assert runtimes.chosen_interpreter() == str(python)


def failing(how: str) -> None:
    if how == "crash":
        os.abort()
    raise ValueError("the reason")


def failing_task(task: Any) -> None:
    _, (_, arguments) = task
    failing(arguments[0])


def test_a_worker_that_crashes_is_replaced() -> None:
    assert raised(IsolatedError, isolated, failing, "crash", match="SIGABRT").status == "crash"
    raised(IsolatedError, isolated, failing, "error", match="ValueError: the reason")
    assert isolated(expected_values, parsed(NEG).SerializeToString(), [{"x": floats(1, 1)}]).source == ONNX_RUNTIME


def test_an_operator_that_only_the_test_computes_needs_expected() -> None:
    model = node_model("acme.nn::Swish3", {"x": floats(2)}, opset=1)
    with pytest.raises(NotComparableError, match=r"neither .* implement acme.nn::Swish3 .*\n.* the test `expected=`"):
        oracle(model, [{"x": floats(2)}])


def test_outputs_that_have_the_memory_of_inputs() -> None:
    """ONNX Runtime writes the new token into the buffers that it is given; those of the caller stay as they are."""
    feeds = {
        "q": floats(1, 1, 8), "k": floats(1, 1, 8, seed=1), "v": floats(1, 1, 8, seed=2),
        "past_k": floats(1, 1, 4, 8, seed=3), "past_v": floats(1, 1, 4, 8, seed=4),
        "rows": np.array([[0, 1, 3]], np.int32), "columns": np.array([[0, 0, 1]], np.int32),
        "total": np.array([3], np.int32), "ends": np.array([3], np.int32),
    }
    op, counts = "com.microsoft::SparseAttention", {"num_heads": 1, "kv_num_heads": 1, "sparse_block_size": 2}
    model = node_model(op, feeds, counts, opset=1, outputs=["y", "present_k", "present_v"])
    names = ["present_k", "y", "present_v"]
    model.graph.output.sort(key=lambda port: names.index(port.name))
    before = feeds["past_k"].copy()
    found = dict(OnnxRuntime(model).run(feeds))
    expected = before.copy()
    expected[0, 0, 2] = feeds["k"][0, 0]
    assert list(found) == names and found["y"].shape == (1, 1, 8)
    np.testing.assert_array_equal(found["present_k"], expected)
    np.testing.assert_array_equal(feeds["past_k"], before)


def test_the_worker_has_the_folder_of_its_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths of a model were looked for where the worker was started."""
    isolated(os.getcwd)
    monkeypatch.chdir(tmp_path)
    assert isolated(os.getcwd) == str(tmp_path)


def test_integers_of_four_bits_share_the_bytes_of_onnx_runtime() -> None:
    import ml_dtypes

    numbers = np.array([-8, 7, 3, -1, 0]).astype(ml_dtypes.int4)
    ((_, wide),) = OnnxRuntime(parsed("main (int4[5] x) => (float[5] y) { y = Cast <to = 1> (x) }", opset=21)).run(
        {"x": numbers}
    )
    assert wide.tolist() == [-8, 7, 3, -1, 0]
    ((_, narrow),) = OnnxRuntime(parsed("main (float[5] x) => (int4[5] y) { y = Cast <to = 22> (x) }", opset=21)).run(
        {"x": wide}
    )
    assert narrow.dtype == numbers.dtype and narrow.astype(int).tolist() == [-8, 7, 3, -1, 0]


read_cases(globals())
