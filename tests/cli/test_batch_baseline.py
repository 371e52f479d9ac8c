"""`mo-loop batch --baseline`: known failures do not count, new ones do."""

import json
from pathlib import Path

import pytest
from lxml import etree

from .batches import batch, good, read, refused


@pytest.fixture
def accepted(tmp_path: Path) -> Path:
    """A folder of a good model and one that is refused, and the report of a batch over it."""
    good(tmp_path / "in" / "good.onnx")
    refused(tmp_path / "in" / "known.onnx")
    assert batch("in", "-o", "out", "--report", "accepted.json", cwd=tmp_path).returncode == 1
    return tmp_path


def test_known_failures_do_not_count(accepted: Path) -> None:
    flags = ("--baseline", "accepted.json", "--report", "r.json", "--junit", "j.xml", "--summary", "s.md")
    done = batch("in", "-o", "out", *flags, cwd=accepted)
    assert done.returncode == 0 and "note: fail as in the baseline: known.onnx" in done.stderr
    assert {each["name"]: each["known"] for each in read(accepted / "r.json")["models"]} == {
        "good.onnx": False, "known.onnx": True,
    }
    suite = etree.parse(accepted / "j.xml").getroot()
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")
    assert "New failures: 0. Known failures: 1." in (accepted / "s.md").read_text()
    assert "failed, known" in (accepted / "s.md").read_text()


def test_a_new_failure_counts(accepted: Path) -> None:
    refused(accepted / "in" / "good.onnx")
    refused(accepted / "in" / "added.onnx")
    done = batch("in", "-o", "out", "--baseline", "accepted.json", "--summary", "s.md", cwd=accepted)
    assert done.returncode == 1 and "New failures: 2. Known failures: 1." in (accepted / "s.md").read_text()


def test_known_failures_that_convert_now_are_listed(accepted: Path) -> None:
    good(accepted / "in" / "known.onnx", 1)
    done = batch("in", "-o", "out", "--baseline", "accepted.json", cwd=accepted)
    assert done.returncode == 0 and "note: failed in the baseline and convert now: known.onnx" in done.stderr


@pytest.mark.parametrize(("count", "more"), [(5, ""), (6, " and 1 more")])
def test_five_known_failures_are_named(count: int, more: str, tmp_path: Path) -> None:
    for number in range(count):
        refused(tmp_path / "in" / f"{number}.onnx")
    batch("in", "-o", "out", "--report", "accepted.json", cwd=tmp_path)
    done = batch("in", "-o", "out", "--baseline", "accepted.json", cwd=tmp_path)
    assert f"note: fail as in the baseline: 0.onnx, 1.onnx, 2.onnx, 3.onnx, 4.onnx{more}\n" in done.stderr


@pytest.mark.parametrize(("content", "words"), [
    (None, "does not exist"), ("{", "is not a report"), ("[]", "is not a report"),
    (json.dumps({"schema": "mo-loop batch report", "version": 0, "models": []}), "is not a report"),
    (json.dumps({"schema": "mo-loop batch report", "version": 1, "models": [1]}), "is not a report"),
])
def test_baselines_that_are_not_reports_are_refused(content: str | None, words: str, accepted: Path) -> None:
    if content is not None:
        (accepted / "b.json").write_text(content)
    before = (accepted / "out" / ".mo-loop.json").read_bytes()
    done = batch("in", "-o", "out", "--baseline", "b.json", cwd=accepted)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr
    assert (accepted / "out" / ".mo-loop.json").read_bytes() == before
