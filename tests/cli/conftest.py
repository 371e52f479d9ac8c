"""Files that the tests of the command use."""

from pathlib import Path

import pytest

from mo_loop.api import convert_model, save_model
from tests.harness import parsed

from .commands import NESTED, OTHER, PLAIN, saved


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return saved(parsed(PLAIN), tmp_path)


@pytest.fixture
def old_pair(tmp_path: Path) -> Path:
    """The .xml file of a pair that an earlier conversion wrote."""
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "model.xml").write_bytes(b"<old/>")
    (folder / "model.bin").write_bytes(b"old weights")
    return folder / "model.xml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """old.onnx, new.onnx and their IR."""
    for name, text in (("old", NESTED), ("new", OTHER)):
        model = parsed(text)
        saved(model, tmp_path, f"{name}.onnx")
        save_model(convert_model(model), tmp_path / f"{name}.xml")
    return tmp_path
