"""Every flag of `mo-loop convert` once, with its effect: here, or as a case of tests/cli/recorded/every_flag.txt."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import click
import numpy as np
import onnx
import pytest

from mo_loop.cli.convert import command
from tests.harness import parsed
from tests.texts import model_of, sections

from .commands import convert, saved

RECORDED = sections(Path(__file__).parent / "recorded" / "every_flag.txt")


def converted(folder: Path, *flags: str, name: str = "model.onnx", code: int = 0) -> str:
    """Convert to m.xml; stderr of the command."""
    done = convert(name, "-o", "m.xml", *flags, cwd=folder)
    assert done.returncode == code, done.stderr
    return done.stderr


def check_allow_external(folder: Path) -> None:
    made = parsed("main (float[3] x) => (float[3] y) <float[3] w = {1.0, 2.0, 3.0}> { y = Add (x, w) }")
    made.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.ones(3, np.float32), "w"))
    (folder / "in").mkdir()
    path = folder / "in" / "external.onnx"
    onnx.save(made, path, save_as_external_data=True, location="w.data", size_threshold=0)
    (folder / "in" / "w.data").rename(folder / "w.data")
    (folder / "in" / "w.data").symlink_to("../w.data")
    assert f"--allow-external {folder.resolve()}\n" in converted(folder, name="in/external.onnx", code=2)
    converted(folder, "--allow-external", ".", name="in/external.onnx")
    assert 'type="Const"' in (folder / "m.xml").read_text()


def check_dump_after(folder: Path) -> None:
    converted(folder, "--dump", "steps", "--dump-after", "ConstantFolding,PortRenumbering")
    assert {path.name[4:] for path in (folder / "steps").glob("*.full.json")} == {
        "ConstantFolding.full.json", "PortRenumbering.full.json",
    }


def check_dump_around(folder: Path) -> None:
    counts = []
    for depth in ("0", "1"):
        converted(folder, "--dump", "steps", "--dump-around", "r", "--dump-depth", depth)
        counts.append(len(json.loads((folder / "steps" / "000_loaded.json").read_bytes())["nodes"]))
    converted(folder, "--dump", "steps")
    assert counts[0] < counts[1] < len(json.loads((folder / "steps" / "000_loaded.json").read_bytes())["nodes"])


def check_durable(folder: Path) -> None:
    """Both files are synced, then their folder after each step that counts."""
    kinds: list[str] = []

    def fsync(descriptor: int) -> None:
        kinds.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")

    with mock.patch.object(os, "fsync", fsync):
        converted(folder)
        assert kinds == []
        converted(folder, "--durable")
    assert kinds == ["file", "file", "folder", "folder", "folder"]


def check_visualize(folder: Path) -> None:
    flags = ("--visualize-after", "GuardTripCounts", "--visualize-shapes", "--visualize-types")
    converted(folder, "--visualize", "pictures", *flags)
    assert any((folder / "pictures").glob("*.dot"))


CHECKS: dict[str, Callable[[Path], None]] = {
    "--allow-external": check_allow_external, "--dump-after": check_dump_after, "--dump-around": check_dump_around,
    "--dump-depth": check_dump_around, "--durable": check_durable, "--visualize": check_visualize,
    "--visualize-after": check_visualize, "--visualize-shapes": check_visualize, "--visualize-types": check_visualize,
}


def test_no_flag_is_left_out() -> None:
    flags = {name for each in command.params if isinstance(each, click.Option) for name in each.opts}
    recorded = {flag for kind, name, _ in RECORDED if kind == "case" for flag in name.split()}
    assert {name for name in flags if name.startswith("--")} - {"--help"} == {*CHECKS, *recorded}


@pytest.mark.keeps_loops
@pytest.mark.parametrize(
    "check", [*dict.fromkeys(CHECKS.values())], ids=lambda check: check.__name__.removeprefix("check_")
)
def test_flag(check: Callable[[Path], None], tmp_path: Path) -> None:
    model = next(model_of(name, text)[1] for kind, name, text in RECORDED if (kind, name) == ("file", "model.onnx"))
    assert model is not None
    check(Path(saved(model, tmp_path)).parent)
