"""`mo-loop batch` ended by Ctrl-C or SIGTERM: complete pairs, no workers left, written reports; a later run resumes."""

import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.cli.commands import ended

from .batches import Running, batch, command, environment, files_in, good, processes, read, statuses, trouble

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and /proc")

REPORTS = ("--report", "r.json", "--junit", "j.xml", "--summary", "s.md")


class Local(Running):
    """The same with worker processes of this machine, which end before it."""

    def end(self) -> tuple[int, str, str]:
        found = super().end()
        assert not processes(self.mark)
        return found


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Twelve models that take half a second each."""
    for number in range(12):
        good(tmp_path / "in" / f"m{number:02}.onnx", number, name="slow5")
    trouble(tmp_path)
    return tmp_path


def assert_whole(out: Path) -> set[str]:
    """Every .xml can be read and has its .bin, and there are no other files. Returns the names of the pairs."""
    names = {path.stem for path in out.glob("*.xml")}
    assert files_in(out) == sorted([".mo-loop.json", *(f"{name}.{kind}" for name in names for kind in ("xml", "bin"))])
    for name in names:
        assert ET.parse(out / f"{name}.xml").getroot().tag == "net"
    return names


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_during_the_batch(number: signal.Signals, code: int, models: Path) -> None:
    running = Local(models, "-j", "2", *REPORTS)
    running.wait_for(lambda: running.pairs() >= 3)
    running.press(number)
    exit_code, stdout, stderr = running.end()
    assert exit_code == code, stderr
    whole = {f"{name}.onnx" for name in assert_whole(models / "out")}
    found = statuses(models / "r.json")
    done = {name for name, status in found.items() if status == "converted"}
    assert 1 <= len(done) <= len(whole) < 12 and len(whole) >= 3
    # A worker may have moved a pair just before it was killed, so that the batch has no report of it.
    assert done <= whole and len(whole - done) <= 2
    left = 12 - len(done)
    assert f"error: ended by {number.name}, {left} of 12 models remain: the same command continues" in stderr
    assert f"12 models: {len(done)} converted, {left} cancelled" in stdout and "Traceback" not in stderr
    assert list(found.values()).count("cancelled") == left
    assert (read(models / "r.json")["signal"], read(models / "r.json")["exit_code"]) == (number.name, code)
    assert ET.parse(models / "j.xml").getroot().get("tests") == "12"
    assert f"Ended by {number.name}." in (models / "s.md").read_text()


def test_the_next_run_resumes(models: Path) -> None:
    running = Local(models, "-j", "2")
    running.wait_for(lambda: running.pairs() >= 3)  # two may be unreported when the workers end
    running.press()
    assert running.end()[0] == 130
    done = assert_whole(models / "out")
    ended(batch("in", "-o", "out", "--extension", "trouble.py", "-j", 2, *REPORTS, cwd=models))
    skipped = {name for name, status in statuses(models / "r.json").items() if status == "skipped"}
    # A worker may have moved a pair just before it was killed, unreported: the batch converts it again.
    whole = {f"{name}.onnx" for name in done}
    assert skipped <= whole and len(whole - skipped) <= 2 and len(assert_whole(models / "out")) == 12


def test_a_signal_before_the_first_result(models: Path) -> None:
    """The signal arrives while workers start."""
    running = Local(models, *REPORTS)
    running.wait_for(lambda: list((models / "out").glob(".mo-loop-*")))
    running.press()
    exit_code, _, stderr = running.end()
    assert exit_code == 130, stderr
    assert "12 of 12 models remain" in stderr and "Traceback" not in stderr and files_in(models / "out") == []


def test_a_hanging_model_does_not_delay_the_end(tmp_path: Path) -> None:
    good(tmp_path / "in" / "hang.onnx", name="hang")
    trouble(tmp_path)
    running = Local(tmp_path)
    running.wait_for(lambda: len(processes(running.mark)) == 2)
    time.sleep(2)
    running.press()
    assert running.end()[0] == 130  # the model hangs for longer than `end` waits


def test_the_second_signal_ends_the_batch_at_once(tmp_path: Path) -> None:
    """The command writes a report to a pipe without a reader, which blocks forever."""
    good(tmp_path / "in" / "hang.onnx", name="hang")
    trouble(tmp_path)
    os.mkfifo(tmp_path / "step.md")
    process = subprocess.Popen(
        [*command(), "batch", "in", "-o", "out", "--extension", "trouble.py", "--summary", "step.md"],
        cwd=tmp_path, env=environment({"GITHUB_STEP_SUMMARY": "step.md"}), stderr=subprocess.PIPE, text=True,
    )
    end = time.monotonic() + 60
    while not list((tmp_path / "out").glob(".mo-loop-*")):
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    end = time.monotonic() + 60
    while files_in(tmp_path / "out"):
        assert time.monotonic() < end, "the workers and their drafts are gone after the first"
        time.sleep(0.05)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=2)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130 and process.stderr is not None
    process.stderr.close()
