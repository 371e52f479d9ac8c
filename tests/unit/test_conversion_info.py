"""The rt_info of a converted model: converter, version and options; no path and no time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import mo_loop
from mo_loop.ir_origins import recorded_options
from mo_loop.transforms.config import PassConfig

MODEL = onnx.parser.parse_model(
    '<ir_version: 9, opset_import: ["": 18]> m (float[N,3] x, float[3] s) => (float[N,3] y) { y = Mul (x, s) }'
)


def info(**options: Any) -> dict[str, Any]:
    return mo_loop.convert_model(MODEL, **options).graph.rt_info


def test_the_converter_and_its_version_are_named() -> None:
    converter = {"name": "mo_loop", "version": mo_loop.__version__, "target": "2024.6-2026.4"}
    assert info()["converter"] == converter
    assert info(target="2025.4")["converter"] == {**converter, "target": "2025.4"}
    assert info(target="2025.4")["conversion_parameters"] == {} and info()["conversion_parameters"] == {}


def register(extensions: mo_loop.Extensions) -> None:
    """An extension that adds nothing."""


@pytest.mark.parametrize(("options", "expected"), [
    ({"input": "x[1,3],s"}, {"input": "x[1,3],s"}),
    ({"input": {"x": [1, None], "s": (3,)}}, {"input": "x=[1,?],s=[3]"}),
    ({"freeze": {"s": np.array([1.0, 2.0, 0.5])}}, {"freeze": "s=[1.0,2.0,0.5]"}),
    ({"strict": True, "plugins": False, "unroll": 0}, {"strict": "True", "plugins": "False"}),
    (
        {"layout": "x(nc)", "mean_values": "x[1,2,3]", "scale": 2.0},
        {"layout": "x(nc)", "mean_values": "x[1,2,3]", "scale": "2.0"}),
    ({"extensions": register}, {"extensions": "register"}),
    ({"freeze": {}, "rename": {}, "input": {}}, {}),
])
def test_options_that_differ_from_their_default_are_recorded(options: dict[str, Any], expected: dict[str, str]) -> None:
    assert info(**options)["conversion_parameters"] == expected


def test_large_arrays_are_recorded_by_type_and_shape() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> m (float[20] x, float[20] s) => (float[20] y) { y = Mul (x, s) }'
    )
    found = mo_loop.convert_model(model, freeze={"s": np.ones(20, np.float32)}).graph.rt_info
    assert found["conversion_parameters"] == {"freeze": "s=f32[20]"}


def test_passes_are_recorded() -> None:
    config = PassConfig()
    config.disable("SharedOpOptimization", "LoopToTI")
    assert info(config=config)["conversion_parameters"] == {"disable_pass": "LoopToTI,SharedOpOptimization"}


def test_folders_are_not_recorded_and_the_reader_keeps_everything(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def register(extensions):\n    pass\n")
    model = mo_loop.convert_model(MODEL, extensions=str(tmp_path / "own.py"))
    assert model.graph.rt_info["conversion_parameters"] == {"extensions": "own.py"}
    mo_loop.save_model(model, tmp_path / "m.xml", compress_to_fp16=True)
    written = (tmp_path / "m.xml").read_text()
    assert str(tmp_path) not in written and '<compress_to_fp16 value="True" />' in written
    read = mo_loop.read_model(tmp_path / "m.xml").graph.rt_info
    assert read == {
        "converter": {"name": "mo_loop", "version": mo_loop.__version__, "target": "2024.6-2026.4"},
        "conversion_parameters": {"extensions": "own.py", "compress_to_fp16": "True"},
        "sizes": {"x": "?,?", "s": "?"},
    }
    assert model.graph.rt_info["conversion_parameters"] == {"extensions": "own.py"}  # saving does not change a model


@pytest.mark.parametrize("unroll", ["many", "9" * 5000])
def test_recorded_options_that_have_no_value_are_none(unroll: str) -> None:
    assert recorded_options({"conversion_parameters": {"unroll": unroll}}) is None
