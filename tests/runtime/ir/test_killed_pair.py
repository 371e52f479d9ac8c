"""A process that writes a pair is killed: the folder has the old pair, the new pair, or no .xml, never a mix."""

import functools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mo_loop.ir.pair import new_pair, restore_pair
from mo_loop.support.files import write_whole
from tests import ROOT

if sys.platform == "win32":
    pytest.skip("processes are forked", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
STEPS = ("replace", "unlink", "fsync")


def in_a_small_process(test: Callable[[Path], None]) -> Callable[[Path], None]:
    """To fork the process of the tests takes longer than all that a fork does here."""

    @functools.wraps(test)
    def run(tmp_path: Path) -> None:
        code = f"import pathlib, {__name__} as t; t.{test.__name__}.__wrapped__(pathlib.Path({str(tmp_path)!r}))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == 0, done.stderr

    return run


def write(path: Path, text: str, *, durable: bool = False) -> None:
    with new_pair(path, durable=durable) as (data, xml):
        data.write(text.encode())
        xml.write(text)


def forked(action: Callable[[], object]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        action()
        os._exit(0)
    except BaseException:
        os._exit(1)


def killed_at(step: int, action: Callable[[], object]) -> bool:
    """Run `action` in a process that is killed before its call number `step` of the file system; whether it came."""

    def run() -> None:
        left = step

        def counted(original: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **named: Any) -> Any:
                nonlocal left
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1
                return original(*arguments, **named)

            return call

        for name in STEPS:
            setattr(os, name, counted(getattr(os, name)))
        action()

    status = os.waitpid(forked(run), 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def found(path: Path) -> str:
    """The name of the pair; empty without an .xml."""
    if not path.exists():
        return ""
    assert path.read_text() == path.with_suffix(".bin").read_text()
    return path.read_text()


@pytest.mark.parametrize("durable", [False, True])
def test_killed_at_every_step(durable: bool, tmp_path: Path) -> None:
    for step in range(100):
        path = tmp_path / str(step) / "model.xml"
        write(path, "old")
        came = killed_at(step, lambda path=path: write(path, "new", durable=durable))
        assert found(path) in ("old", "new", "")
        restore_pair(path)
        assert found(path) in ("old", "new")
        write(path, "next")
        assert {each.name for each in path.parent.iterdir()} == {"model.xml", "model.bin"} and found(path) == "next"
        if not came:
            break
    assert 8 < step < 99


@in_a_small_process
def test_an_xml_that_had_no_bin_gets_none_of_another(tmp_path: Path) -> None:
    for step in range(30):
        path = tmp_path / str(step) / "model.xml"
        data = path.with_suffix(".bin")
        write(path, "old")
        data.unlink()
        came = killed_at(step, lambda path=path: write(path, "new"))
        restore_pair(path)
        assert (path.read_text(), data.exists() and data.read_text()) in (("old", ""), ("old", False), ("new", "new"))
        if not came:
            break
    assert step < 29


@in_a_small_process
def test_the_process_that_restores_is_killed_too(tmp_path: Path) -> None:
    for step in range(30):
        for second in range(6):
            path = tmp_path / f"{step}-{second}" / "model.xml"
            write(path, "old")
            came = killed_at(step, lambda path=path: write(path, "new"))
            killed_at(second, lambda path=path: restore_pair(path))
            assert found(path) in ("old", "new", "")
            restore_pair(path)
            assert found(path) in ("old", "new")
        if not came:
            break
    assert step < 29


@in_a_small_process
def test_killed_at_200_random_moments(tmp_path: Path) -> None:
    path, seed = tmp_path / "model.xml", random.randrange(1 << 32)
    chance = random.Random(seed)
    write(path, "0")

    def writing() -> None:
        for number in range(1 << 30):
            write(path, str(number))

    for _ in range(200):
        child = forked(writing)
        time.sleep(chance.random() * 0.004)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found(path)
        restore_pair(path)
        assert found(path), f"seed {seed}"
    write(path, "last")
    assert sorted(os.listdir(tmp_path)) == ["model.bin", "model.xml"]


def test_two_processes_write_one_pair(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"

    def writing(name: str) -> None:
        for number in range(100):
            write(path, f"{name}{number}")

    children = [forked(lambda name=name: writing(name)) for name in "ab"]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    assert found(path) in ("a99", "b99")
    assert sorted(os.listdir(tmp_path)) == ["model.bin", "model.xml"]


def test_a_killed_process_leaves_no_draft_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_whole(path, "old")
    assert killed_at(1, lambda: write_whole(path, "new"))
    assert path.read_text() == "old" and len(os.listdir(tmp_path)) > 1
    write_whole(path, "next")
    assert os.listdir(tmp_path) == ["report.json"] and path.read_text() == "next"


def test_a_pipe_is_written_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    child = forked(lambda: write_whole(pipe, "text"))
    assert pipe.read_text() == "text"
    assert os.waitpid(child, 0)[1] == 0 and pipe.is_fifo()
