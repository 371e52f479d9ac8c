"""The .xml and the .bin: written together, equal content once, matrices transposed meanwhile."""

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mo_loop.errors import FileError, UsageError
from mo_loop.graph import transposed_tensor
from mo_loop.graph.tensor import SAMPLE, ArrayTensor, DeferredTensor, FileTensor, Tensor, same_bytes
from mo_loop.graph.transposed_tensor import TILE, TransposedTensor
from mo_loop.graph.types import ElementType, f16, f32, f64, i4, string, u8
from mo_loop.ir.bin import ALIGNMENT, Weights
from mo_loop.ir.pair import move_pair, new_pair
from tests.harness import raised

# -- The .bin: equal content is stored once, content with equal samples is not merged


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


# -- The .xml and the .bin are written together or not at all


Replace = Callable[[Any, Any], None]


def write(path: Path) -> None:
    with new_pair(path) as (data, xml):
        data.write(b"new weights")
        xml.write("<new/>")


def contents(folder: Path) -> dict[str, str]:
    return {each.name: each.read_text() for each in folder.iterdir()}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The .xml of an older pair."""
    (tmp_path / "model.bin").write_text("old weights")
    (tmp_path / "model.xml").write_text("<old/>")
    return tmp_path / "model.xml"


def refusing(monkeypatch: pytest.MonkeyPatch, target: Path, error: type[BaseException] = PermissionError) -> None:
    """A file system that once fails to move a file to `target`."""
    replace, refused = os.replace, False

    def refuse_once(source: Any, to: Any) -> None:
        nonlocal refused
        if Path(to) == target and not refused:
            refused = True
            raise error
        replace(source, to)

    monkeypatch.setattr(os, "replace", refuse_once)


def test_a_new_pair_and_one_over_it(tmp_path: Path) -> None:
    for _ in range(2):
        write(tmp_path / "below" / "model.xml")
        assert contents(tmp_path / "below") == {"model.bin": "new weights", "model.xml": "<new/>"}


@pytest.mark.parametrize("refused", ["model.xml", "model.bin"])
def test_when_a_file_cannot_be_moved_the_older_pair_stays(
    refused: str, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(old.parent)
    refusing(monkeypatch, old.with_name(refused))
    with pytest.raises(FileError) as caught:
        write(old)
    assert caught.value.code == "ML218" and contents(old.parent) == before


def test_when_the_xml_cannot_be_moved_no_bin_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing(monkeypatch, tmp_path / "model.xml")
    raised(FileError, write, tmp_path / "model.xml")
    assert contents(tmp_path) == {}


def test_an_older_bin_without_its_xml_comes_back(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old.unlink()
    refusing(monkeypatch, old)
    raised(FileError, write, old)
    assert contents(old.parent) == {"model.bin": "old weights"}


def test_interrupted_between_the_two_the_older_pair_stays(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(old.parent)
    refusing(monkeypatch, old, KeyboardInterrupt)
    raised(KeyboardInterrupt, write, old)
    assert contents(old.parent) == before


def test_interrupted_after_both_the_new_pair_stays(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def interrupted(source: Any, to: Any) -> None:
        replace(source, to)
        if Path(to) == old:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    raised(KeyboardInterrupt, write, old)
    assert contents(old.parent) == {"model.bin": "new weights", "model.xml": "<new/>"}


def test_an_error_while_writing_leaves_the_older_pair(old: Path) -> None:
    before = contents(old.parent)
    with pytest.raises(RuntimeError), new_pair(old) as (data, _):
        data.write(b"half")
        raise RuntimeError
    assert contents(old.parent) == before


def test_a_folder_in_the_place_of_a_file(tmp_path: Path) -> None:
    for name in ("model.bin", "model.xml"):
        folder = tmp_path / name.replace(".", "_")
        (folder / name).mkdir(parents=True)
        raised(FileError, write, folder / "model.xml", match="cannot be written")
        assert [each.name for each in folder.iterdir()] == [name]


def test_another_ending_is_refused(tmp_path: Path) -> None:
    raised(UsageError, write, tmp_path / "model.txt", match=r"does not end in \.xml")
    assert contents(tmp_path) == {}


def test_a_draft_is_moved_beside_its_bin(tmp_path: Path, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(tmp_path)
    draft = tmp_path / "draft" / "a.xml"
    write(draft)
    with monkeypatch.context() as patch:
        refusing(patch, old)
        raised(FileError, move_pair, draft, old)
    assert {name: text for name, text in before.items() if (tmp_path / name).read_text() != text} == {}
    write(draft)
    move_pair(draft, old)
    assert old.read_text() == "<new/>" and old.with_suffix(".bin").read_text() == "new weights"
    assert contents(draft.parent) == {}


# -- Matrices that are transposed while they are written: the bytes, samples, and what a file lacks


SHAPES = [(1, 1), (3, 5), (1, 3000), (3000, 1), (TILE, TILE), (TILE + 1, 2 * TILE - 1), (600, 300), (1, 300, 70)]


def span(folder: Path, shape: tuple[int, ...], dtype: ElementType = f32, before: int = 3) -> FileTensor:
    """Random bits after a few other bytes."""
    path = folder / "weights"
    size = dtype.size_of(int(np.prod(shape)))
    path.write_bytes(np.random.default_rng(0).integers(0, 256, before + size, np.uint8).tobytes())
    return FileTensor(str(path), before, dtype, shape)


def expected(source: FileTensor) -> bytes:
    bits = np.frombuffer(b"".join(source.blocks()), f"u{source.dtype.size_of(1)}").reshape(source.shape)
    return np.swapaxes(bits, -1, -2).tobytes()


@pytest.mark.parametrize("at_once", [1 << 26, 1 << 12], ids=["whole", "in groups"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_become_columns(
    shape: tuple[int, ...], at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transposed_tensor, "GROUP", at_once)
    source = span(tmp_path, shape)
    tensor = TransposedTensor(source)
    data = expected(source)
    assert tensor.shape == (*shape[:-2], shape[-1], shape[-2]) and tensor.nbytes == len(data)
    assert b"".join(tensor.blocks()) == data and tensor.array().view(np.uint32).tobytes() == data
    assert tensor.sample() == (data if len(data) <= SAMPLE else data[: SAMPLE // 2] + data[-SAMPLE // 2 :])
    assert tensor.files == (source.file,)


@pytest.mark.parametrize("dtype", [u8, f16, f64], ids=str)
def test_elements_of_any_width(dtype: ElementType, tmp_path: Path) -> None:
    source = span(tmp_path, (150, 260), dtype)
    assert b"".join(TransposedTensor(source).blocks()) == expected(source)


def test_a_file_and_an_array_of_the_same_numbers_are_alike(tmp_path: Path) -> None:
    array = np.random.default_rng(0).standard_normal((90, 70)).astype(np.float32)
    (tmp_path / "weights").write_bytes(array.T.tobytes())
    plain = FileTensor(str(tmp_path / "weights"), 0, f32, (70, 90))
    made = TransposedTensor(ArrayTensor(array))
    assert made.sample() == plain.sample() and b"".join(made.blocks()) == b"".join(plain.blocks())


def test_a_matrix_without_elements() -> None:
    tensor = TransposedTensor(ArrayTensor(np.zeros((0, 4), np.float32)))
    assert (tensor.shape, b"".join(tensor.blocks()), tensor.sample()) == ((4, 0), b"", b"")


def test_another_shape_of_the_same_bytes(tmp_path: Path) -> None:
    source = span(tmp_path, (30, 40))
    tensor = TransposedTensor(source).reshaped((10, 4, 30))
    assert tensor.shape == tensor.array().shape == (10, 4, 30)
    assert b"".join(tensor.blocks()) == tensor.array().view(np.uint32).tobytes() == expected(source)


@pytest.mark.parametrize("has_preadv", [True, False])
def test_a_file_that_became_shorter_is_said(
    has_preadv: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_preadv:
        monkeypatch.delattr(os, "preadv", raising=False)
    source = span(tmp_path, (200, 300))
    assert b"".join(TransposedTensor(source).blocks()) == expected(source)
    os.truncate(source.path, 100_000)
    raised(FileError, list, TransposedTensor(source).blocks(), match="ended before the data of a weight")
