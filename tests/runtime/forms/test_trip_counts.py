"""Trip counts known only at run time: zero, negative, huge, and early exits."""

from typing import Any

import numpy as np
import pytest

from tests.cases import read_cases
from tests.harness import boolean, check_graph, f32, i64
from tests.texts import texts

TEXTS = texts(__file__)

COUNTING = TEXTS["counting"]


CALLS = [(3, True), (0, True), (5, True), (-1, True), (4, False), (1, True), (-9, True), (2, True)]


@pytest.mark.parametrize("dtype", ["i64", "i32"])
@pytest.mark.parametrize("shape", ["[]", "[1]", "[?]"])
def test_a_negative_trip_count_means_none(dtype: str, shape: str) -> None:
    """A negative count is endless in Loop-5, zero in ONNX: Maximum(M, 0). Counts and conditions are [], [1] or [?]."""
    text = f"""
        %M = Parameter : {dtype}{shape}  %C = Parameter : boolean{shape}  %v = Parameter : f32[2]
        %m = Maximum(%M, 0)
        {COUNTING}"""
    form = np.reshape if shape == "[]" else np.atleast_1d
    numbers = {"i64": np.int64, "i32": np.int32}[dtype]

    def shaped(item: Any) -> Any:
        return form(item, ()) if shape == "[]" else form(item)

    check_graph(text, *([shaped(numbers(t)), shaped(np.bool_(c)), f32(t, 1)] for t, c in CALLS))


def test_a_huge_trip_count_with_early_exit() -> None:
    """The buffer of a concatenated output is allocated for all iterations, so the body counts instead: trip count
    -1, body condition and it + 1 < M, condition and M > 0."""
    text = TEXTS["a huge trip count with early exit"]
    calls = [(2**31 - 1, True, 5), (3, True, 9), (0, True, 4), (2**30, True, 1), (-4, True, 3), (7, False, 2),
             (2**31 - 1, True, 0), (10**6, True, 12), (1, True, 1)]
    check_graph(text, *([i64(t), boolean(c), np.float32(x)] for t, c, x in calls))


read_cases(globals())
