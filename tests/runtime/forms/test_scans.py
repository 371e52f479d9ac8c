"""Scans: slices and concatenated outputs in both directions, known, unknown and zero lengths."""

from typing import Any

import numpy as np
import pytest

from tests.cases import read_cases
from tests.harness import check_graph, floats

# A lowered Scan whose length may be 0: trip count from the shape, slices, and a guard against stale rows.
LENGTH = """
%shape = ShapeOf(%x)  %length = Gather(%shape, AXIS, 0)  %end = Reshape(%length, [1])"""

# The rest of its body, from the element %row and the state %s on, and the nodes after the loop.
STEP = """
%half = Multiply(%s, 0.5)  %n = Add(%half, %row)  %u = Unsqueeze(%n, 0)
Result(true) @go  Result(%n)  Result(%u)"""
RESULTS = """
%all = Slice(%scan, [0], %end, [1], [0])
Result(%last)  Result(%all)"""


def joined(states: list[Any], like: Any, axis: int = 0, reverse: bool = False) -> Any:
    rows = states[::-1] if reverse else states
    empty = list(like.shape)
    empty.insert(axis, 0)
    return np.stack(rows, axis) if rows else np.zeros(empty, np.float32)


SLICES = {False: "", True: ", start: -1, end: 0, stride: -1"}


@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("join_backwards", [False, True], ids=["joined", "joined backwards"])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_loop_over_a_length_that_may_be_zero(backwards: bool, join_backwards: bool, axis: int) -> None:
    dims, squeezed = ("T,2", "f32[1,2]") if axis == 0 else ("2,T", "f32[2,1]")
    text = f"""
        %h = Parameter : f32[2]  %x = Parameter : f32[{dims}]
        {LENGTH.replace("AXIS", str(axis))}
        %last, %scan = Loop(%length, true, %h, %x) {{
          condition: @go, input_map: [Merged(%s, @n), Sliced(%e, axis: {axis}{SLICES[backwards]})]
          output_map: [Final(@n), Concatenated(@u, axis: 0{SLICES[join_backwards]})]}}
          body {{
            %s = Parameter  %e = Parameter : {squeezed}
            %row = Squeeze(%e, [{axis}])
            {STEP}
          }}
        {RESULTS}"""
    feeds = []
    for seed, length in enumerate([3, 0, 5, 1, 0, 2]):
        shape = (length, 2) if axis == 0 else (2, length)
        feeds.append([floats(2, seed=seed), floats(*shape, seed=seed + 9)])
    check_graph(text, *feeds)


read_cases(globals())
