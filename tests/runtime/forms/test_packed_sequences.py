"""Sequences as packed data D[?] and a table T[N, R] of shapes: as states of a Loop and outputs of an If.

offset(p) is the number of elements in the items before p: a sum over the earlier rows of the table.
"""


import numpy as np

from tests.cases import read_cases
from tests.harness import Array, check_graph, floats, i64
from tests.texts import texts

TEXTS = texts(__file__)

# p of shape [1], counted from the end if negative -> the item, of rank 2.
AT = TEXTS["at"]

# Inserts an item before position q (not negative).
INSERT = TEXTS["insert"]


def packed(items: list[Array]) -> list[Array]:
    data = np.concatenate([item.ravel() for item in items]) if items else np.zeros(0, np.float32)
    return [data.astype(np.float32), i64([item.shape for item in items]).reshape(-1, 2)]


def test_a_loop_that_inserts_ragged_items() -> None:
    """From an empty sequence, given as Constants [0] and [0, 2]; item i is X[:a_i] + i, put in at position p_i."""
    body = INSERT.replace("\n", "\n            ")
    text = f"""
        %M = Parameter : i64[]  %X = Parameter : f32[?,?]  %A = Parameter : i64[K]  %P = Parameter : i64[K]
        %m = Maximum(%M, 0)  %none = Constant [] : f32[0]  %nobody = Constant [] : i64[0,2]
        %data, %table = Loop(%m, true, %none, %nobody, %X, %A, %P) {{
          iteration: %i, condition: @go
          input_map: [Merged(%D, @D2), Merged(%T, @T2), Invariant(%x), Invariant(%a), Invariant(%p)]
          output_map: [Final(@D2), Final(@T2)]}}
          body {{
            %i = Parameter  %D = Parameter : f32[?]  %T = Parameter : i64[?,2]  %x = Parameter  %a = Parameter
            %p = Parameter
            %k = Unsqueeze(%i, 0)  %rows = Gather(%a, %k, 0)  %q = Gather(%p, %k, 0)
            %part = Slice(%x, [0], %rows, [1], [0])  %f = Convert(%i) {{destination_type: f32}}
            %item = Add(%part, %f)
            {body}
            Result(true) @go  Result(%D2)  Result(%T2) }}
        Result(%data)  Result(%table)"""
    source = np.random.default_rng(1)
    feeds = []
    for trips in (4, 1, 0, 7, 3, 2):
        places = [int(source.integers(0, k + 1)) for k in range(trips)] or [0]
        rows = source.integers(0, 5, max(trips, 1))
        feeds.append([i64(trips), floats(5, 1 + trips % 3, seed=trips), i64(rows), i64(places)])
    check_graph(text, *feeds)


read_cases(globals())
