"""Attributes and inputs that no model should have: operations refuse them with a code, with every reader of models."""

import pytest

from mo_loop.errors import TypeError_
from tests.unit.ops.examples import Example

STRIDES = {"pads_begin": (0, 0), "pads_end": (0, 0), "dilations": (1, 1)}


@pytest.mark.parametrize("example", [
    Example("Einsum", {"equation": "ij,jk->i,"}, "f32[2,3]", "f32[3,4]"),
    Example("Einsum", {"equation": "ij,jk->x"}, "f32[2,3]", "f32[3,4]"),
    Example("Einsum", {"equation": ""}), Example("Concat", {"axis": 0}),
    Example("Convolution", {**STRIDES, "strides": (0, 1)}, "f32[1,1,4,4]", "f32[1,1,2,2]"),
    Example("Convolution", {**STRIDES, "strides": (1, 1), "dilations": (1, -1)}, "f32[1,1,4,4]", "f32[1,1,2,2]"),
    Example("GroupNormalization", {"num_groups": 0, "epsilon": 0.0}, "f32[1,2,3]", "f32[2]", "f32[2]"),
    Example("Split", {"num_splits": 0}, "f32[4]", 0), Example("Split", {"num_splits": 2**40}, "f32[?]", 0),
    Example("Gather", {"batch_dims": 2}, "f32[4]", "i64[2]", 0),
    Example("Gather", {"batch_dims": -(2**40)}, "f32[4]", "i64[2]", "i64[]"),
    Example("Unsqueeze", {}, "f32[4]", f"i64[{2**40}]"), Example("Reshape", {}, "f32[?]", f"i64[{2**40}]"),
], ids=str)
def test_refused(example: Example) -> None:
    with pytest.raises(TypeError_) as caught:
        example.infer(list(example.types))
    assert caught.value.code in ("ML234", "ML235", "ML236", "ML242")
