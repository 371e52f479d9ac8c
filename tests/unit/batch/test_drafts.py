"""The temporary folder of a batch: that of a killed batch is removed by the next, that of a running one stays."""

import os
from pathlib import Path

import pytest

from mo_loop.batching.outputs import drafts_in

pytestmark = pytest.mark.skipif(not hasattr(os, "O_DIRECTORY"), reason="this system cannot lock folders")


def test_only_the_folder_of_a_killed_batch_is_removed(tmp_path: Path) -> None:
    abandoned = tmp_path / ".mo-loop-abandoned"
    (abandoned / "3").mkdir(parents=True)
    (abandoned / "3" / "model.bin").write_text("half")
    (tmp_path / ".mo-loop.json").write_text("{}")
    with drafts_in(tmp_path) as running:
        assert not abandoned.exists() and Path(running).is_dir()
        with drafts_in(tmp_path) as other:
            assert other != running and Path(running).is_dir()
    assert [each.name for each in tmp_path.iterdir()] == [".mo-loop.json"]


def test_a_link_of_such_a_name_is_not_followed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("kept")
    out = tmp_path / "out"
    out.mkdir()
    (out / ".mo-loop-link").symlink_to(kept)
    with drafts_in(out):
        pass
    assert (kept / "file").read_text() == "kept" and (out / ".mo-loop-link").is_symlink()
