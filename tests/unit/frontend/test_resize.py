"""Where Resize is an Interpolate: only where the runtime computes the sizes that ONNX defines, and resizes at all."""

import pytest

from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.errors import ConversionErrors
from tests.harness import folded, parsed


def is_native(text: str) -> bool:
    """Whether the converted model has one Interpolate, not operations in its place."""
    return len(convert_model(parsed(text, opset=19), **folded()).graph.of(ops.Interpolate)) == 1


def resized(size: str, scales: str, **attributes: str) -> str:
    """A model that resizes a tensor of rank 4."""
    given = ", ".join(f'{name}="{value}"' for name, value in {"mode": "linear", **attributes}.items())
    return f"""main (float[{size}] x) => (float[A,B,C,D] y) {{
      scales = Constant <value_floats=[{scales}]> () y = Resize <{given}> (x, "", scales)
    }}"""


def test_sizes_that_are_known() -> None:
    assert is_native(resized("1,1,4,4", "1.0, 1.0, 2.0, 2.0"))


@pytest.mark.parametrize(
    ("least", "scale", "expected"), [(0, 2.0, True), (1, 1.5, False), (2, 1.5, True), (3, 1.3, False), (4, 1.3, True)]
)
def test_the_runtime_does_not_resize_an_axis_whose_size_stays(least: int, scale: float, expected: bool) -> None:
    """The size stays where size * (scale - 1) < 1."""
    text = f"""main (float[1,1,N,4] x, float[1,1,{least},4] more) => (float[A,B,C,D] y) {{
      scales = Constant <value_floats=[1.0, 1.0, {scale}, 2.0]> () longer = Concat <axis=2> (x, more)
      y = Resize <mode="linear"> (longer, "", scales)
    }}"""
    assert is_native(text) is expected


def test_batch_and_channels_are_not_resized_by_the_runtime() -> None:
    assert is_native(resized("1,2,4,4", "1.0, 1.0, 2.0, 2.0"))
    assert not is_native(resized("1,2,4,4", "1.0, 2.0, 2.0, 2.0"))


@pytest.mark.parametrize("attributes", [
    {"mode": "area"}, {"coordinate_transformation_mode": "middle"}, {"nearest_mode": "up"},
    {"nearest_mode": "simple"}, {"coordinate_transformation_mode": "align_corners", "nearest_mode": "up"},
])
def test_modes_that_do_not_exist(attributes: dict[str, str]) -> None:
    model = parsed(resized("1,1,4,4", "1.0, 1.0, 2.0, 2.0", **{"mode": "nearest", **attributes}), opset=19)
    *_, (name, value) = attributes.items()
    with pytest.raises(ConversionErrors, match=f"{name} '{value}'"):
        convert_model(model)
