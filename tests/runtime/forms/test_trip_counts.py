"""Trip counts known only at run time: zero, negative, huge, and early exits."""

from typing import Any

import numpy as np
import pytest

from tests.harness import boolean, check_graph, f32, i64
from tests.texts import texts

TEXTS = texts(__file__)

COUNTING = TEXTS["counting"]


def counted(trips: Any, go: Any, v: Any) -> list[Any]:
    count = max(int(np.ravel(trips)[0]), 0) if np.ravel(go)[0] else 0
    return [v + np.float32(sum(range(count)))]


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

    check_graph(text, counted, *([shaped(numbers(t)), shaped(np.bool_(c)), f32(t, 1)] for t, c in CALLS))


def test_a_huge_trip_count_with_early_exit() -> None:
    """The buffer of a concatenated output is allocated for all iterations, so the body counts instead: trip count
    -1, body condition and it + 1 < M, condition and M > 0."""
    text = TEXTS["a huge trip count with early exit"]

    def oracle(trips: Any, go: Any, limit: Any) -> list[Any]:
        count = min(max(int(trips), 0), max(int(np.ceil(limit)), 1)) if go else 0
        return [np.float32(count), np.arange(1, count + 1, dtype=np.float32)]

    calls = [(2**31 - 1, True, 5), (3, True, 9), (0, True, 4), (2**30, True, 1), (-4, True, 3), (7, False, 2),
             (2**31 - 1, True, 0), (10**6, True, 12), (1, True, 1)]
    check_graph(text, oracle, *([i64(t), boolean(c), np.float32(x)] for t, c, x in calls))


def test_a_while_loop_without_maximum() -> None:
    """Trip count -1: only the condition, computed from the state, ends it."""
    text = TEXTS["a while loop without maximum"]

    def oracle(x: Any) -> list[Any]:
        rows = []
        while x < 100:
            x = np.float32(x * 2 + 1)
            rows.append(x)
        return [x, np.array(rows, np.float32)]

    check_graph(text, oracle, *([np.float32(x)] for x in (1, 99, 100, 3, 250, 0, 40)))


def test_the_condition_is_a_state_that_the_body_reads() -> None:
    """As translated from ONNX: the condition is a state; isolated, because another state's next value depends on it."""
    text = TEXTS["the condition is a state that the body reads"]

    def oracle(trips: Any, go: Any, x: Any) -> list[Any]:
        seen, i = True, 0
        while i < trips and go:
            seen = bool(go) and seen
            x, i = x + 1, i + 1
            go = x.sum() < 20
        return [x, boolean(seen)]

    calls = [(9, True, 0), (2, True, 1), (0, True, 5), (9, False, 2), (5, True, 6), (30, True, -2)]
    check_graph(text, oracle, *([i64(t), boolean(c), i64([x, x, x + 1])] for t, c, x in calls))
