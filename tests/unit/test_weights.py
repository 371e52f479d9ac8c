"""The .bin: equal content is stored once, content with equal samples is not merged."""

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mo_loop.graph.tensor import ArrayTensor, DeferredTensor, FileTensor, Tensor, same_bytes
from mo_loop.graph.types import f32, i4, string
from mo_loop.ir.bin import ALIGNMENT, Weights


class Bin:
    """A .bin in memory."""

    def __init__(self) -> None:
        self.file = io.BytesIO()
        self.weights = Weights(self.file)

    def add(self, tensor: Tensor) -> tuple[int, int]:
        offset, size = self.weights.add(tensor)
        assert self.file.getvalue()[offset : offset + size] == b"".join(tensor.blocks())
        return offset, size

    @property
    def length(self) -> int:
        return len(self.file.getvalue())


def tensor(count: int, fill: float = 0.0) -> ArrayTensor:
    return ArrayTensor(np.full(count, fill, np.float32) + np.arange(count, dtype=np.float32))


@pytest.mark.parametrize("count", [1, 16, 1024, 5000, 300_000])
def test_equal_content_is_stored_once(count: int, tmp_path: Path) -> None:
    data = Bin()
    first = tensor(count)
    path = tmp_path / "weights"
    path.write_bytes(b"x" * 7 + first.array().tobytes())
    places = {
        data.add(first), data.add(tensor(count)), data.add(FileTensor(str(path), 7, f32, (count,))),
        data.add(ArrayTensor(first.array().reshape(1, count))),
    }
    assert places == {(0, 4 * count)} and data.length == 4 * count


def test_a_deferred_tensor_is_found_when_it_is_made_alike() -> None:
    data = Bin()
    raw = tensor(5000).array().tobytes()
    made = [DeferredTensor(f32, (5000,), lambda: iter([raw[:9000], raw[9000:]])) for _ in range(2)]
    assert data.add(made[0]) == data.add(made[1]) and data.length == len(raw)


@pytest.mark.parametrize("count", [600, 1024, 1025])
def test_deferred_tensors_that_differ_at_the_end_are_stored_apart(count: int) -> None:
    """Up to 4096 bytes only samples are compared, so they must contain everything."""
    contents = [tensor(count).array().copy() for _ in range(2)]
    contents[1][-1] += 1
    data = Bin()
    made = [DeferredTensor(f32, (count,), ArrayTensor(each).blocks) for each in contents]
    assert len({data.add(each)[0] for each in made}) == 2


@pytest.mark.parametrize("count", [1024, 1025, 40_000])
def test_the_same_fingerprint_is_no_proof(count: int) -> None:
    """Only the middle differs, which is in no sampled page (up to 4096 bytes the sample is the whole content)."""
    a, b = tensor(count), tensor(count)
    b.array()[count // 2] += 1
    data = Bin()
    if a.nbytes > 4096:
        assert a.sample() == b.sample()
    offsets = [data.add(each)[0] for each in (a, b, a, b)]
    assert offsets[0] == offsets[2] != offsets[1] == offsets[3]
    assert not same_bytes(a, b) and same_bytes(a, tensor(count))


def test_many_constants_of_one_fingerprint_are_each_read_a_few_times() -> None:
    """Not once for each other one: 40 would be read 1600 times."""
    reads = 0

    def like(place: int) -> DeferredTensor:
        content = bytearray(40_000)
        content[20_000 + place] = 1

        def blocks() -> Iterator[bytes]:
            nonlocal reads
            reads += 1
            yield bytes(content)

        return DeferredTensor(f32, (10_000,), blocks)

    data = Bin()
    offsets = [data.weights.add(like(place))[0] for place in range(40)]
    assert len(set(offsets)) == 40 and reads < 40 * 8 and [data.add(like(place))[0] for place in range(40)] == offsets
    first, second = like(0), like(41)
    assert data.add(first) == data.add(first) == (offsets[0], 40_000) and data.add(second)[0] not in offsets


def test_the_same_bytes_of_another_type_are_stored_apart() -> None:
    data = Bin()
    array = np.zeros(4, np.float32)
    assert data.add(ArrayTensor(array))[0] != data.add(ArrayTensor(array.view(np.int32)))[0]


def test_large_constants_are_aligned() -> None:
    data = Bin()
    small = data.add(ArrayTensor(np.ones(1, np.uint8)))
    odd = data.add(ArrayTensor(np.arange(ALIGNMENT + 1, dtype=np.uint8)))
    assert small == (0, 1) and odd[0] == ALIGNMENT and data.add(tensor(100))[0] % ALIGNMENT == 0


@pytest.mark.parametrize("size", [ALIGNMENT - 1, ALIGNMENT, ALIGNMENT + 1])
def test_around_the_alignment_constants_are_shared_and_only_large_ones_aligned(size: int) -> None:
    data = Bin()
    data.add(ArrayTensor(np.ones(1, np.uint8)))
    offset = 1 if size < ALIGNMENT else ALIGNMENT
    for _ in range(2):
        assert data.add(ArrayTensor(np.arange(size, dtype=np.uint8))) == (offset, size)
    assert data.length == offset + size and data.add(tensor(100))[0] == -(-(offset + size) // ALIGNMENT) * ALIGNMENT


def test_narrow_elements_and_strings_take_their_packed_size() -> None:
    data = Bin()
    assert data.add(ArrayTensor(np.array([1, -1, 7], i4.numpy), i4))[1] == 2
    assert data.add(ArrayTensor(np.array(["ab", "c"], object), string))[1] == 4 * 4 + 3


def test_nothing_takes_no_place() -> None:
    data = Bin()
    data.add(tensor(3))
    assert data.add(ArrayTensor(np.zeros((0, 2), np.float32)))[1] == 0 and data.length == 12


def test_pieces_of_any_size_compare() -> None:
    raw = np.random.default_rng(0).integers(0, 256, 400_000, np.uint8).tobytes()

    def cut(size: int) -> DeferredTensor:
        return DeferredTensor(f32, (100_000,), lambda: (raw[k : k + size] for k in range(0, len(raw), size)))

    assert same_bytes(cut(999), cut(70_000))
