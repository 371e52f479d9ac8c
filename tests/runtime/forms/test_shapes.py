"""Shapes known at run time only: shared memory, and what the runtime infers about loops before it runs them."""

from typing import Any

import numpy as np
import pytest

from tests.harness import Array, boolean, check_graph, f32, floats, i64

SIZES = (4, 1, 300, 7)
ZERO = """
        %random = RandomUniform([1, 1], 0, 1) {output_type: i64}  %same = ReverseSequence(%random, [1])
        %zero = Reshape(%same, [1])"""


@pytest.mark.parametrize("dtype", ["f32", "i64", "boolean"])
def test_a_slice_between_an_if_and_the_nodes_that_would_take_its_memory(dtype: str) -> None:
    """Without it, Negative gets the memory of the output of the If before that is converted or read."""
    text = f"""
        %x = Parameter : f32[1,N]  %c = Parameter : boolean[]  %v = Parameter : {dtype}[M]
        %w = Parameter : {dtype}[M]
        %y = If(%c, %v, %w) {{input_map: [Branched(%a, _), Branched(_, %b)], output_map: [Selected(@a, @b)]}}
          then_body {{ %a = Parameter  Result(%a) }}
          else_body {{ %b = Parameter  Result(%b) }}
        %end = Select(%c, [1073741824], [1073741823])  %all = Slice(%y, [0], %end, [1], [0])
        %twice = Concat(%all, %all) {{axis: 0}}  %n = Negative(%x)  %shape = ShapeOf(%n)
        Result(%all)  Result(%twice)  Result(%shape)"""
    feeds = [
        [floats(1, n, seed=n), boolean(n % 2), *((floats(m, seed=m + k) * 9).astype(_numpy(dtype)) for k in range(2))]
        for n, m in zip(SIZES, reversed(SIZES), strict=True)
    ]

    def oracle(x: Array, c: Array, v: Array, w: Array) -> list[Any]:
        taken = v if c else w
        return [taken, np.concatenate([taken, taken]), i64(x.shape)]

    check_graph(text, oracle, *feeds)


def _numpy(dtype: str) -> Any:
    return {"f32": np.float32, "i64": np.int64, "boolean": np.bool_}[dtype]


@pytest.mark.parametrize("dtype", ["f32", "i64", "i32", "u8", "boolean"])
def test_an_input_returned_through_a_reshape(dtype: str) -> None:
    text = f"""
        %x = Parameter : {dtype}[N,2]
        %y = Reshape(%x, [0, 0]) {{special_zero: true}}  %z = Reshape(%x, [0, 0]) {{special_zero: true}}
        %n = ShapeOf(%x)
        Result(%y)  Result(%z)  Result(%n)"""
    kind = {"i32": np.int32, "u8": np.uint8}.get(dtype) or _numpy(dtype)
    feeds = [[np.abs(floats(n, 2, seed=n) * 9).astype(kind)] for n in (*SIZES, 0)]
    check_graph(text, lambda x: [x, x, i64(x.shape)], *feeds)


@pytest.mark.parametrize("trip", ["%m", "3"])
def test_a_state_that_grows_and_whose_final_value_is_not_read(trip: str) -> None:
    """The runtime would assume that a static initial shape is that of every iteration."""
    text = f"""
        %n = Parameter : i64[]  %x = Parameter : f32[2]
        %m = Maximum(%n, 0)
        {ZERO}
        %one = Add(%zero, 1)  %first = Tile(%x, %one)
        %y = Loop({trip}, true, %first) {{condition: @go, input_map: [Merged(%s, @next)], output_map: [Final(@sum)]}}
          body {{
            %s = Parameter
            %go = Constant true  %next = Concat(%s, [1.0]) {{axis: 0}}  %sum = ReduceSum(%next, [0])
            Result(%go)  Result(%next)  Result(%sum) }}
        Result(%y)"""
    trips = (1, 4, 2, 7)
    check_graph(text, lambda n, x: [x.sum() + np.float32(3 if trip == "3" else n)],
                *([i64(n), floats(2, seed=n)] for n in trips))


def test_a_loop_of_constants_that_decides_its_length() -> None:
    """The runtime would evaluate it during shape inference, and fail on a condition computed from its output."""
    check_graph(f"""
        %x = Parameter : f32[N]
        {ZERO}
        %scalar = Reshape(%zero, [])  %trip = Add(%scalar, -1)
        %rows = Loop(%trip, true) {{iteration: %i, condition: @go, output_map: [Concatenated(@row, axis: 0)]}}
          body {{
            %i = Parameter
            %go = Less(%i, 2)  %row = Unsqueeze(%i, 0)
            Result(%go)  Result(%row) }}
        %sum = ReduceSum(%rows, [0])  %c = Greater(%sum, 2)
        %y = If(%c, %x) {{input_map: [Branched(%a, %b)], output_map: [Selected(@n, @m)]}}
          then_body {{
            %a = Parameter
            %n = Negative(%a)
            Result(%n) }}
          else_body {{
            %b = Parameter
            %m = Exp(%b)
            Result(%m) }}
        Result(%rows)  Result(%y)""", lambda x: [i64([0, 1, 2]), -x], *([floats(n, seed=n)] for n in SIZES))


def test_concatenated_along_axis_0_behind_a_dimension_of_0() -> None:
    check_graph("""
        %x = Parameter : f32[N,3,2]
        %y = TensorIterator(%x) {
          input_map: [Sliced(%p, axis: 1)], output_map: [Concatenated(@t, axis: 0, start: -1, end: 0, stride: -1)]}
          body {
            %p = Parameter
            %n = Negative(%p)  %t = Transpose(%n, [1, 0, 2])
            Result(%t) }
        %back = Transpose(%y, [1, 0, 2])
        Result(%back)""", lambda x: [-x[:, ::-1]], *([floats(n, 3, 2, seed=n)] for n in (2, 0, 5, 0, 1)))


def test_joined_in_reverse_beside_a_captured_tensor_given_back_outside() -> None:
    """A capture among the results would make the runtime build the loop again, and fail on the stride."""
    text = """
        %x = Parameter : f32[N]  %k = Parameter : f32[2]
        %shape = ShapeOf(%x)  %n = Gather(%shape, 0, 0)  %ran = NotEqual(%n, 0)
        %all = Loop(%n, true, %x, %k) {
          condition: @go, input_map: [Sliced(%p, axis: 0), Invariant(%c)]
          output_map: [Concatenated(@y, axis: 0, start: -1, end: 0, stride: -1)]}
          body {
            %p = Parameter  %c = Parameter
            %go = Constant true  %sum = ReduceSum(%c, [0])  %y = Add(%p, %sum)
            Result(%go)  Result(%y) }
        %end = Select(%ran, [1073741824], [0])  %cut = Slice(%all, [0], %end, [1], [0])
        %last = Select(%ran, %k, [0.5, 0.25])
        Result(%cut)  Result(%last)"""
    check_graph(text, lambda x, k: [(x + k.sum(dtype=np.float32))[::-1], k if x.size else f32(0.5, 0.25)],
                *([floats(n, seed=n), floats(2, seed=n + 1)] for n in (3, 0, 5, 1)))


def test_a_tensor_without_elements_grown_before_an_operation() -> None:
    """A target of [2, 1] in both directions grows the size 0 to 1 if the operation comes before it."""
    check_graph("""
        %x = Parameter : f32[N]
        %sizes = ShapeOf(%x)  %target = Concat([2], %sizes) {axis: 0}  %e = Exp(%x)
        %y = Broadcast(%e, %target)  %z = Subtract(%y, %x)
        Result(%z)""", lambda x: [np.broadcast_to(np.exp(x) - x, (2, *x.shape))], *([floats(n)] for n in (1, 0, 4)))


def test_the_remainder_of_a_size_between_two_multiples() -> None:
    """Without CumSum the runtime infers that a size of 0..4 is 0 modulo 4."""
    check_graph("""
        %x = Parameter : f32[4]  %k = Parameter : i64[1]
        %piece = Slice(%x, [0], %k, [1], [0])  %size = ShapeOf(%piece)  %hidden = CumSum(%size, 0)
        %rest = FloorMod(%hidden, 4)  %distance = Abs(%rest)
        Result(%distance)""", lambda x, k: [k % 4], *([floats(4), i64([k])] for k in (3, 0, 4, 1)))


def test_a_dimension_of_1_moved_past_a_size_of_0() -> None:
    """The Transpose would become a Reshape to [0, 2, 1], whose 0 means the former 1."""
    check_graph("""
        %x = Parameter : f32[1,N,2]
        %e = Exp(%x)  %flat = Squeeze(%e, [0])  %y = Unsqueeze(%flat, [2])
        Result(%y)""", lambda x: [np.exp(x).transpose(1, 2, 0)], *([floats(1, n, 2)] for n in (3, 0, 1, 0)))


def test_grown_to_sizes_of_the_run_behind_an_operation() -> None:
    """Extended before the operation, a size of 0 that meets the 1 of `%c` would become 1."""
    text = """
        %c = Parameter : f32[1,1]  %x = Parameter : f32[4,N]
        %sizes = ShapeOf(%x)  %m = Minimum(%c, [[0.5]])  %y = Broadcast(%m, %sizes)
        %z = ReduceSum(%y, [0, 1])
        Result(%z)"""
    inputs = ([floats(1, 1), floats(4, n)] for n in (3, 0, 1, 0))
    check_graph(text, lambda c, x: [f32(x.size * min(c.item(), 0.5))[0]], *inputs)
