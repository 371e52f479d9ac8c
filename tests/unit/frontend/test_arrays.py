"""Translators make arrays whose size is in the model with mo_loop.frontend.ops.shared, which counts the bytes."""

import ast
from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from mo_loop import convert_model
from mo_loop.conversion_limits import Limits, budget, limited
from mo_loop.errors import LimitError, MoLoopError, TypeError_
from mo_loop.frontend.external_files import dense_from_sparse
from mo_loop.frontend.ops import shared
from tests import ROOT
from tests.harness import parsed

OPS = ROOT / "mo_loop" / "frontend" / "ops"

SIZES = {"zeros": 0, "ones": 0, "empty": 0, "full": 0, "eye": 0, "identity": 0, "tri": 0, "repeat": 1, "tile": 1}
"""Functions of numpy, and which argument is a size; all arguments of `arange` and `linspace` are."""

REASONS = {
    ("linear_attention.py", "np.repeat(array.astype(np.float32), times, axis=0)"): "known heads times a chunk of 16",
    ("experts.py", "np.repeat(array, self.block_size, 1)"): "to the size of the weights, which the file has",
    ("sparse_attention.py", "np.arange(3 * window)"): "counted by require_room before",
    ("sparse_attention.py", "np.arange(window)"): "counted by require_room before",
    ("pooling.py", "np.ones(count, np.int64)"): "a number of dimensions",
    ("pooling.py", "np.zeros(2 + count, np.int64)"): "a number of dimensions",
    ("control.py", "np.zeros(others, np.int64)"): "a number of dimensions",
    **{
        ("shared.py", call): "counted by the function itself"
        for call in (
            "np.zeros(shape, kind)", "np.full(shape, number, kind)", "np.eye(size, dtype=kind)", "np.arange(count)",
            "np.arange(first, end, step, dtype=kind)", "np.repeat(np.arange(count), times)",
        )
    },
}
"""Arrays of another size: why it is bounded."""


def test_no_translator_gives_a_number_of_the_model_to_numpy() -> None:
    found = {place for path in sorted(OPS.rglob("*.py")) for place in _unbounded(path.name, path.read_text("utf-8"))}
    assert found == REASONS.keys()


@pytest.mark.parametrize("text", ["np.zeros((2, n))", "np.arange(0, n)", "np.repeat(x, n)", "np.full(shape=n, fill=0)"])
def test_the_check_finds_numbers(text: str) -> None:
    assert len(list(_unbounded("a.py", text))) == 1


@pytest.mark.parametrize("text", ["np.zeros((2, rank))", "np.arange(len(x) + 1)", "np.ones(x.rank)", "np.eye(CHUNK)"])
def test_the_check_leaves_what_is_bounded(text: str) -> None:
    assert list(_unbounded("a.py", text)) == []


def _unbounded(file: str, source: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        of, name = node.func.value, node.func.attr
        if not isinstance(of, ast.Name) or of.id != "np" or (name not in SIZES and name not in ("arange", "linspace")):
            continue
        sizes = node.args if name not in SIZES else node.args[SIZES[name] : SIZES[name] + 1]
        if not sizes or not all(map(_is_bounded, sizes)):
            yield file, ast.unparse(node)


def _is_bounded(size: ast.expr) -> bool:
    """Whether a size is a constant, a rank, a number of items that the file has, or made of such."""
    match size:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name == "rank" or name.isupper()
        case ast.Attribute(attr=name):
            return name in ("rank", "known_rank")
        case ast.Call(func=ast.Name(id="len")):
            return True
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return all(map(_is_bounded, items))
        case ast.BinOp(left=left, right=right):
            return _is_bounded(left) and _is_bounded(right)
        case ast.UnaryOp(operand=operand):
            return _is_bounded(operand)
    return False


def test_the_bytes_are_counted_before_the_array_is_made() -> None:
    with limited(Limits(folded_bytes=1000)):
        assert shared.zeros((10, 5), np.float64).nbytes == 400 and budget().folded == 400
        assert shared.full((5,), 7, np.int32).tolist() == [7] * 5 and budget().folded == 420
        assert shared.counted_up(-2, 9, 3).tolist() == [-2, 1, 4, 7] and budget().folded == 452
        assert shared.repeated_numbers(3, [2, 0, 1]).tolist() == [0, 0, 2]
        assert shared.repeated_numbers(2, 2).tolist() == [0, 0, 1, 1]
        with pytest.raises(LimitError, match=r"^ML343: "):
            shared.ones((1000,), np.float32)
    for make in (lambda: shared.first_numbers(2**40), lambda: shared.unit_matrix(2**20, bool)):
        with pytest.raises(TypeError_, match=r"^ML242: "):
            make()


NODES = {
    "windows along a dimension that is not known": (
        "(float[2,N] x) => (y) { y = com.microsoft.UnfoldTensor <dim = -1, size = 1073741824> (x) }", "ML242"),
    "a place of an n-gram": (
        '(int64[4] x) => (y) { y = TfIdfVectorizer <max_gram_length = 1, max_skip_count = 0, min_gram_length = 1, '
        'mode = "TF", ngram_counts = [0], ngram_indexes = [1073741825], pool_int64s = [5]> (x) }', "ML242"),
    "pairs of classes": (
        "(float[2,3] x) => (y, z) { y, z = ai.onnx.ml.SVMClassifier <classlabels_ints = [1, 2, 3], rho = [0.0], "
        "coefficients = [1.0], kernel_params = [0.0, 0.0, 0.0], support_vectors = [1.0, 1.0, 1.0], "
        f"vectors_per_class = {[1] + [0] * 20000}> (x) }}", "ML227"),
    "axes that are not known": ("(float[2] x, int64[2000000000] a) => (y) { y = Unsqueeze (x, a) }", "ML242"),
    "targets of a tree": (
        "(float[2,3] x) => (y) { y = ai.onnx.ml.TreeEnsembleRegressor <n_targets = 268435456, nodes_treeids = [0], "
        'nodes_nodeids = [0], nodes_featureids = [0], nodes_modes = ["LEAF"], nodes_values = [0.0], '
        "nodes_truenodeids = [0], nodes_falsenodeids = [0], target_treeids = [0], target_nodeids = [0], "
        "target_ids = [0], target_weights = [1.0]> (x) }", "ML242"),
}


@pytest.mark.parametrize("name", NODES)
def test_a_small_node_that_asks_for_a_large_array(name: str) -> None:
    text, code = NODES[name]
    model = parsed(f"main {text}", opset=18)
    domains = {each.domain for each in model.opset_import}
    model.opset_import.extend(
        helper.make_opsetid(each, version)
        for each, version in (("com.microsoft", 1), ("ai.onnx.ml", 3)) if each not in domains
    )
    with pytest.raises(MoLoopError, match=code) as caught:
        convert_model(model)
    assert caught.value.exit_code == 2


def _sparse(values: onnx.TensorProto, count: int) -> onnx.ModelProto:
    model = parsed("main (int64[1] x) => (y) { y = Gather (w, x) }", opset=21)
    indices = numpy_helper.from_array(np.int64([1]), "i")
    model.graph.sparse_initializer.append(onnx.SparseTensorProto(values=values, indices=indices, dims=[count]))
    return model


def test_sparse_tensors_are_counted_as_they_are_in_memory() -> None:
    """A cell for each element below 8 bits, and 64 bytes for each string."""
    narrow = onnx.TensorProto(name="w", data_type=onnx.TensorProto.INT4, dims=[1], raw_data=b"\3")
    texts = onnx.TensorProto(name="w", data_type=onnx.TensorProto.STRING, dims=[1], string_data=[b"a"])
    for values, size in ((narrow, 1000), (texts, 64_000)):
        with pytest.raises(LimitError) as caught:
            convert_model(_sparse(values, 1000), limits={"constant_bytes": size - 1})
        assert caught.value.code == "ML342" and f" {size} bytes" in caught.value.message
    model = _sparse(narrow, 1000)
    with pytest.raises(LimitError) as caught:
        convert_model(model, limits={"folded_bytes": 999})
    assert caught.value.code == "ML343"
    (tensor,) = _sparse(texts, 3).graph.sparse_initializer
    assert dense_from_sparse(tensor).array().tolist() == [b"", b"a", b""]
