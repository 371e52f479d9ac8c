"""Matrices that are transposed while they are written: the bytes, samples, and what a file lacks."""

import os
from pathlib import Path

import numpy as np
import pytest

from mo_loop.errors import FileError
from mo_loop.graph import transposed_tensor
from mo_loop.graph.tensor import SAMPLE, ArrayTensor, FileTensor
from mo_loop.graph.transposed_tensor import TILE, TransposedTensor
from mo_loop.graph.types import ElementType, f16, f32, f64, u8

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
    with pytest.raises(FileError, match="ended before the data of a weight"):
        list(TransposedTensor(source).blocks())
