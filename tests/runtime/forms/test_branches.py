"""If: branches of different rank, few inputs or none, bodies in bodies."""

from typing import Any

import numpy as np
import pytest

from tests.harness import boolean, check, check_graph, f32, floats, i64, parsed

FLIPS = [True, False, False, True, True, False]


def test_consumers_moved_into_branches_of_different_rank() -> None:
    """A value computed from the one whose rank depends on the branch leaves the If instead."""
    text = """
        %c = Parameter : boolean[]  %x = Parameter : f32[2,3]
        %y = If(%c, %x) {input_map: [Branched(%a, %b)], output_map: [Selected(@total, @total)]}
          then_body {
            %a = Parameter
            %flat = Reshape(%a, [6])  %shape = ShapeOf(%flat)  %rank = ShapeOf(%shape)
            %f = Convert(%rank) {destination_type: f32}  %sum = ReduceSum(%flat, [0]) {keep_dims: true}
            %total = Concat(%sum, %f) {axis: 0}
            Result(%total) }
          else_body {
            %b = Parameter
            %shape = ShapeOf(%b)  %rank = ShapeOf(%shape)  %f = Convert(%rank) {destination_type: f32}
            %all = ReduceSum(%b, [0, 1])  %sum = Unsqueeze(%all, 0)  %total = Concat(%sum, %f) {axis: 0}
            Result(%total) }
        Result(%y)"""
    check_graph(text, lambda c, x: [f32(x.sum(), 1 if c else 2)],
                *([boolean(c), floats(2, 3, seed=k)] for k, c in enumerate(FLIPS)))


def test_a_scalar_against_one_element() -> None:
    """The only difference of ranks that the runtime accepts; both results are [1]."""
    text = """
        %c = Parameter : boolean[]  %x = Parameter : f32[]
        %y = If(%c, %x) {input_map: [Branched(%a, %b)], output_map: [Selected(@n, @m)]}
          then_body {
            %a = Parameter
            %s = Negative(%a)  %n = Reshape(%s, [1])
            Result(%n) }
          else_body {
            %b = Parameter
            %m = Abs(%b)
            Result(%m) }
        %flat = Reshape(%y, [1])
        Result(%flat)"""
    feeds = [[boolean(c), np.float32(k - 2)] for k, c in enumerate(FLIPS)]
    check_graph(text, lambda c, x: [f32(-x if c else abs(x))], *feeds)


def test_both_branches_flattened() -> None:
    """Rank 1 leaves the If, with the shape as another output; a Reshape with a pattern of static length restores it."""
    text = """
        %c = Parameter : boolean[]  %x = Parameter : f32[2,N]
        %flat, %shape = If(%c, %x) {
          input_map: [Branched(%a, %b)], output_map: [Selected(@flat, @flat), Selected(@shape, @shape)]}
          then_body {
            %a = Parameter
            %flat = Reshape(%a, [-1])  %s = ShapeOf(%a)  %shape = Concat([1], %s) {axis: 0}
            Result(%flat)  Result(%shape) }
          else_body {
            %b = Parameter
            %t = Transpose(%b, [1, 0])  %s = ShapeOf(%t)  %shape = Concat(%s, [1]) {axis: 0}
            %flat = Reshape(%t, [-1])
            Result(%flat)  Result(%shape) }
        %y = Reshape(%flat, %shape)
        Result(%y)"""
    check_graph(text, lambda c, x: [x[None] if c else x.T[..., None]],
                *([boolean(c), floats(2, 1 + k % 3, seed=k)] for k, c in enumerate(FLIPS)))


def test_the_smaller_rank_padded_by_ones() -> None:
    text = """
        %c = Parameter : boolean[]  %x = Parameter : f32[N]
        %y = If(%c, %x) {input_map: [Branched(%a, %b)], output_map: [Selected(@n, @m)]}
          then_body {
            %a = Parameter
            %n = Unsqueeze(%a, [0])
            Result(%n) }
          else_body {
            %b = Parameter
            %u = Unsqueeze(%b, [1])  %m = Multiply(%u, %b)
            Result(%m) }
        Result(%y)"""
    check_graph(text, lambda c, x: [x[None] if c else np.outer(x, x)],
                *([boolean(c), floats(1 + k % 3, seed=k)] for k, c in enumerate(FLIPS)))


def test_parameters_returned_swapped_and_twice() -> None:
    text = """
        %c = Parameter : boolean[]  %x = Parameter : f32[2]  %y = Parameter : f32[3]
        %p, %q, %r = If(%c, %x, %y, %x) {
          input_map: [Branched(%a, %b), Branched(%k, %l), Branched(_, %again)]
          output_map: [Selected(@a, @l), Selected(@k, @b), Selected(@twice, @again)]}
          then_body { %a = Parameter  %k = Parameter  Result(%a)  Result(%k)  Result(%a) @twice }
          else_body {
            %b = Parameter  %l = Parameter  %again = Parameter
            Result(%b)  Result(%l)  Result(%again) }
        Result(%p)  Result(%q)  Result(%r)"""
    check_graph(text, lambda c, x, y: [x, y, x] if c else [y, x, x],
                *([boolean(c), floats(2, seed=k), floats(3, seed=k)] for k, c in enumerate(FLIPS)))


@pytest.mark.parametrize("kind", ["boolean[]", "boolean[1]", "boolean[?]"])
def test_no_inputs_but_the_condition(kind: str) -> None:
    text = f"""
        %c = Parameter : {kind}
        %y = If(%c) {{output_map: [Selected(@k, @k)]}}
          then_body {{ %k = Constant [1.0, 2.0]  Result(%k) }}
          else_body {{ %k = Constant [3.0]  Result(%k) }}
        Result(%y)"""
    form = boolean if kind == "boolean[]" else lambda c: boolean([c])
    check_graph(text, lambda c: [f32(1, 2) if np.all(c) else f32(3)], *([form(c)] for c in FLIPS))


def test_a_loop_in_a_branch_in_a_loop() -> None:
    text = """
        %M = Parameter : i64[]  %x = Parameter : f32[2]
        %m = Maximum(%M, 0)
        %y = Loop(%m, true, %x) {iteration: %i, condition: @go, input_map: [Merged(%s, @n)], output_map: [Final(@n)]}
          body {
            %i = Parameter  %s = Parameter
            %rest = FloorMod(%i, 2)  %even = Equal(%rest, 0)
            %n = If(%even, %i, %s) {input_map: [Branched(%k, _), Branched(%a, %b)], output_map: [Selected(@n, @d)]}
              then_body {
                %k = Parameter  %a = Parameter
                %n = Loop(%k, true, %a) {condition: @go, input_map: [Merged(%t, @u)], output_map: [Final(@u)]}
                  body {
                    %t = Parameter
                    %u = Add(%t, 1)
                    Result(true) @go  Result(%u) }
                Result(%n) }
              else_body {
                %b = Parameter
                %d = Multiply(%b, 2)
                Result(%d) }
            Result(true) @go  Result(%n) }
        Result(%y)"""

    def oracle(trips: Any, x: Any) -> list[Any]:
        for i in range(max(int(trips), 0)):
            x = x + np.float32(i) if i % 2 == 0 else x * np.float32(2)
        return [x]

    check_graph(text, oracle, *([i64(t), f32(1, t)] for t in (3, 0, 6, 1, -2, 4)))


@pytest.mark.parametrize("size", [
    "e = Concat <axis = 0> (z, z, z, k, z, z)  p = Pad (a, e)",
    "e = Concat <axis = 0> (k, z, z, z, z, z)  p = Pad (a, e)",
    "e = Concat <axis = 0> (z, z, z, k, z, z)  p = Pad <mode = \"edge\"> (a, e)",
    "e = Concat <axis = 0> (k, i, i)  p = Tile (a, e)",
    "e = Concat <axis = 0> (k, i, i)  p = Expand (a, e)",
    "e = Concat <axis = 0> (k, i, z)  p = Reshape (a, e)",
    "e = Concat <axis = 0> (k, m)  s = Concat <axis = 0> (z, z)  x = Concat <axis = 0> (z, t)  "
    "q = Concat <axis = 2> (a, a, a)  p = Slice (q, s, e, x)",
    "e = Concat <axis = 0> (k, i, i)  q = Tile (a, e)  p = Relu (q)",
])
@pytest.mark.parametrize("sums", [True, False])
def test_sizes_beside_one_that_is_computed(size: str, sums: bool) -> None:
    """A branch whose result has known sizes that the runtime does not infer; the other one is a constant of that shape.

    Without a Reshape to these sizes, the result of the branch before is returned up to OpenVINO 2026.1.
    """
    rows = "y = ReduceSum <keepdims = 0> (p, z)" if sums else "y = Gather <axis = 0> (p, o)"
    model = parsed(f"""
        main (bool c, float[2, 1, 2] a, int64[1] k) => (float[M, L] y)
          <int64[1] z = {{0}}, int64[1] i = {{1}}, int64[1] t = {{2}}, int64[1] m = {{2}}, int64 o = {{0}}> {{
          y = If (c) <
            then_branch = g1 () => (float[M, L] y) {{ {size} {rows} }},
            else_branch = g2 () => (float[M, L] w) {{ w = Constant <value = float[1, 2] {{9, 8}}> () }}>
        }}""")
    feeds = [{"c": boolean(c), "a": floats(2, 1, 2, seed=n), "k": i64([2])} for n, c in enumerate((False, *FLIPS))]
    check(model, *feeds)
