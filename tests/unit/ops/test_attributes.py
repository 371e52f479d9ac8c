"""Attributes: those that a specification makes optional have its defaults, and values of another kind are refused."""

from __future__ import annotations

from typing import Any

import pytest

from mo_loop import ops
from mo_loop.errors import TypeError_
from mo_loop.graph import Graph
from mo_loop.ops.base import Op
from tests.unit.graphs import parameter

RESIZING = {
    "antialias": False, "coordinate_transformation_mode": "half_pixel", "cube_coeff": -0.75,
    "nearest_mode": "round_prefer_floor", "pads_begin": (0,), "pads_end": (0,),
}


@pytest.mark.parametrize(("name", "expected"), [
    ("Interpolate", RESIZING), ("Interpolate11", RESIZING), ("Gather", {"batch_dims": 0}),
    ("ReverseSequence", {"batch_axis": 0, "seq_axis": 1}),
    ("ScatterElementsUpdate12", {"reduction": "none", "use_init_val": True}),
])
def test_defaults(name: str, expected: dict[str, Any]) -> None:
    declared = getattr(ops, name).attributes
    assert {key: value for key, value in declared.items() if value is not Op.REQUIRED} == expected


@pytest.mark.parametrize("name", ["", "layer"])
def test_an_attribute_with_another_value_is_refused(name: str) -> None:
    x = parameter(Graph(), 2, 3)
    with pytest.raises(TypeError_, match="SoftMax: 'last' is not a valid axis") as caught:
        ops.Softmax(x, axis="last", name=name)
    assert caught.value.code == "ML236" and caught.value.where == name
