"""Refusals of a node before its translator runs: ranges of attributes, absent inputs, sizes that are too large."""

from __future__ import annotations

from types import NoneType
from typing import Any

import pytest

from mo_loop import convert_model, ops
from mo_loop.errors import ConversionErrors, TypeError_
from mo_loop.frontend.registry import describe, find
from mo_loop.graph import Graph
from mo_loop.graph.dimension import named
from mo_loop.graph.shape import MOST_ELEMENTS, require_sizes
from mo_loop.graph.types import f32
from mo_loop.ops.base import Parameter
from mo_loop.ops.ranges import MOST, Indices, Positive, Range, range_of
from tests.harness import parsed

CASES: dict[str, tuple[str, str]] = {
    "a group of 0": ("(float[1,2,5,5] x, float[2,1,3,3] w) => (y) { y = Conv <group = 0> (x, w) }", "ML236"),
    "a negative block": ("(float[1,4,2,2] x) => (y) { y = DepthToSpace <blocksize = -2> (x) }", "ML236"),
    "a stride of 0 among others": (
        "(float[1,1,5,5] x) => (y) { y = MaxPool <kernel_shape = [2, 2], strides = [1, 0]> (x) }", "ML236"),
    "a kernel beyond 32 bits": (
        "(float[1,1,5,5] x) => (y) { y = MaxPool <kernel_shape = [2, 4611686018427387904]> (x) }", "ML236"),
    "a size of 0": ("(float[1,2,5,5] x) => (y) { y = LRN <size = 0> (x) }", "ML236"),
    "no pieces": ("(float[4] x) => (y, z) { y, z = Split <num_outputs = 0> (x) }", "ML236"),
    "an absent input among several": ('(float[4] x) => (y) { y = Max (x, "", x) }', "ML227"),
    "an absent input at the end": ('(float[4] x) => (y) { y = Sum (x, "") }', "ML227"),
    "indices that are no integers": (
        "(float[4] x, float8e5m2[4] p) => (y) { y = GatherElements <axis = 0> (x, p) }", "ML240"),
    "a size beyond 64 bits": (
        "(float[4611686018427387904] x) => (y) { n = Constant <value_ints = [4]> () y = Tile (x, n) }", "ML242"),
    "a number beyond every size": (
        "(float[1,1,4,4] x) => (y) { s = Constant <value_floats = [1.0, 1.0, 3e38, 3e38]> () y = Resize (x, , s) }",
        "ML242"),
}


@pytest.mark.parametrize("case", CASES)
def test_refused(case: str) -> None:
    text, code = CASES[case]
    with pytest.raises(ConversionErrors) as caught:
        convert_model(parsed(f"main {text}"))
    assert (caught.value.code, caught.value.exit_code) == (code, 2), str(caught.value)
    assert caught.value.errors[0].where


def test_a_range_is_declared_beside_the_default() -> None:
    def function(x: Any, *, size: Positive, pads: Indices | None = None, axis: int = 0) -> Any:
        return x

    found = describe("Example", 1, function)
    assert found.kinds == {"size": (int,), "pads": (tuple[int, ...], NoneType), "axis": (int,)}
    assert found.ranges == {"size": Range(1), "pads": Range(-MOST)} and range_of(float | None) is None
    conv = find("Conv", 18)
    assert conv is not None and conv.ranges.keys() == {"dilations", "group", "kernel_shape", "pads", "strides"}


def test_the_ends_of_a_range_belong_to_it() -> None:
    for value in (1, MOST, (1, MOST), ()):
        Range(1).require("size", value)
    for value in (0, MOST + 1, (1, 0)):
        with pytest.raises(TypeError_, match=r"the attribute 'size' is \d+, and its range is 1 to 2147483647"):
            Range(1).require("size", value)


def test_an_operation_refuses_an_attribute_out_of_its_range() -> None:
    x = Parameter(graph=Graph("main"), dtype=f32, shape=(4,))
    split = ops.Split(x, 0, num_splits=2)
    for attempt in (lambda: ops.Split(x, 0, num_splits=0), lambda: setattr(split, "num_splits", 2**40)):
        with pytest.raises(TypeError_, match="the attribute 'num_splits' is"):
            attempt()
    assert split.num_splits == 2 and len(x.output.uses) == 1


def test_the_sizes_of_a_tensor_that_can_exist() -> None:
    for shape in [(), (0, MOST_ELEMENTS), (MOST_ELEMENTS,), (named("N"), MOST_ELEMENTS)]:
        require_sizes(shape)
    for shape in [(-1,), (named("N"), -1), (2**40, 2**40), (0, 2**62)]:
        with pytest.raises(TypeError_, match=r"^ML242: "):
            require_sizes(shape)
