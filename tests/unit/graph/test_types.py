"""The table of element types compared with other libraries, and the packing of narrow elements."""

import copy
import pickle

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mo_loop.errors import UnsupportedError
from mo_loop.graph.dimension import fresh, named
from mo_loop.graph.tensor import ArrayTensor, DeferredTensor, FileTensor, pack_strings
from mo_loop.graph.types import (
    ALL,
    BY_NAME,
    KNOWN_LIMIT,
    UNKNOWN,
    ElementType,
    OptionalType,
    SequenceType,
    TensorType,
    boolean,
    f32,
    from_numpy,
    from_onnx,
    i4,
    i64,
    known_array,
    string,
    tensor_of_known,
    u2,
    u4,
)
from mo_loop.support.packed_arrays import pack, unpack

NUMERIC = [each for each in ALL if each is not string]
NARROW = [each for each in NUMERIC if each.bits < 8]


class TestTable:
    @pytest.mark.parametrize("column", ["name", "precision", "onnx", "numpy_name"])
    def test_every_column_is_unique(self, column: str) -> None:
        entries = [getattr(each, column) for each in ALL if getattr(each, column) is not None]
        assert len(entries) == len(set(entries))

    def test_it_covers_onnx_but_for_floats_of_six_bits(self) -> None:
        """They do not divide a byte, and neither the IR nor a runtime here supports them."""
        numbers = {number: name for name, number in onnx.TensorProto.DataType.items() if name != "UNDEFINED"}
        missing = numbers.keys() - {each.onnx for each in ALL}
        assert all(numbers[number].startswith("FLOAT6") for number in missing)
        for number in missing:
            with pytest.raises(UnsupportedError, match=str(number)):
                from_onnx(number)

    @pytest.mark.parametrize("each", ALL, ids=repr)
    def test_it_agrees_with_onnx(self, each: ElementType) -> None:
        assert from_onnx(each.onnx) is each and onnx.helper.tensor_dtype_to_np_dtype(each.onnx) == each.numpy

    @pytest.mark.parametrize("each", NUMERIC, ids=repr)
    def test_it_agrees_with_numpy_and_ml_dtypes(self, each: ElementType) -> None:
        assert from_numpy(each.numpy) is each and each.numpy.itemsize == max(each.bits // 8, 1)
        if each.is_float:
            assert ml_dtypes.finfo(each.numpy).bits == each.bits
        elif each.is_integer:
            assert ml_dtypes.iinfo(each.numpy).bits == each.bits
            assert (ml_dtypes.iinfo(each.numpy).min < 0) == (each.kind == "int")

    def test_it_agrees_with_openvino(self) -> None:
        openvino = pytest.importorskip("openvino")
        for each in ALL:
            if each.precision is not None and (each is not u2 or hasattr(openvino.Type, "u2")):  # 2024.6 has no u2
                assert getattr(openvino.Type, each.name).get_type_name() == each.name

    @pytest.mark.parametrize("text", ["<U3", "S5", "O"])
    def test_texts_are_strings(self, text: str) -> None:
        assert from_numpy(text) is string

    def test_what_is_unknown_is_refused(self) -> None:
        with pytest.raises(UnsupportedError):
            from_onnx(0)
        with pytest.raises(UnsupportedError):
            from_numpy("datetime64[s]")

    def test_sizes(self) -> None:
        assert (f32.size_of(3), i4.size_of(3), u2.size_of(5), boolean.size_of(7)) == (12, 2, 2, 7)


class TestPacking:
    @pytest.mark.parametrize("dtype", NARROW, ids=repr)
    @given(codes=st.lists(st.integers(0, 15), max_size=17))
    def test_packed_and_unpacked(self, dtype: ElementType, codes: list[int]) -> None:
        raw = np.array(codes, np.uint8) & ((1 << dtype.bits) - 1)
        data = bytes(_by_hand(raw.tolist(), dtype.bits))
        array = unpack(data, len(codes), dtype.bits, dtype.numpy)
        assert array.dtype == dtype.numpy and pack(array, dtype.bits) == data
        assert len(data) == dtype.size_of(len(codes))

    def test_values(self) -> None:
        assert pack(np.array([1, -1, 7], i4.numpy), 4) == b"\xf1\x07"
        assert unpack(b"\xf1\x87", 4, 4, i4.numpy).tolist() == [1, -1, 7, -8]
        assert unpack(b"\xf1", 2, 4, u4.numpy).tolist() == [1, 15]
        assert pack(np.array([3, 0, 2, 1, 1], u2.numpy), 2) == b"\x63\x01"

    def test_strings(self) -> None:
        data = pack_strings(np.array(["ab", b"c\xff", ""], object))
        assert np.frombuffer(data[:20], "<i4").tolist() == [3, 0, 2, 4, 4] and data[20:] == b"abc\xff"


def _by_hand(codes: list[int], bits: int) -> list[int]:
    packed = []
    for start in range(0, len(codes), 8 // bits):
        byte = 0
        for place, code in enumerate(codes[start : start + 8 // bits]):
            byte |= code << (place * bits)
        packed.append(byte)
    return packed


class TestTensors:
    @pytest.mark.parametrize("dtype", NUMERIC, ids=repr)
    def test_three_kinds_hold_the_same(self, dtype: ElementType, tmp_path: object) -> None:
        raw = np.random.default_rng(0).integers(0, 256, dtype.size_of(12), np.uint8).tobytes()
        if dtype is boolean:
            raw = bytes(byte & 1 for byte in raw)
        path = f"{tmp_path}/data"
        with open(path, "wb") as file:
            file.write(b"head" + raw + b"tail")
        spans = FileTensor(path, 4, dtype, (3, 4))
        array = ArrayTensor(spans.array(), dtype)
        made = DeferredTensor(dtype, (3, 4), lambda: iter([raw[:5], raw[5:]]))
        assert {b"".join(each.blocks()) for each in (spans, array, made)} == {raw}
        assert {each.nbytes for each in (spans, array, made)} == {len(raw)} and spans.sample() == array.sample()

    def test_a_strided_array_is_written_in_order(self) -> None:
        array = np.arange(6, dtype=np.float32).reshape(2, 3).T
        assert b"".join(ArrayTensor(array).blocks()) == np.ascontiguousarray(array).tobytes()

    def test_an_empty_one_has_no_bytes(self) -> None:
        empty = ArrayTensor(np.zeros((0, 3), np.float32))
        assert (empty.nbytes, b"".join(empty.blocks()), empty.sample()) == (0, b"", b"")


class TestTensorType:
    def test_equality_includes_what_is_known(self) -> None:
        n = named("N")
        assert TensorType(f32, (n, 2)) == TensorType(f32, (named("N"), 2))
        assert tensor_of_known(i64, [1, n]) == tensor_of_known(i64, [1, named("N")])
        assert tensor_of_known(i64, [1, n]) != tensor_of_known(i64, [1, 2])
        assert tensor_of_known(i64, [1]) != TensorType(i64, (1,))
        assert TensorType(f32, (fresh(),)) != TensorType(f32, (fresh(),))
        assert hash(TensorType(f32, (n,))) == hash(TensorType(f32, (n,)))

    def test_integers_only_where_all_are_known(self) -> None:
        assert tensor_of_known(i64, [1, 2]).integers == (1, 2)
        assert tensor_of_known(i64, [1, named("N")]).integers is None and tensor_of_known(i64, 5).shape == ()

    def test_many_values_are_not_tracked(self) -> None:
        many = known_array(list(range(KNOWN_LIMIT + 1)), (KNOWN_LIMIT + 1,))
        assert tensor_of_known(i64, many).known is None

    def test_as_text(self) -> None:
        sequence = SequenceType(TensorType(f32, None))
        assert repr(OptionalType(sequence)) == "optional(seq(f32[...]))" and repr(UNKNOWN) == "?[...]"


def test_a_pickled_or_copied_element_type_is_the_same_instance() -> None:
    """Types are compared by identity; options with types go to worker processes."""
    for each in BY_NAME.values():
        assert pickle.loads(pickle.dumps(each)) is copy.deepcopy(each) is each
