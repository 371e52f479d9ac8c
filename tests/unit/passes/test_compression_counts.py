"""The counts of CompressFloatConstants: constants by result, values, and bytes saved."""

from __future__ import annotations

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.graph.tensor import BLOCK, ArrayTensor
from mo_loop.graph.types import f16, f32, f64, i64
from mo_loop.ops.base import Result
from mo_loop.transforms.low_precision.compress_weights import CompressFloatConstants, Compression
from tests.unit.graphs import parameter


def counts(graph: Graph) -> Compression:
    each = CompressFloatConstants()
    each.run(graph)
    return each.counts


def test_constants_that_are_compressed(graph: Graph) -> None:
    for array in (np.ones((2, 3), np.float32), np.ones(5, np.float64)):
        Result(ops.Negative(ops.Constant(array, graph=graph)).output)
    assert counts(graph) == Compression(compressed=2, values=11, saved=6 * 2 + 5 * 6)


def test_a_tensor_of_two_constants_is_counted_once(graph: Graph) -> None:
    tensor = ArrayTensor(np.ones(4, np.float32), f32)
    for _ in range(2):
        Result(ops.Negative(ops.Constant(tensor, graph=graph)).output)
    assert counts(graph) == Compression(compressed=1, values=4, saved=8)


def test_values_that_are_clipped(graph: Graph) -> None:
    Result(ops.Negative(ops.Constant(np.array([1, 1e6, -1e6, 2, 3], np.float32), graph=graph)).output)
    assert counts(graph) == Compression(compressed=1, values=5, clipped=2, saved=10)


def test_constants_that_stay_because_of_their_values(graph: Graph) -> None:
    """Three of four values are out of range, become 0, or one of them changes by more than 1."""
    kept = ([1e6, 1e6, 1e6, 1], [1e-9, 1e-9, 1e-9, 1], [1e-9, 1e6, 1e6, 1], [5001.5, 1, 1, 1], [4098.5, 1, 1, 1])
    for values in (*kept, [4097, 1, 1, 1]):
        Result(ops.Negative(ops.Constant(np.array(values, np.float32), graph=graph)).output)
    found = counts(graph)
    assert (found.kept, found.compressed, found.saved) == (5, 1, 8)


def test_constants_that_are_not_looked_at(graph: Graph) -> None:
    for array in (np.ones(1, np.float32), np.ones((), np.float64), np.ones(9, np.int64), np.ones(9, np.float16)):
        Result(ops.Identity(ops.Constant(array, graph=graph)).output)
    assert counts(graph) == Compression()


def test_constants_that_decide_a_shape(graph: Graph) -> None:
    sizes = ops.Convert(ops.Constant(np.array([2.2, 3.3], np.float64), graph=graph), destination_type=i64)
    Result(ops.Reshape(parameter(graph, 6), sizes).output)
    assert counts(graph) == Compression(deciding=1) and sizes.inputs[0] is not None and sizes.inputs[0].dtype is f64


@pytest.mark.parametrize("large", [0, 1 << 30])
def test_a_second_thread_computes_the_same(large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pieces of a tensor of several blocks, with values that f16 cannot hold, come in their order."""
    monkeypatch.setattr("mo_loop.transforms.low_precision.compress_weights.LARGE", large)
    values = np.random.default_rng(5).standard_normal(3 * BLOCK // 4 + 7, np.float32)
    values[[0, 300_000, -1]] = 1e6, -1e6, 1e-30
    graph = Graph("main")
    Result(ops.Negative(ops.Constant(values, graph=graph)).output)
    assert counts(graph).clipped == 2
    (small,) = graph.of(ops.Constant)
    assert small.tensor.dtype is f16
    assert b"".join(small.tensor.blocks()) == np.clip(values, -65504, 65504).astype(np.float16).tobytes()
