"""`mo-loop batch --plan` by the report of an earlier batch."""

import json
from pathlib import Path

from tests.cli.batches import batch, good, read


def test_a_report_in_which_all_were_up_to_date_has_their_times(tmp_path: Path) -> None:
    """The seconds of a model that is up to date are those of a look; the report keeps those of its conversion."""
    good(tmp_path / "in" / "m.onnx")
    for _ in range(2):
        assert batch("in", "-o", "out", "--report", "r.json", cwd=tmp_path).returncode == 0
    (model,) = read(tmp_path / "r.json")["models"]
    assert model["status"] == "skipped" and model["conversion"]["seconds"] > 0
    plan = ("in", "-o", "out", "--plan", "--force", "--baseline", "r.json")
    assert "(1 of 1 by the earlier report)" in batch(*plan, cwd=tmp_path).stdout
    report = read(tmp_path / "r.json")
    report["models"][0]["conversion"] = None
    (tmp_path / "r.json").write_text(json.dumps(report))
    assert "(by size; --baseline REPORT improves it)" in batch(*plan, cwd=tmp_path).stdout


def test_a_report_without_sizes_is_none(tmp_path: Path) -> None:
    good(tmp_path / "in" / "m.onnx")
    assert batch("in", "-o", "out", "--report", "r.json", cwd=tmp_path).returncode == 0
    report = read(tmp_path / "r.json")
    del report["models"][0]["sizes"]["external"]
    (tmp_path / "r.json").write_text(json.dumps(report))
    done = batch("in", "-o", "out", "--plan", "--baseline", "r.json", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("error: ML214: r.json is not a report of a batch")
