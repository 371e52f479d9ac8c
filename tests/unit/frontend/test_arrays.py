"""Arrays whose size is in the model, constants without elements, and ranks that nodes force."""

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from mo_loop.api import convert_model
from mo_loop.conversion_limits import Limits, budget, limited
from mo_loop.errors import ConversionErrors, ConversionWarning, LimitError, MoLoopError, TypeError_
from mo_loop.frontend.declared_types import Forced, Ranks
from mo_loop.frontend.external_files import dense_from_sparse
from mo_loop.frontend.ops import shared
from mo_loop.frontend.registry import is_elementwise
from tests import ROOT
from tests.fuzz.operators.model import Model
from tests.fuzz.operators.table import FAMILIES, operators_of
from tests.fuzz.operators.trial import Missing, nodes_of
from tests.harness import parsed, raised

# -- Translators make arrays whose size is in the model with mo_loop.frontend.ops.shared, which counts the bytes


OPS = ROOT / "mo_loop" / "frontend" / "ops"

SIZES = {"zeros": 0, "ones": 0, "empty": 0, "full": 0, "eye": 0, "identity": 0, "tri": 0, "repeat": 1, "tile": 1}
"""Functions of numpy, and which argument is a size; all arguments of `arange` and `linspace` are."""

REASONS = {
    ("linear_attention.py", "np.repeat(array.astype(np.float32), times, axis=0)"): "known heads times a chunk of 16",
    ("experts.py", "np.repeat(array, self.block_size, 1)"): "to the size of the weights, which the file has",
    ("sparse_attention.py", "np.arange(3 * window)"): "counted by require_room before",
    ("sparse_attention.py", "np.arange(window)"): "counted by require_room before",
    ("pooling.py", "np.ones(count, np.int64)"): "a number of dimensions",
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
        raised(LimitError, shared.ones, (1000,), np.float32, match=r"^ML343: ")
    for make in (lambda: shared.first_numbers(2**40), lambda: shared.unit_matrix(2**20, bool)):
        raised(TypeError_, make, match=r"^ML242: ")


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
    assert raised(MoLoopError, convert_model, model, match=code).exit_code == 2


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
        caught = raised(LimitError, convert_model, _sparse(values, 1000), limits={"constant_bytes": size - 1})
        assert caught.code == "ML342" and f" {size} bytes" in caught.message
    model = _sparse(narrow, 1000)
    assert raised(LimitError, convert_model, model, limits={"folded_bytes": 999}).code == "ML343"
    (tensor,) = _sparse(texts, 3).graph.sparse_initializer
    assert dense_from_sparse(tensor).array().tolist() == [b"", b"a", b""]


# -- Constants without elements, in place of each input of each operator: converted, or refused as a fault of the model.
#
# The operators and their other inputs are drawn by `tests/fuzz/operators`; small ones become constants, so that
# translators read them.


PARTS = 6


@pytest.mark.sweep(6)
@pytest.mark.parametrize("part", range(PARTS))
def test_an_empty_constant_is_no_internal_error(part: int) -> None:
    every = [op for family in FAMILIES for op in operators_of(family)][part::PARTS]
    found = []
    for op in every:
        for place, model in _models(op):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    convert_model(model)
            except MoLoopError as error:
                errors = error.errors if isinstance(error, ConversionErrors) else [error]
                found += [f"{op}, input {place}: {each}" for each in errors if each.code == "ML400"]
            except Exception as error:
                found.append(f"{op}, input {place}: {error!r}")
    assert not found, "\n".join(found)


DRAWN = {
    "an axis of products": ("(float[2,3] x) => (y) <int64[0] n = {}> { y = CumProd (x, n) }", "ML235"),
    "an axis of a transform": ('(float[2,3,1] x) => (y) <int64[0] n = {}> { y = DFT (x, "", n) }', "ML235"),
    "a diagonal": ("(float[2,3] x) => (y) <int64[0] n = {}> { y = Trilu (x, n) }", "ML235"),
    "a step in a function": (
        '(int64 x) => (y) { y = own.F (x) } <domain: "own", opset_import: ["": 26]> F (x) => (y) '
        "{ n = Constant <value_ints: ints = []> () y = Range (x, x, n) }", "ML235"),
    "a region": (
        "(float[1,2] x) => (y) <float[0] n = {}, float[2] s = {1, 2}> "
        '{ y = Resize <coordinate_transformation_mode = "tf_crop_and_resize"> (x, n, s) }', "ML235"),
    "rows of layouts": (
        "(float[1,2,32] q, float[1,2,16] k, float[1,2,16] v, float[1,2,8,8] a, int32[1] t, int32[1] e) => (y, c, d) "
        "<int32[1,0] n = {}, int32[1,5] s = {0,1,3,3,5}> { y, c, d = com.microsoft.SparseAttention "
        "<kv_num_heads = 2, num_heads = 4, sparse_block_size = 2> (q, k, v, a, a, n, s, t, e) }", "ML235"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_an_empty_constant_is_a_fault_of_the_model(name: str) -> None:
    text, code = DRAWN[name]
    assert raised(MoLoopError, convert_model, parsed(f"main {text}", 26, own=1, **{"com.microsoft": 1})).code == code


def test_weights_without_columns_are_not_rounded() -> None:
    model = parsed("""main (uint8[2,64] x) => (y) <float s = {1}, float[1,0] n = {}, uint8[1] w = {0}>
        { y = com.microsoft.MatMulIntegerToFloat (x, w, s, n) }""", **{"com.microsoft": 1})
    model.graph.initializer[2].CopyFrom(numpy_helper.from_array(np.ones((64, 1), np.uint8), "w"))
    with warnings.catch_warnings(action="error"):
        assert convert_model(model).graph.results[0].value.shape == (2, 0)


def _models(op: str) -> Iterator[tuple[int, Any]]:
    """The place of an input, and the model of the operator in which it is a constant without elements."""
    for seed in range(3):
        try:
            drawn = nodes_of(f"{op}/empty/{seed}", op, count=1)
        except Missing:
            return
        model = Model(drawn)
        for place, port in enumerate(drawn[0].ports):
            if port is None:
                continue
            proto = model.proto()
            next(each for each in proto.graph.node if each.name == "node").input[place] = "nothing"
            arrays = {"nothing": np.zeros([0] * max(1, seed), port.array.dtype)}
            for each in [each for each in proto.graph.input if model.feeds[0][each.name].ndim <= 1]:
                proto.graph.input.remove(each)
                arrays[each.name] = model.feeds[0][each.name]
            proto.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), n) for n, v in arrays.items())
            yield place, proto


# -- Ranks that are not declared at an input are those that nodes force; a rank that is only declared is a warning


MODELS = sorted((Path(__file__).parents[2] / "models" / "pytorch").glob("*.onnx"))
WEIGHTS = {"w": np.ones((4, 3, 3, 3), np.float32), "m": np.ones((3, 5), np.float32), "two": np.array([2, 2])}


def model(nodes: list[Any], *, inner: int | None = None, output: int | None = None, opset: int = 13) -> Any:
    """A model with an input x without shape and a vector s; `inner` and `output` are the declared ranks of a and y."""
    x = helper.make_tensor_value_info("x", 1, None)
    s = helper.make_tensor_value_info("s", 7, ["k"])
    y = helper.make_tensor_value_info("y", 1, None if output is None else [None] * output)
    a = [] if inner is None else [helper.make_tensor_value_info("a", 1, [None] * inner)]
    constants = [numpy_helper.from_array(value, name) for name, value in WEIGHTS.items()]
    read = {name for each in nodes for name in each.input}
    inputs = [each for each in (x, s) if each.name in read]
    graph = helper.make_graph(nodes, "g", inputs, [y], constants, value_info=a)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def node(op: str, inputs: str, output: str = "y", **attributes: Any) -> Any:
    return helper.make_node(op, inputs.split(), [output], **attributes)


FORCED: dict[str, tuple[list[Any], int]] = {
    "filters": ([node("Conv", "x w")], 4),
    "a kernel": ([node("MaxPool", "x", kernel_shape=[2])], 3),
    "Gemm": ([node("Gemm", "x m")], 2),
    "a permutation": ([node("Transpose", "x", perm=[0, 2, 1])], 3),
    "Concat with a constant": ([node("Concat", "w x", axis=0)], 4),
    "a recurrence": ([helper.make_node("GRU", ["x", "m", "m"], ["y"], hidden_size=1)], 3),
    "after others": ([node("Relu", "x", "a"), node("Softmax", "a", "b"), node("Conv", "b w")], 4),
    "from a branch": ([node("Relu", "x", "a"), node("MatMul", "x m"), node("Transpose", "a", "b", perm=[1, 0])], 2),
}


@pytest.mark.parametrize("case", FORCED)
def test_nodes_force_ranks(case: str) -> None:
    nodes, rank = FORCED[case]
    assert Ranks(model(nodes).graph, {"x": None}).of("x") == Forced(rank, by_declaration=False)


def test_an_input_has_the_rank_that_a_node_forces() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = convert_model(model([node("Relu", "x", "a"), node("Conv", "a w")])).graph
    assert str(graph.parameters[0].value_type) == "f32[?,?,?,?]"


def test_a_contradiction_gives_none() -> None:
    nodes = [node("Transpose", "x", "a", perm=[1, 0]), node("Conv", "x w")]
    assert Ranks(model(nodes).graph, {"x": None}).of("x") is None


@pytest.mark.parametrize("op", ["Reshape", "Expand"])
def test_a_shape_of_unknown_length(op: str) -> None:
    """The vector has as many elements as the result has dimensions."""
    forced = convert_model(model([node(op, "m s", "a"), node("Conv", "a w")])).graph
    assert forced.results[0].value.rank == 4


def declared(made: Any, name: str, rank: int) -> Any:
    """The graph of a model that converts with a warning about a declared rank, and not in a strict conversion."""
    with pytest.warns(ConversionWarning, match=f"{name} has rank {rank} because the model declares it") as caught:
        graph = convert_model(made).graph
    assert [each.message.code for each in caught] == ["ML519"]
    raised(MoLoopError, convert_model, made, strict=True, match="because the conversion is strict")
    return graph


def test_a_declared_rank_of_an_inner_value() -> None:
    graph = declared(model([node("Expand", "m s", "a"), node("Relu", "a")], inner=3), "a", 3)
    assert graph.results[0].value.rank == 3


def test_a_declared_rank_of_an_output() -> None:
    assert declared(model([node("ConstantOfShape", "s")], output=2), "y", 2).results[0].value.rank == 2
    assert declared(model([node("Relu", "x")], output=2), "x", 2).parameters[0].value_type.rank == 2


def test_what_nodes_force_precedes_a_declaration() -> None:
    with pytest.warns(ConversionWarning) as caught:
        graph = convert_model(model([node("Reshape", "m s", "a"), node("Conv", "a w")], inner=3)).graph
    assert [each.message.code for each in caught] == ["ML510"] and graph.results[0].value.rank == 4


@pytest.mark.parametrize(("nodes", "option"), [
    ([node("Relu", "x")], '--input "x[?,?,?]"'),
    ([node("MatMul", "x m", "a"), node("Flatten", "a")], '--input "x[?,?,?]"'),
    ([node("Reshape", "m s")], '--input "s[3]"'),
    ([node("Abs", "s", "a"), node("Reshape", "m a", "b"), node("Flatten", "b")], '--input "s[3]"'),
], ids=["input", "translator", "length", "computed length"])
def test_the_error_names_the_input_to_declare(nodes: list[Any], option: str) -> None:
    assert option in str(raised(ConversionErrors, convert_model, model(nodes)))
    flag, text = option.split(maxsplit=1)
    assert flag == "--input" and convert_model(model(nodes), input=text.strip('"').replace("?,?,?", "2,3")) is not None


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_forced_ranks_are_those_of_inference(path: Path) -> None:
    """No rank is forced that ONNX's own inference contradicts, in any scope of real models."""
    made = onnx.shape_inference.infer_shapes(onnx.load(path, load_external_data=False))
    known = {each.name: each for each in (*made.graph.input, *made.graph.value_info, *made.graph.output)}
    ranks = Ranks(made.graph, {})
    for name, entry in known.items():
        found = ranks.of(name)
        if found is not None and not found.by_declaration and entry.type.tensor_type.HasField("shape"):
            assert found.rank == len(entry.type.tensor_type.shape.dim), name


def test_translators_say_which_operators_work_element_by_element() -> None:
    assert all(map(is_elementwise, ("Add", "Cast", "Identity", "Max", "Relu", "Tanh", "Where")))
    assert not any(map(is_elementwise, ("Clip", "CumSum", "MatMul", "Softmax", "Unknown")))
