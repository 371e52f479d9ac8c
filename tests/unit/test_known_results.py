"""An earlier result is found for the same files, inputs, expected values and limits, and for nothing else."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mo_loop.api import convert_model, save_model
from tests.harness import parsed
from tests.running import together
from tests.running.samples import Inferred, Sample
from tests.running.together import passed, values

TEXT = "m (float[N,2] x) => (float[N,2] y) { y = Mul (x, x) }"
X = np.ones((3, 2), np.float32)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "FOLDER", str(tmp_path / "results"))


def saved(path: Path) -> tuple[Path, Sample]:
    """An IR and a sample; the dimension has a new symbol in each conversion."""
    converted = convert_model(parsed(TEXT))
    save_model(converted, path)
    inferred = Inferred(converted.graph)
    return path, Sample("model", b"", [{"x": X}], [[("y", X)]], (0, 0), exact=True, inferred=inferred)


def test_the_same_is_found_again(tmp_path: Path) -> None:
    known = passed(*saved(tmp_path / "a.xml"))
    assert known.found is None
    known.keep(True)
    assert passed(*saved(tmp_path / "b.xml")).found is True


CHANGES: dict[str, Callable[[Sample], Sample]] = {
    "inputs": lambda sample: replace(sample, feeds=[{"x": X + 1}]),
    "names of inputs": lambda sample: replace(sample, feeds=[{"z": X}]),
    "expected values": lambda sample: replace(sample, expected=[[("y", X + 1)]]),
    "tolerance": lambda sample: replace(sample, rtol=0.5),
    "order": lambda sample: replace(sample, order=(0,)),
    "release": lambda sample: replace(sample, python="/other/python"),
    "inferred shapes": lambda sample: replace(sample, inferred=None),
}


@pytest.mark.parametrize("what", CHANGES)
def test_another_sample_is_not_found(what: str, tmp_path: Path) -> None:
    path, sample = saved(tmp_path / "m.xml")
    passed(path, sample).keep(True)
    assert passed(path, sample).found is True and passed(path, CHANGES[what](sample)).found is None


def test_other_files_are_not_found(tmp_path: Path) -> None:
    path, sample = saved(tmp_path / "m.xml")
    passed(path, sample).keep(True)
    path.with_suffix(".bin").write_bytes(b"other weights")
    assert passed(path, sample).found is None


def test_another_setting_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values(b"model", [{"x": X}]).keep("these")
    assert values(b"model", [{"x": X}]).found == "these" and values(b"other", [{"x": X}]).found is None
    monkeypatch.setattr(together, "_setting", lambda: "another processor")
    assert values(b"model", [{"x": X}]).found is None


def test_nothing_is_kept_without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "FOLDER", "")
    path, sample = saved(tmp_path / "m.xml")
    passed(path, sample).keep(True)
    assert passed(path, sample).found is None
