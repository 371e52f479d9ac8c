"""The same model gives the same bytes wherever and however it is converted; tools/determinism.py tries more of both."""

from pathlib import Path

import pytest

from mo_loop.api import convert_model, save_model
from tests.running.rows import turn
from tools.determinism import CIRCUMSTANCES, Circumstance, batches, differing
from tools.ir_samples import Sample

MODELS = sorted((Path(__file__).parents[1] / "models").rglob("*.onnx"))


def test_in_other_circumstances(tmp_path: Path) -> None:
    samples = [Sample(path.stem, str(path), {}) for path in turn(MODELS, 8)]
    assert len(samples) >= 5
    everything = Circumstance(
        "everything", {key: value for each in CIRCUMSTANCES for key, value in each.environment.items()}, folder="/"
    )
    found = differing((CIRCUMSTANCES[0], everything), samples, MODELS[0].parent, tmp_path)
    assert found == {"everything": []}


def test_a_difference_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = [Sample("one", str(MODELS[0]), {})]
    other = Circumstance("other", {"PYTHONHASHSEED": "1"})

    def changed(each: Circumstance, process: object) -> None:
        process.wait()  # type: ignore[attr-defined]
        if each is other:
            path = tmp_path / "output1" / "0.bin"
            path.write_bytes(path.read_bytes() + b"x")

    monkeypatch.setattr("tools.determinism._finish", changed)
    (found,) = differing((CIRCUMSTANCES[0], other), samples, MODELS[0].parent, tmp_path)["other"]
    assert found.startswith("one: bin: ")


def test_again_in_one_process_and_in_batches(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for path in MODELS[:16:4]:
        (tmp_path / "in" / path.name).write_bytes(path.read_bytes())
    for name in ("a", "b"):
        save_model(convert_model(MODELS[0]), tmp_path / f"{name}.xml")
    for ending in (".xml", ".bin"):
        assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()
    assert batches(tmp_path / "in", tmp_path) == []
