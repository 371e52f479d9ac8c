"""Constants in bodies: stored once, in half precision, with the mark that lets the runtime keep it."""

from typing import Any

import numpy as np

from tests.harness import check_graph, floats, i64


def test_a_compressed_constant_in_a_body() -> None:
    text = """
        %M = Parameter : i64[]  %x = Parameter : f32[2,2]
        %m = Maximum(%M, 0)
        %y = Loop(%m, true, %x) {condition: @go, input_map: [Merged(%s, @n)], output_map: [Final(@n)]}
          body {
            %s = Parameter
            %h = Constant [[0.5, -0.25], [0.125, 1.0]] : f16[2,2] "w_compressed"
            %w = Convert(%h) {destination_type: f32} "w" info {decompression: {version: "0"}}
            %n = MatMul(%s, %w)
            Result(true) @go  Result(%n) }
        Result(%y)"""

    def oracle(trips: Any, x: Any) -> list[Any]:
        w = np.array([[0.5, -0.25], [0.125, 1]], np.float32)
        for _ in range(max(int(trips), 0)):
            x = x @ w
        return [x]

    check_graph(text, oracle, *([i64(t), floats(2, 2, seed=t)] for t in (3, 0, 1, 5)))
