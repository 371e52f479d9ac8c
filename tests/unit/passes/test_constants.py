"""Constants: which are merged, shared, compressed and transposed, and where conversions go."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.graph import Graph, Value
from mo_loop.graph.tensor import BLOCK, SAMPLE, ArrayTensor, DeferredTensor, FileTensor, Tensor
from mo_loop.graph.transposed_tensor import TransposedTensor
from mo_loop.graph.types import f16, f32, f64, i4, i64, string
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.text import parse, to_text
from mo_loop.transforms.common import transposed_weights
from mo_loop.transforms.common.simplification import ConstantsReduce, SharedOpOptimization, _frozen
from mo_loop.transforms.common.transposed_weights import ShareTransposedConstants, TransposeWeights
from mo_loop.transforms.low_precision.compress_weights import CompressFloatConstants, Compression
from mo_loop.transforms.manager import Manager
from mo_loop.transforms.runtime import initial_values
from mo_loop.transforms.runtime.initial_values import ShareInitialValues
from tests import MODELS
from tests.texts import texts
from tests.unit.graph.graphs import parameter

TEXTS = texts(__file__)

# -- Which constants are merged: small ones by bytes, large ones by their place in the file


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


# -- The counts of CompressFloatConstants: constants by result, values, and bytes saved


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


# -- ShareInitialValues: how it looks for attention after a cache. Its graphs are in tests/golden


CACHE = TEXTS["cache"]


def test_each_value_behind_a_cache_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A square reads its input twice, so that every one of them doubles the number of paths."""
    names = ["present", *(f"square{i}" for i in range(12))]
    squares = [f"%{after} = Multiply(%{before}, %{before})" for before, after in pairwise(names)]
    asked: list[Value] = []
    monkeypatch.setattr(initial_values, "consumed_by", lambda *kinds: asked.append)
    assert Manager([ShareInitialValues()]).run(parse("\n".join([CACHE, *squares, "Result(%square11)"])))
    assert len(asked) == len(set(asked)) == 13


# -- Matrices are compared bit by bit, transposed


ROWS, COLUMNS = 70, 40


def language_model(embedding: np.ndarray, weights: np.ndarray) -> tuple[Graph, ops.MatMul]:
    graph = Graph()
    tokens = Parameter(graph=graph, dtype=i64, shape=(4,))
    product = ops.MatMul(ops.Gather(Constant(embedding, graph=graph), tokens, 0), Constant(weights, graph=graph))
    Result(product)
    return graph, product


def test_the_product_reads_the_embedding() -> None:
    matrix = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    graph, product = language_model(matrix, np.ascontiguousarray(matrix.T))
    assert ShareTransposedConstants().run(graph)
    assert product.transpose_b and product.inputs[1].shape == (ROWS, COLUMNS)
    assert len([each for each in graph.of(Constant) if each.tensor.dtype is f32]) == 1
    assert not ShareTransposedConstants().run(graph)


@pytest.mark.parametrize("place", [(0, 0), (30, 7), (-1, -1)])
def test_one_other_bit_keeps_both(place: tuple[int, int]) -> None:
    matrix = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    other = np.ascontiguousarray(matrix.T)
    matrix[place] = 0.0
    other[place[::-1]] = -0.0
    graph, product = language_model(matrix, other)
    assert not ShareTransposedConstants().run(graph) and not product.transpose_b


def test_equal_first_and_last_elements_are_not_enough() -> None:
    matrix = np.zeros((ROWS, COLUMNS), np.float32)
    other = np.ascontiguousarray(matrix.T)
    other[1, 0] = 1
    graph, _ = language_model(matrix, other)
    assert not ShareTransposedConstants().run(graph)


# -- Which attributes are equal, and the names of merged nodes


NAN = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)


@pytest.mark.parametrize(("a", "b", "equal"), [
    (0.5, 0.5, True),
    (0.0, -0.0, False),
    (float("nan"), float("nan"), True),
    (NAN[0], NAN[1], False),
    (1, 1.0, False),
    (1, True, False),
    ((1, 2), (1, 2), True),
    ((0.0,), (-0.0,), False),
    ({"a": [1], "b": 2}, {"b": 2, "a": [1]}, True),
    ({"a": 1}, {"a": 2}, False),
    (np.zeros((2, 3)), np.zeros((2, 3)), True),
    (np.zeros((2, 3)), np.zeros((3, 2)), False),
    (np.zeros(2), -np.zeros(2), False),
    (np.array(["a"], object), np.array(["a"], object), True),
    ({1, 2}, {1, 2}, False),  # a value that cannot be hashed is equal to no other
])
def test_attributes_compare_by_bits(a: Any, b: Any, equal: bool) -> None:
    assert (hash(_frozen(a)), _frozen(a)) == (hash(_frozen(a)), _frozen(a)) and (_frozen(a) == _frozen(b)) is equal


def test_a_veto_keeps_a_node() -> None:
    graph = parse('%x = Parameter : f32[2]\n%a = Abs(%x)\n%b = Abs(%x) "keep"\n%y = Add(%a, %b)\nResult(%y)')
    each = SharedOpOptimization()
    each.config.veto(lambda node: node.name == "keep", each)
    assert not each.run(graph)


def test_a_long_chain_collapses_in_one_run() -> None:
    lines = ["%x = Parameter : f32[2]", "%a0 = Abs(%x)", "%b0 = Abs(%x)"]
    for number in range(300):
        lines += [f"%{which}{number + 1} = Tanh(%{which}{number})" for which in "ab"]
    graph = parse("\n".join([*lines, "%y = Add(%a300, %b300)", "Result(%y)"]))
    assert SharedOpOptimization().run(graph) and len(graph) == 304 and not SharedOpOptimization().run(graph)


def test_the_same_graph_gives_the_same_text() -> None:
    text = '%x = Parameter : f32[2]\n%a = Abs(%x) "a"\n%b = Abs(%x) "b"\n%y = Add(%b, %a)\nResult(%y)'
    texts = set()
    for _ in range(5):
        graph = parse(text)
        SharedOpOptimization().run(graph)
        texts.add(to_text(graph))
    assert len(texts) == 1


# -- Which weights are transposed: none that is read as it is in any scope, and not too many


FEW_ROWS, FEW_COLUMNS = 160, 120
BRANCHES = TEXTS["branches"]


def span(folder: Path) -> FileTensor:
    path = folder / "weights"
    np.random.default_rng(0).standard_normal((FEW_ROWS, FEW_COLUMNS)).astype(np.float32).tofile(path)
    return FileTensor(str(path), 0, f32, (FEW_ROWS, FEW_COLUMNS))


def products(count: int, folder: Path) -> tuple[Graph, list[ops.MatMul]]:
    """A graph of several products with constants of the same span of a file."""
    graph = Graph()
    x = Parameter(graph=graph, dtype=f32, shape=(4, FEW_ROWS))
    made = [ops.MatMul(x, Constant(span(folder), graph=graph, name=f"w{each}")) for each in range(count)]
    for each in made:
        Result(each)
    return graph, made


def test_constants_of_one_span_share_what_is_transposed(tmp_path: Path) -> None:
    graph, made = products(2, tmp_path)
    assert TransposeWeights().run(graph)
    first, second = (each.inputs[1].node for each in made)
    assert isinstance(first.tensor, TransposedTensor) and first.tensor is second.tensor
    assert [first.name, second.name] == ["w0", "w1"] and all(each.transpose_b for each in made)
    assert [each.output.shape for each in made] == [(4, FEW_COLUMNS)] * 2 and not TransposeWeights().run(graph)


def test_another_reader_of_the_span_keeps_all_of_them(tmp_path: Path) -> None:
    graph, made = products(2, tmp_path)
    tokens = Parameter(graph=graph, dtype=i64, shape=(4,))
    Result(ops.Gather(Constant(span(tmp_path), graph=graph), tokens, 0))
    assert not TransposeWeights().run(graph) and not any(each.transpose_b for each in made)


def test_another_reader_in_another_scope_keeps_them(tmp_path: Path) -> None:
    graph = parse(BRANCHES)
    first, second = (next(iter(body.of(ops.MatMul)), None) for body in graph.of(ops.If)[0].bodies)
    assert first is not None and second is None
    tensor = span(tmp_path)
    for body in graph.of(ops.If)[0].bodies:
        (constant,) = (each for each in body.of(Constant) if each.tensor.size > 1)
        constant.output.replace_with(Constant(tensor, graph=body).output)
        body.sweep()
    assert not TransposeWeights().run(graph) and not first.transpose_b


def test_the_limit_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 4 * FEW_ROWS * FEW_COLUMNS
    monkeypatch.setattr(transposed_weights, "MOST", size - 1)
    graph, _ = products(2, tmp_path)
    assert not TransposeWeights().run(graph)
    monkeypatch.setattr(transposed_weights, "MOST", size)  # both are one span, which is transposed once
    assert TransposeWeights().run(graph)


# -- ConvertFirst in the whole conversion: no later pass makes what the rule replaces. Its graphs are in tests/golden


KINDS = (
    ops.Add, ops.Multiply, ops.Maximum, ops.Minimum, ops.Equal, ops.NotEqual, ops.SquaredDifference, ops.Less,
    ops.LessEqual, ops.Greater, ops.GreaterEqual, ops.FloorMod, ops.Mod, ops.Power,
)


@pytest.mark.parametrize("name", [
    "transformers/bert", "transformers/llama_generate", "tensorflow/fold", "tensorflow/gru_masked",
    "tensorflow/while_growing", "pytorch/for_fixed", "pytorch_sequences/list_cat_ragged",
])
def test_no_convert_from_integers_is_second(name: str) -> None:
    found = []
    for graph in convert_model(MODELS / f"{name}.onnx").graph.scopes():
        for node in (each for each in graph if isinstance(each, KINDS)):
            x, second = (each.node for each in node.operands)
            if not isinstance(second, ops.Convert) or second.output.only_use is None:
                continue
            source, to = second.operands[0], second.destination_type
            widens = not source.dtype.is_float and (to.is_float or source.dtype.bits < min(to.bits, 32))
            equal = isinstance(x, ops.Convert) and x.operands[0].dtype is source.dtype
            if widens and not equal and not isinstance(source.node, ops.Constant):
                found.append(f"{node}: {source.dtype} -> {to}")
    assert found == []
