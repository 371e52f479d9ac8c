"""`mo-loop convert` with --input, --output and --dump."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mo_loop.api import convert_model
from mo_loop.dump.run_folder import INDEX, PAGE
from mo_loop.errors import UsageError
from mo_loop.text import parse, to_text
from mo_loop.verification.isolated import isolated
from mo_loop.verification.runtime import run_ir
from tests.harness import check, floats, parsed
from transforms.pipelines import default_pipeline

from .commands import PYTORCH, convert


def test_cuts(plain: Path, tmp_path: Path) -> None:
    assert convert(plain, "-o", tmp_path / "a.xml", "--output", "a").returncode == 0
    assert isolated(run_ir, str(tmp_path / "a.xml"), [{"x": np.zeros(3, np.float32)}])[0][0][0] == "a"
    assert str(convert_model(plain, input="a").graph.parameters[0].output.type) == "f32[3]"  # inferred, not declared
    check(plain, {"x": floats(3)}, expected=[[("a", floats(3) + np.float32([1, 2, 3]))]], output=["a"], rtol=1e-6)
    wrong = convert(plain, "-o", tmp_path / "b.xml", "--output", "aa")
    assert wrong.returncode == 2
    assert "did you mean 'a'?" in wrong.stderr


def test_input_shapes() -> None:
    made = parsed("main (float[N, M] x) => (float[N, M] y) { y = Neg (x) }")
    converted = convert_model(made, input={"x": [2, None]})
    assert str(converted.graph.parameters[0].output.type) == "f32[2,?]"
    with pytest.raises(UsageError):
        convert_model(made, input={"x": [2, "no name"]})


def test_dump(tmp_path: Path) -> None:
    """One numbered file for each step that changed the graph; the text can be parsed."""
    steps = tmp_path / "steps"
    assert convert(PYTORCH / "for_break.onnx", "-o", tmp_path / "m.xml", "--dump", steps).returncode == 0
    names = sorted(path.name for path in steps.iterdir() if path.name not in (INDEX, PAGE))
    stems = sorted({name.rpartition(".")[0] for name in names})
    passes = [each.name for each in default_pipeline()]
    assert stems[0] == "000_loaded" and len(stems) > 3
    assert all(passes[int(stem[:3]) - 1] == stem[4:] for stem in stems[1:])
    assert names == sorted(f"{stem}.{ending}" for stem in stems for ending in ("txt", "dot", "json"))
    for stem in stems:
        text = (steps / f"{stem}.txt").read_text(encoding="utf-8")
        assert to_text(parse(text)) == text
        assert json.loads((steps / f"{stem}.json").read_text(encoding="utf-8"))["nodes"]
        assert (steps / f"{stem}.dot").read_text(encoding="utf-8").startswith("digraph")
    last = (steps / f"{stems[-1]}.txt").read_text(encoding="utf-8")
    converted = convert_model(PYTORCH / "for_break.onnx")
    assert to_text(converted.graph) == last
