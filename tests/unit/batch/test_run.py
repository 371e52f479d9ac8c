"""A batch from Python: failures of the batch itself, and workers that are killed while they move files."""

import threading
from pathlib import Path

import pytest

from mo_loop.batching.batch_options import BatchOptions
from mo_loop.batching.engine import Work
from mo_loop.batching.outputs import NAME
from mo_loop.batching.plan import BatchPlan, Planned
from mo_loop.batching.run import Batch, BatchListener
from mo_loop.errors import FileError
from mo_loop.ir.pair import restore_pair
from mo_loop.options import ConvertOptions
from mo_loop.support.workers import WorkerStartError
from tests.cli.batches import good


def test_a_state_that_cannot_be_written_costs_only_the_next_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_: object) -> None:
        raise FileError(f"{path} cannot be written: No space left on device")

    source = good(tmp_path / "m.onnx")
    plan = BatchPlan((Planned(source, tmp_path / "out" / "m.xml", "m.onnx"),), tmp_path)
    monkeypatch.setattr("mo_loop.support.files.append_lines", refuse)
    batch = Batch(plan, tmp_path / "out", lambda _: Work(ConvertOptions(), "x"), BatchOptions(jobs=1))
    found = batch.run(BatchListener())
    assert [each.status for each in found.results] == ["converted"]
    assert found.notes == (
        f"{tmp_path / 'out' / NAME} cannot be written: No space left on device: "
        "the next batch converts the models again",
    )


def test_a_pair_whose_place_is_taken_is_a_failure(tmp_path: Path) -> None:
    source = good(tmp_path / "m.onnx")
    (tmp_path / "out" / "m.bin" / "folder").mkdir(parents=True)
    plan = BatchPlan((Planned(source, tmp_path / "out" / "m.xml", "m.onnx"),), tmp_path)
    batch = Batch(plan, tmp_path / "out", lambda _: Work(ConvertOptions(), "x"), BatchOptions(jobs=1))
    (found,) = batch.run(BatchListener()).results
    assert (found.status, found.exit_code, found.errors[0].code) == ("failed", 2, "ML218")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["m.bin"]


def test_a_pair_that_a_killed_worker_had_set_aside_is_restored(tmp_path: Path) -> None:
    """The worker ends between the two files: the batch ends with the old pair and without a draft."""
    source, out = good(tmp_path / "m.onnx"), tmp_path / "out"
    out.mkdir()
    (out / "m.xml").write_text("old xml")
    (out / "m.bin").write_text("old bin")
    (tmp_path / "extension.py").write_text(
        "import os, signal\n"
        "from mo_loop.transforms.function_pass import FunctionPass\n"
        "class Idle(FunctionPass):\n"
        "    def run_on_graph(self, graph):\n"
        "        return False\n"
        "def register(extensions):\n"
        "    extensions.add_pass(Idle, at='start')\n"
        "replace = os.replace\n"
        "def kill(source, target):\n"
        "    if str(source).endswith('.bin') and str(target).endswith('m.bin'):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return replace(source, target)\n"
        "os.replace = kill\n"
    )
    options = ConvertOptions(extensions=(str(tmp_path / "extension.py"),))
    plan = BatchPlan((Planned(source, out / "m.xml", "m.onnx"),), tmp_path)
    (found,) = Batch(plan, out, lambda _: Work(options, "x"), BatchOptions(jobs=1)).run(BatchListener()).results
    assert found.status == "crash" and "SIGKILL" in found.message
    assert {path.name: path.read_text() for path in out.glob("*m*.*")} == {"m.xml": "old xml", "m.bin": "old bin"}
    assert not list(out.glob(".mo-loop-*"))


def test_half_of_a_new_pair_and_its_lock_are_removed(tmp_path: Path) -> None:
    """A worker that is killed between the two files of a new pair leaves a .bin, and the file of its lock."""
    path = tmp_path / "m.xml"
    for name in ("m.bin", ".m.xml.lock"):
        (tmp_path / name).write_text("")
    restore_pair(path)
    assert [each.name for each in tmp_path.iterdir()] == ["m.bin"]
    restore_pair(path, is_new=True)
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_the_same_signal_ended_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C reaches a worker before it leads its own process group; the handler runs a moment later."""

    def killed(*_: object, **__: object) -> None:
        threading.Timer(0.1, batch.stop, ["SIGINT"]).start()
        raise WorkerStartError("killed by SIGINT")

    monkeypatch.setattr("mo_loop.support.worker_process.Worker.start", killed)
    plan = BatchPlan((Planned(good(tmp_path / "m.onnx"), tmp_path / "out" / "m.xml", "m.onnx"),), tmp_path)
    batch = Batch(plan, tmp_path / "out", lambda _: Work(ConvertOptions(), "x"), BatchOptions(jobs=1))
    found = batch.run(BatchListener())
    assert (found.signal, [each.status for each in found.results]) == ("SIGINT", ["cancelled"])
