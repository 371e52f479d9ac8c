"""Operators that move elements: Reshape, Squeeze, Transpose, Concat, Split, Slice, DepthToSpace, ReverseSequence ..."""

from typing import Any

import numpy as np
import pytest

from tests.cases import read_cases
from tests.harness import check_node, every

LAST, FIRST = np.iinfo(np.int64).max, np.iinfo(np.int64).min


def floats(*shape: int) -> Any:
    return np.random.default_rng(7).uniform(-2, 2, shape).astype(np.float32)


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


DYNAMIC = [(), ("x",)]
both = pytest.mark.parametrize("dynamic", DYNAMIC, ids=["static", "dynamic"])
SLICES = [
    # starts, ends, axes, steps
    ((1,), (3,), None, None),
    ((0, 1), (2, 100), None, None),
    ((1,), (-1,), (1,), None),
    ((-3,), (LAST,), (-1,), None),
    ((0,), (LAST,), (0,), (2,)),
    ((-1,), (FIRST,), (1,), (-1,)),
    ((-1,), (-100,), (1,), (-1,)),
    ((LAST,), (FIRST,), (1,), (-2,)),
    ((3, 1), (0, 4), (2, 1), (-1, 2)),
    ((5,), (2,), (0,), None),
    ((100,), (200,), (0,), None),
    ((-100,), (2,), (1,), (1,)),
    ((2**31,), (2**40,), (0,), None),
    ((0,), (2**31 - 1,), (1,), (1,)),
    ((2,), (-(2**31),), (1,), (-1,)),
    ((0,), (5,), (1,), (2**40,)),
]


@every(dynamic=DYNAMIC, bounds=SLICES)
def test_slice(bounds: Any, dynamic: Any) -> None:
    starts, ends, axes, steps = bounds
    x = floats(4, 5, 6)
    if steps is None:
        attributes = {"starts": starts, "ends": ends} | ({} if axes is None else {"axes": [a % 3 for a in axes]})
        check_node("Slice", {"x": x}, attributes, opset=1, dynamic=dynamic)
    for kind in (np.int64, np.int32):
        values = (starts, ends, axes, steps)
        if kind is np.int32 and any(abs(v) >= 2**31 for part in values if part for v in part):
            continue
        names = dict(zip(("starts", "ends", "axes", "steps"), values, strict=True))
        inputs = {"x": x} | {k: None if v is None else np.array(v, kind) for k, v in names.items()}
        present = tuple(name for name, value in inputs.items() if value is not None and name != "x")
        for opset in (10, 13):
            check_node("Slice", inputs, opset=opset, constants=present, dynamic=dynamic)
        if all(abs(v) < 2**31 for part in values if part for v in part):
            check_node("Slice", inputs, opset=13, dynamic=dynamic)
            check_node("Slice", inputs, opset=13, dynamic=dynamic, constants=("axes", "steps"))


read_cases(globals())
