"""Loops without iterations: in the obvious form a concatenated output contains the buffer of an earlier inference."""

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from mo_loop.api import convert_model, save_model
from tests.cases import read_cases
from tests.harness import boolean, check_model, f32, folded, i64, parsed
from tests.texts import texts

TEXTS = texts(__file__)

# nz is whether the loop runs at all, `end` is the end of the slice: 0, or beyond every dimension.
GUARD = """
%m = Maximum(%M, 0)  %some = Greater(%m, 0)  %nz = LogicalAnd(%some, %C)
%stop = Select(%nz, i64 1073741824, i64 0)  %end = Reshape(%stop, [1])"""

# s' = s + (i + 1); its double is concatenated.
LOOP = TEXTS["loop"]

CALLS = [(3, True), (0, True), (4, True), (3, False), (2, True), (0, False), (0, True), (1, True), (-1, True),
         (-7, True)]


def ran(trips: Any, go: Any, v: Any, dynamic: bool = False) -> list[Any]:
    s, rows = v, []
    for i in range(max(int(trips), 0) if go else 0):
        s = s + np.float32(i + 1)
        rows.append(s * 2)
    empty = np.zeros((0, 0 if dynamic else len(v)), np.float32)
    return [s, np.stack(rows) if rows else empty]


def feeds(lengths: list[int]) -> list[list[Any]]:
    return [[i64(trips), boolean(go), np.arange(lengths[k % len(lengths)], dtype=np.float32) + trips]
            for k, (trips, go) in enumerate(CALLS)]


DEAD_STATE = TEXTS["dead state"]
UNREAD = """
    %f = Convert(%i) {destination_type: f32}  %n = Add(%f, [5.0, 6.0])"""
READ = """
    %f = Convert(%i) {destination_type: f32}  %new = Add(%f, [5.0, 6.0])  %always = GreaterEqual(%i, 0)
    %n = Select(%always, %new, %s)"""
GROWN = """
    %f = Convert(%i) {destination_type: f32}  %stop = Add(%f, 1)  %n = Range(0.0, %stop, 1.0) {output_type: f32}"""
CHOSEN = TEXTS["chosen"]


def test_sizes_beside_the_one_that_grows_stay_known(tmp_path: Path) -> None:
    """The runtime must know that `sum` has one row: after no iteration it sets sizes to 0 that it does not know."""
    model = parsed("""main (int64 n, float[1,1] s, float[1,3] x) => (float[1,2] y, float[K,1,1] sums) {
            go = Constant <value = bool {1}> ()
            sum, longer, sums = Loop (n, go, s, x) <body = body (int64 i, bool c, float[1,1] t, float[1,M] r)
                => (bool d, float[1,1] u, float[1,P] q, float[1,1] v) {
                d = Identity (c)  largest = ReduceMax <axes = [1], keepdims = 1> (r)  u = Add (t, largest)
                q = Concat <axis = 1> (r, u)  v = Identity (u) }>
            y = Concat <axis = 1> (sum, s) }""", opset=17)
    calls = [{"n": np.array(n), "s": f32(n + 1)[None], "x": f32(1, n, 2)[None]} for n in (0, 2, 0, 3)]
    check_model(model, *calls)
    save_model(convert_model(model, **folded()), tmp_path / "model.xml")
    read = ov.Core().read_model(tmp_path / "model.xml")
    (loop,) = (each for each in read.get_ops() if each.get_type_name() == "Loop")
    assert [str(each.get_partial_shape()) for each in loop.outputs()] == ["[1,1]", "[?,1,1]"]


read_cases(globals())
