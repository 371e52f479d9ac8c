"""Previews of constants, and the names by which equal contents are found."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mo_loop.graph.tensor import ArrayTensor, FileTensor
from mo_loop.graph.types import f32, i4, i64, string
from mo_loop.look.records.data import LIMIT, Contents, described_constant, preview


def array(*values: Any, dtype: Any = np.float32) -> ArrayTensor:
    return ArrayTensor(np.array(values, dtype))


def test_a_small_constant_is_shown_as_it_is() -> None:
    assert preview(ArrayTensor(np.array([[1, 2], [3, 4]], np.int64))) == "[[1, 2], [3, 4]]"
    assert preview(ArrayTensor(np.array(0.5, np.float32))) == "0.5"


def test_of_a_large_constant_the_first_elements_are_shown(tmp_path: Path) -> None:
    values = np.arange(3000, dtype=np.float32)
    file = tmp_path / "weights"
    file.write_bytes(b"before" + values.tobytes())
    expected = f"[{', '.join(f'{each}.0' for each in range(16))}, ...]"
    assert preview(ArrayTensor(values.reshape(30, 100))) == expected
    assert preview(FileTensor(str(file), 6, f32, (30, 100))) == expected


def test_elements_below_a_byte_are_unpacked(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(bytes([0xF1]) * 10)
    assert preview(FileTensor(str(file), 0, i4, (20,))) == f"[{', '.join(['1', '-1'] * 8)}, ...]"


def test_a_long_text_is_cut() -> None:
    shown = preview(ArrayTensor(np.array("x" * 5000, object), string))
    assert len(shown) == LIMIT + 3 and shown.endswith("...")


def test_equal_bytes_of_one_element_type_have_one_name() -> None:
    contents = Contents()
    name = contents.name(array(1, 2, 3, 4))
    assert contents.name(ArrayTensor(np.array([[1, 2], [3, 4]], np.float32))) == name
    assert contents.name(array(1, 2, 3, 5)) != name
    assert contents.name(array(0, dtype=np.int32)) != contents.name(array(0))
    assert Contents().name(array(1, 2, 3, 4)) == name


def test_contents_that_differ_only_in_the_middle_have_different_names() -> None:
    contents = Contents()
    values = [np.zeros(5000, np.float32) for _ in range(3)]
    values[1][2500] = 1
    names = [contents.name(ArrayTensor(each)) for each in values]
    assert names[0] == names[2] != names[1]


def test_weights_are_read_as_a_whole_only_where_their_samples_are_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "weights"
    file.write_bytes(np.arange(4000, dtype=np.int64).tobytes())
    read: list[int] = []
    blocks = FileTensor.blocks
    monkeypatch.setattr(FileTensor, "blocks", lambda self: read.append(self.offset) or blocks(self))
    contents = Contents()
    one = contents.name(FileTensor(str(file), 0, i64, (2000,)))
    assert contents.name(FileTensor(str(file), 16000, i64, (2000,))) != one
    assert contents.name(FileTensor(str(file), 0, i64, (20, 100))) == one and read == []
    copy = tmp_path / "copy"
    copy.write_bytes(file.read_bytes())
    assert contents.name(FileTensor(str(copy), 0, i64, (2000,))) == one and read == [0, 0]


class TestTransposed:
    MATRIX = np.arange(24, dtype=np.float32).reshape(4, 6)

    def test_a_matrix_names_the_earlier_one_that_it_is_transposed(self) -> None:
        contents = Contents()
        first, second = ArrayTensor(self.MATRIX), ArrayTensor(self.MATRIX.T.copy())
        assert contents.transposed(first) is None and contents.transposed(second) == contents.name(first)
        assert contents.transposed(first) is None
        assert described_constant(second, contents)["transposed"] == contents.name(first)

    def test_equal_corners_are_not_enough(self) -> None:
        contents = Contents()
        other = self.MATRIX.T.copy()
        other[2, 2] = -1
        contents.transposed(ArrayTensor(self.MATRIX))
        assert contents.transposed(ArrayTensor(other)) is None

    def test_a_matrix_of_equal_elements_is_no_other_form_of_itself(self) -> None:
        contents = Contents()
        contents.transposed(ArrayTensor(np.zeros((4, 6), np.float32)))
        assert contents.transposed(ArrayTensor(np.zeros((6, 4), np.float32))) is None

    def test_in_a_file(self, tmp_path: Path) -> None:
        file = tmp_path / "weights"
        matrix = np.random.default_rng(0).random((50, 60)).astype(np.float32)
        file.write_bytes(matrix.tobytes() + matrix.T.tobytes())
        contents = Contents()
        first, second = FileTensor(str(file), 0, f32, (50, 60)), FileTensor(str(file), matrix.nbytes, f32, (60, 50))
        assert contents.transposed(first) is None and contents.transposed(second) == contents.name(first)
