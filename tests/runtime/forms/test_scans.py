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


def running_sums(h: Any, x: Any, axis: int = 0, reverse: bool = False) -> tuple[Any, list[Any]]:
    """h' = h / 2 + element; the final h and all of them, in the order of the iterations."""
    elements = [np.take(x, k, axis) for k in range(x.shape[axis])]
    states = []
    for element in reversed(elements) if reverse else elements:
        h = (h * np.float32(0.5) + element).astype(np.float32)
        states.append(h)
    return h, states


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

    def oracle(h: Any, x: Any) -> list[Any]:
        last, states = running_sums(h, x, axis, backwards)
        return [last, joined(states, h, 0, join_backwards)]

    feeds = []
    for seed, length in enumerate([3, 0, 5, 1, 0, 2]):
        shape = (length, 2) if axis == 0 else (2, length)
        feeds.append([floats(2, seed=seed), floats(*shape, seed=seed + 9)])
    check_graph(text, oracle, *feeds)


@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
def test_a_loop_that_gathers_its_elements(backwards: bool) -> None:
    """The other form for a length that may be 0: no slices, the iteration number is the index of the element."""
    index = "%back = Subtract(%length, %i)\n%k = Subtract(%back, 1)" if backwards else "%k = Maximum(%i, %i)"
    text = f"""
        %h = Parameter : f32[2]  %x = Parameter : f32[T,2]
        {LENGTH.replace("AXIS", "0")}
        %last, %scan = Loop(%length, true, %h, %x, %length) {{
          iteration: %i, condition: @go, input_map: [Merged(%s, @n), Invariant(%x), Invariant(%length)]
          output_map: [Final(@n), Concatenated(@u, axis: 0)]}}
          body {{
            %i = Parameter  %s = Parameter  %x = Parameter  %length = Parameter
            {index}
            %row = Gather(%x, %k, 0)
            {STEP}
          }}
        {RESULTS}"""

    def oracle(h: Any, x: Any) -> list[Any]:
        last, states = running_sums(h, x, 0, backwards)
        return [last, joined(states, h)]

    lengths = [3, 0, 5, 1, 0, 2]
    check_graph(text, oracle, *([floats(2, seed=k), floats(t, 2, seed=k + 9)] for k, t in enumerate(lengths)))


@pytest.mark.parametrize("length", ["T", "4"], ids=["dynamic", "static"])
@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("join_backwards", [False, True], ids=["joined", "joined backwards"])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_tensor_iterator_over_at_least_one_slice(length: str, backwards: bool, join_backwards: bool,
                                                   axis: int) -> None:
    text = f"""
        %h = Parameter : f32[2]  %x = Parameter : f32[{length},2]
        %last, %all = TensorIterator(%h, %x) {{
          input_map: [Merged(%s, @n), Sliced(%e, axis: 0{SLICES[backwards]})]
          output_map: [Final(@n), Concatenated(@u, axis: {axis}{SLICES[join_backwards]})]}}
          body {{
            %s = Parameter  %e = Parameter : f32[1,2]
            %row = Squeeze(%e, [0])  %half = Multiply(%s, 0.5)  %n = Add(%half, %row)
            %u = Unsqueeze(%n, {axis})
            Result(%n)  Result(%u) }}
        Result(%last)  Result(%all)"""

    def oracle(h: Any, x: Any) -> list[Any]:
        last, states = running_sums(h, x, 0, backwards)
        return [last, joined(states, h, axis, join_backwards)]

    lengths = [4] * 5 if length == "4" else [3, 5, 1, 4, 2]
    check_graph(text, oracle, *([floats(2, seed=k), floats(t, 2, seed=k + 9)] for k, t in enumerate(lengths)))


read_cases(globals())
