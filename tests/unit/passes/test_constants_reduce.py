"""Which constants are merged: small ones by bytes, large ones by their place in the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.graph.tensor import SAMPLE, ArrayTensor, DeferredTensor, FileTensor, Tensor
from mo_loop.graph.types import f32, i4, string
from mo_loop.ops.base import Constant
from mo_loop.transforms.common.simplification import ConstantsReduce


def shared(*tensors: Tensor) -> int:
    """The number of constants that remain."""
    graph = Graph()
    for tensor in tensors:
        ops.Result(ops.ShapeOf(Constant(tensor, graph=graph)))
    changed = ConstantsReduce().run(graph)
    left = len(graph.of(Constant))
    assert changed is (left < len(tensors)) and not ConstantsReduce().run(graph)
    return left


def floats(*values: float) -> ArrayTensor:
    return ArrayTensor(np.array(values, np.float32))


def test_bytes_count_not_values() -> None:
    nans = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    assert shared(floats(0.0), floats(-0.0)) == 2 and shared(ArrayTensor(nans[:1]), ArrayTensor(nans[1:])) == 2
    assert shared(ArrayTensor(nans[:1]), ArrayTensor(nans[:1].copy())) == 1
    assert shared(floats(1.0), ArrayTensor(floats(1.0).array().view(np.int32))) == 2


def test_narrow_elements_and_strings() -> None:
    narrow = [ArrayTensor(np.array(items, i4.numpy), i4) for items in ([1, -1, 7], [1, -1, 7], [1, -1, 6])]
    words = [ArrayTensor(np.array(items, object), string) for items in (["ab", "c"], ["ab", "c"], ["a", "bc"])]
    assert shared(*narrow) == 2 and shared(*words) == 2


def test_kinds_of_tensors_mix_when_small(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"head" + floats(1.0, 2.0).array().tobytes())
    made = DeferredTensor(f32, (2,), lambda: iter([floats(1.0).array().tobytes(), floats(2.0).array().tobytes()]))
    assert shared(floats(1.0, 2.0), FileTensor(str(path), 4, f32, (2,)), made) == 1


@pytest.mark.parametrize(("count", "left"), [(SAMPLE // 4, 1), (SAMPLE // 4 + 1, 2)])
def test_large_content_is_not_read(count: int, left: int) -> None:
    array = np.arange(count, dtype=np.float32)
    assert shared(ArrayTensor(array), ArrayTensor(array.copy())) == left


def test_large_ones_are_the_same_span_or_tensor(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(bytes(20_000))
    spans = [FileTensor(str(path), offset, f32, (2000,)) for offset in (0, 0, 8000)]
    assert shared(*spans) == 2
    tensor = ArrayTensor(np.zeros(2000, np.float32))
    assert shared(tensor, tensor) == 1
    assert shared(FileTensor(str(path), 0, f32, (2000,)), FileTensor(str(path), 0, f32, (2, 1000))) == 2
