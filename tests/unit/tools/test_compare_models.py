"""tools/compare_models.py: which models it finds, what is a miss, and rows that are measured already."""

import json
from dataclasses import asdict
from pathlib import Path

import onnx

from tests.harness import parsed
from tools import compare_models
from tools.measuring import OURS, PEER
from tools.real import records
from tools.real.comparison import Row, Side, Task, failed, input_set, markdown, models


def row(ours: Side, peer: Side) -> Row:
    return Row("a, AVX2", "generated 0", 0.001, {OURS: ours, PEER: peer})


def test_ours_may_be_as_far_and_as_slow_as_that_of_ovc() -> None:
    peer = Side(0.01, 0.002, 1.0)
    assert row(Side(0.01, 0.002, 1.08, 0.04), peer).missed == []
    assert row(Side(0.03, 0.002, 1.08, 0.02), peer).missed == ["numbers", "time"]
    assert row(Side(0.5, 1.0, 9.0), Side(problem="refused")).missed == []
    assert row(Side(problem="refused"), peer).missed == [f"{OURS}: refused"]


def test_only_a_processor_without_vnni_keeps_its_activations() -> None:
    tasks = [Task(Path("a.onnx"), isa, 1, 1) for isa in ("AVX2", "native")]
    assert [each.properties["DYNAMIC_QUANTIZATION_GROUP_SIZE"] for each in tasks] == ["0", "32"]


def test_models_of_folders_are_found_by_parts_of_their_paths(tmp_path: Path) -> None:
    for name in ("b.onnx", "a.onnx", "deep/c.onnx", "x.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [each.name for each in models([tmp_path], [])] == ["a.onnx", "b.onnx", "c.onnx"]
    assert [each.name for each in models([tmp_path, tmp_path / "a.onnx"], ["deep"])] == ["c.onnx"]


def test_inputs_are_generated_for_a_model_without_files_of_inputs(tmp_path: Path) -> None:
    onnx.save(parsed("f (float[N, 3] x) => (float[N, 3] y) { y = Relu(x) }"), tmp_path / "a.onnx")
    name, feeds = input_set(tmp_path / "a.onnx")
    assert name == "generated 0" and feeds["x"].shape[1:] == (3,)


def test_rows_that_are_measured_are_not_measured_again(tmp_path: Path) -> None:
    model, results, table = tmp_path / "a.onnx", tmp_path / "rows.jsonl", tmp_path / "rows.md"
    model.write_bytes(b"not a model")
    slow = row(Side(0.5, 0.004, 2.0), Side(0.01, 0.002, 1.0))
    records.append(results, slow)
    arguments = [str(tmp_path), "--isa", "AVX2", "--results", str(results), "--markdown", str(table)]
    assert compare_models.main(arguments) == 1 and table.read_text(encoding="utf-8") == markdown([slow])
    assert [json.loads(each) for each in results.read_text(encoding="utf-8").splitlines()] == [asdict(slow)]


def test_a_worker_that_ends_is_a_row() -> None:
    found = failed(Task(Path("a.onnx"), "native", 1, 1), OURS, "Traceback\n    raise\nRuntimeError: all | wrong")
    assert found.missed == [f"{OURS}: RuntimeError: all | wrong"]
    assert "all   wrong" in markdown([found]) and "1 worse than ovc" in markdown([found])
