"""If: branches of different rank, few inputs or none, bodies in bodies."""


import pytest

from tests.cases import read_cases
from tests.harness import boolean, check, check_graph, f32, floats, i64, parsed
from tests.texts import texts

TEXTS = texts(__file__)

FLIPS = [True, False, False, True, True, False]


def test_a_loop_in_a_branch_in_a_loop() -> None:
    text = TEXTS["a loop in a branch in a loop"]
    check_graph(text, *([i64(t), f32(1, t)] for t in (3, 0, 6, 1, -2, 4)))


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


read_cases(globals())
