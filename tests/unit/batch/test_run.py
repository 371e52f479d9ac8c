"""A batch from Python: failures of the batch itself, and moves of files that a signal must not interrupt."""

from __future__ import annotations

from pathlib import Path

import pytest

from mo_loop.batch import run
from mo_loop.batch.plan import Plan, Planned
from mo_loop.batch.result import Result
from mo_loop.batch.run import Batch, Limits
from mo_loop.batch.state import NAME
from mo_loop.batch.task import Work
from mo_loop.errors import FileError
from mo_loop.options import ConvertOptions
from tests.cli.batches import good


class Silent:
    def started(self, model: Planned) -> None:
        """Prints nothing."""

    def finished(self, result: Result) -> None:
        """Prints nothing."""


def test_a_state_that_cannot_be_written_costs_only_the_next_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, content: object) -> None:
        raise FileError(f"{path} cannot be written: No space left on device")

    source = good(tmp_path / "m.onnx")
    plan = Plan((Planned(source, tmp_path / "out" / "m.xml", "m.onnx"),), tmp_path)
    monkeypatch.setattr("mo_loop.batch.state.write_whole", refuse)
    batch = Batch(plan, tmp_path / "out", lambda _: Work(ConvertOptions(), "x"), Limits())
    found = batch.run(Silent())
    assert [each.status for each in found.results] == ["converted"]
    assert found.notes == (
        f"{tmp_path / 'out' / NAME} cannot be written: No space left on device: "
        "the next batch converts the models again",
    )


def test_a_pair_whose_place_is_taken_is_a_failure(tmp_path: Path) -> None:
    source = good(tmp_path / "m.onnx")
    (tmp_path / "out" / "m.bin" / "folder").mkdir(parents=True)
    plan = Plan((Planned(source, tmp_path / "out" / "m.xml", "m.onnx"),), tmp_path)
    (found,) = Batch(plan, tmp_path / "out", lambda _: Work(ConvertOptions(), "x"), Limits()).run(Silent()).results
    assert (found.status, found.exit_code, found.errors[0].code) == ("failed", 2, "ML218")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [NAME, "m.bin"]


def test_the_process_does_not_end_between_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second signal comes while a pair is moved: it takes effect right after the move."""
    source = good(tmp_path / "m.onnx")
    plan = Plan((Planned(source, tmp_path / "out" / "m.xml", "m.onnx"),), tmp_path)
    batch = Batch(plan, tmp_path / "out", lambda _: Work(ConvertOptions(), "x"), Limits())
    happened = []
    move = run.move_pair

    def interrupted(draft: Path, path: Path, *, durable: bool) -> None:
        batch.stop("SIGINT")
        batch.end(lambda: happened.append(f"ended with {len(list((tmp_path / 'out').glob('m.*')))} files"))
        move(draft, path, durable=durable)
        happened.append("moved")

    monkeypatch.setattr(run, "move_pair", interrupted)
    batch.run(Silent())
    assert happened == ["moved", "ended with 2 files"]
    batch.end(lambda: happened.append("at once"))
    assert happened[-1] == "at once"
