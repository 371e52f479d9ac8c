"""verify of an IR that records how it was converted: ONNX Runtime's side gets the same parameters."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mo_loop.api import convert_model, read_model, save_model
from mo_loop.compare.results.report_formats import as_text
from mo_loop.compare.verifying import verify
from mo_loop.errors import UsageError
from mo_loop.options import ConvertOptions
from tests.cli.commands import saved
from tests.harness import floats, parsed

IMAGE = "main (float[1,3,6,6] image, float k) => (float[1,3,6,6] y) { s = Softmax <axis = 1> (image) y = Mul (s, k) }"
ALONE = "main (float[1,3,6,6] image) => (float[1,3,6,6] y) { s = Softmax <axis = 1> (image) y = Mul (s, s) }"

WAYS: list[dict[str, Any]] = [
    {"mean_values": {"image": [1.0, 0.5, -1.0]}, "reverse_input_channels": True},
    {"scale_values": {"image": [0.5, 2.0, 3.0]}, "mean_values": {"image": [1.0, 2.0, 3.0]}},
    {"layout": "image(nchw->nhwc)", "mean_values": {"image": [1.0, 0.5, -1.0]}, "reverse_input_channels": True},
    {"layout": "y(nchw->nhwc)"},
    {"freeze": {"k": 2.0}},
    {"output": "s"},
    {"input": "s,k"},
    {"input": "image[2,3,4,4],k"},
    {"rename": {"image": "picture", "y": "made"}},
    {"compress_to_fp16": True},
]


def converted(path: Path, **options: Any) -> Path:
    target = path.with_suffix(".xml")
    half = options.pop("compress_to_fp16", False)
    save_model(convert_model(path, **options), target, compress_to_fp16=half)
    return target


@pytest.mark.parametrize("options", WAYS, ids=lambda each: ",".join(each))
def test_the_parameters_of_an_ir_are_those_of_the_model(options: dict[str, Any], tmp_path: Path) -> None:
    path = saved(parsed(IMAGE), tmp_path)
    report = verify(path, converted(path, **options), layers=True)
    assert report, as_text(report)
    assert report.pieces.status == "agrees" and report.pieces.count > 0
    again = verify(path, options=ConvertOptions(**options))
    assert again, as_text(again)


def test_the_batch_is_that_of_the_ir(tmp_path: Path) -> None:
    path = saved(parsed(ALONE), tmp_path)
    report = verify(path, converted(path, batch=4))
    assert report and report.sets[0].types == {"image": "f32[4,3,6,6]"}


@pytest.mark.parametrize("old, new", [("1,0.5,-1", "1,0.5,-2"), ("[N,C,H,W]", "[N,C,W,H]")])
def test_what_the_ir_records_is_what_it_must_compute(old: str, new: str, tmp_path: Path) -> None:
    """The record is changed: the IR does not compute what it says."""
    path = saved(parsed(ALONE), tmp_path)
    target = converted(path, layout="image(nchw->nhwc)", mean_values={"image": [1.0, 0.5, -1.0]})
    text = target.read_text("utf-8")
    place = text.index("<preprocessing>")
    assert old in text[place:]
    target.write_text(text[:place] + text[place:].replace(old, new), "utf-8")
    assert not verify(path, target)


def test_parameters_that_cannot_be_applied_are_refused_with_their_name(tmp_path: Path) -> None:
    path = saved(parsed(ALONE), tmp_path)
    model = convert_model(path)
    model.graph.rt_info["converter"] = {"name": "another"}
    model.graph.rt_info["conversion_parameters"] = {"mean_values": "image[1,2,3]"}
    target = tmp_path / "other.xml"
    save_model(model, target)
    with pytest.raises(UsageError, match=r"cannot apply mean_values = image\[1,2,3\]"):
        verify(path, target)
    long = saved(parsed("main (float[20] x, float[20] w) => (float[20] y) { y = Mul (x, w) }"), tmp_path, "long.onnx")
    with pytest.raises(UsageError, match="cannot apply freeze = w="):
        verify(long, converted(long, freeze={"w": floats(20)}))
    read = read_model(converted(path))
    read.graph.rt_info["preprocessing"] = {"crop": {"image": "1"}}
    save_model(read, target)
    with pytest.raises(UsageError, match="cannot apply crop"):
        verify(path, target)


def test_given_inputs_have_the_form_of_the_ir(tmp_path: Path) -> None:
    path = saved(parsed(ALONE), tmp_path)
    target = converted(path, layout="image(nchw->nhwc)")
    x = floats(1, 6, 6, 3)
    report = verify(path, target, inputs=[{"image": x}], save=tmp_path / "kept")
    assert report, as_text(report)
    e = np.exp(x - x.max(axis=3, keepdims=True))
    expected = np.moveaxis((e / e.sum(axis=3, keepdims=True)) ** 2, 3, 1)
    np.testing.assert_allclose(np.load(tmp_path / "kept" / "set0-f32.npz")["y"], expected, rtol=1e-4)
