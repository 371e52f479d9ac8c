"""Nodes that damaged models showed: each was an internal error, and is refused with a code.

A model is text, with `com.microsoft` for the operators of ONNX Runtime.
"""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from mo_loop import convert_model, ops
from mo_loop.errors import ModelError, MoLoopError, TypeError_, UnsupportedError
from mo_loop.frontend.declared_types import _said
from mo_loop.frontend.ops.attention.linear_attention import recurrence
from mo_loop.frontend.ops.attention.sparse_attention import _layouts
from mo_loop.frontend.ops.classical.forest import Forest
from mo_loop.frontend.ops.quantization.quantization import unless_zero
from mo_loop.frontend.registry import describe, find, listed
from mo_loop.frontend.translators import _has_default
from mo_loop.graph import Graph
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.tensor import ArrayTensor, viewed
from mo_loop.graph.types import UNKNOWN, u4
from mo_loop.ops.quantization import spread
from mo_loop.ops.ranges import AtLeast3, Form, Matrix, Needed, One, Vector, form_of
from tests.harness import f32, parsed
from tests.unit.graph.graphs import parameter

NODES: dict[str, tuple[str, str]] = {
    "more members of n-grams, with gaps, than parts": (
        "(int64[9] x) => (y) { y = TfIdfVectorizer <max_gram_length = 2, max_skip_count = 2100, min_gram_length = 2, "
        'mode = "TF", ngram_counts = [0, 0], ngram_indexes = [0], pool_int64s = [5, 6]> (x) }', "ML236"),
    "a second factor that is absent": (
        "(uint8[2] a, uint8 z) => (y) { y = com.microsoft.MulInteger (a, z) }", "ML227"),
    "a transform that is one number": ("(float t, int64[4] n) => (y) { y = AffineGrid (t, n) }", "ML235"),
    "layers that are absent": (
        "(float[3,4] x, float[3,5] r, float[5,4,4] w) => (y) { y = com.microsoft.MoE (x, r, w) }", "ML227"),
    "a matrix that is a number": ("(float x) => (y) { y = Trilu (x) }", "ML235"),
    "scales that are one number": ("(float[1,2,5,6] x, float s) => (y) { y = Resize (x, , s) }", "ML235"),
    "scales that are not finite": (
        "(float[1,1,4,4] x) => (y) { s = Constant <value_floats = [1.0, 1.0, 1.0, nan]> () y = Resize (x, , s) }",
        "ML235"),
    "an empty filter": ("(float[1,2,8] x, float[3,2,0] w) => (y) { y = Conv <pads = [1, 0]> (x, w) }", "ML235"),
    "an empty transposed filter": ("(float[1,2,8] x, float[2,3,0] w) => (y) { y = ConvTranspose (x, w) }", "ML235"),
    "more repeats than dimensions can be": ("(float[2] x, int64[100000] n) => (y) { y = Tile (x, n) }", "ML242"),
    "a density that is not a number": (
        "(float[1,2,3,3] x, float[1,2,9,9] i) => (y) "
        "{ y = org.openvinotoolkit.PriorBox <density = [nan], fixed_size = [2.0]> (x, i) }", "ML235"),
    "two values to fill with": (
        "(int64[2] n) => (y) { y = ConstantOfShape <value: tensor = int64[2] {1, 2}> (n) }", "ML235"),
    "lengths of no sequence": (
        "(float[1,2,32] q, float[1,2,16] k, float[1,2,16] v, float[1,2,8,8] a, float[1,2,8,8] b, int32[1] t, "
        "int32[0] e) => (y, c) <int32[1,5] s = {0,1,3,3,5}, int32[1,5] n = {0,0,1,0,3}> "
        "{ y, c = com.microsoft.SparseAttention <kv_num_heads = 2, num_heads = 4, sparse_block_size = 2> "
        "(q, k, v, a, b, s, n, t, e) }", "ML233"),
    "repeats below 0 of known numbers": ("(int64[1] n) => (y) <int64[1] n = {-1}> { y = Tile (n, n) }", "ML235"),
    "a signal that is a number": ("(float x, int64 a) => (y) { y = DFT (x, , a) }", "ML235"),
    "a norm of 0": ("(float[1,1,4] x) => (y) { y = LpPool <kernel_shape = [2], p = 0.0> (x) }", "ML236"),
    "less than no bins": (
        "() => (y) <int64 n = {-2}, int64 r = {8000}, float e = {1}> { y = MelWeightMatrix (n, r, r, e, e) }", "ML227"
    ),
    "an operator that onnx has forgotten, of texts": ("(string[2] x) => (y) { y = ScaledTanh (x) }", "ML240"),
    "more outputs than an operator has that onnx has forgotten": (
        "(float[2] x) => (y, z) { y, z = ScaledTanh <alpha = 1.0, beta = 1.0> (x) }", "ML227"),
    "scales that are texts": (
        "(string s) => (y) <uint8[2] x = {1, 2}> { y = com.microsoft.DequantizeLinear (x, s) }", "ML240"),
    "weights of two directions where there is one": (
        "(float[5,1,4] x, uint8[2,4,12] w, uint8[2,3,12] r, float[2] s) => (y) <uint8[2] z = {128, 128}> "
        "{ y = com.microsoft.DynamicQuantizeLSTM <hidden_size = 3> (x, w, r, , , , , , s, z, s, z) }", "ML233"),
    "a sum of texts": ("(string[0] x) => (y) { y = ReduceLogSumExp (x) }", "ML240"),
    "a flag that is absent": (
        "(float[3,2,24] q, float[4,2,24] k, float[24,24] w, float[24,48] v, float[72] b) => (y) "
        "{ y = com.microsoft.DecoderAttention <num_heads = 3> (q, k, w, v, b) }", "ML227"),
    "more lengths than axes": (
        "(float[4,5] x) => (y) { n = Constant <value_ints = [1, 1]> () y = CenterCropPad <axes = [1]> (x, n) }", "ML227"
    ),
    "frames at one place": ("(float[2,17,1] x) => (y) { s = Constant <value_int = 0> () y = STFT (x, s) }", "ML235"),
    "a length that is absent": (
        "(float[1,1,48] x, int32[1] n) => (y) "
        '{ y = com.microsoft.GroupQueryAttention <num_heads = 1, kv_num_heads = 1> (x, "", "", "", "", n) }',
        "ML227"),
    "an embedding without indices": ('(int64[3] o) => (y) { y = ATen <operator = "embedding_bag"> (o) }', "ML227"),
    "a norm of degree -1": ("(float[2,3,4] x) => (y) { y = GlobalLpPool <p = -1> (x) }", "ML236"),
    "values of rank 2 among heads": (
        "(float[1,2,32] q, float[1,2,16] k, float[1,16] v) => (y) "
        "{ y = com.microsoft.MultiHeadAttention <num_heads = 4> (q, k, v) }", "ML235"),
    "filters without channels": (
        "(uint8[1,1,7,7] x, float s, uint8 z, uint8 w) => (y) { y = QLinearConv (x, s, z, w, s, z, s, z) }", "ML235"),
    "a bias of another length": (
        "(float[5,3,1] x, float[1,16,1] w, float[1,16,4] r, float[1,28] b) => (y) "
        "{ y = LSTM <hidden_size = 4> (x, w, r, b) }", "ML233"),
    "a bias of rank 1": (
        "(float[5,3,1] x, float[1,16,1] w, float[1,16,4] r, float[32] b) => (y) { y = GRU (x, w, r, b) }", "ML235"),
    "n-grams of no length": (
        '(int64[3] x) => (y) { y = TfIdfVectorizer <max_gram_length = 1, max_skip_count = 0, min_gram_length = 1, '
        'mode = "TF", ngram_counts: ints = [], ngram_indexes = [1, 0], pool_int64s = [1, 2]> (x) }', "ML227"),
    "n-grams with gaps without end": (
        '(int64[3] x) => (y) { y = TfIdfVectorizer <max_gram_length = 2, max_skip_count = 4611686018427387904, '
        'min_gram_length = 2, mode = "TF", ngram_counts = [0, 0], ngram_indexes = [0], pool_int64s = [1, 2]> (x) }',
        "ML236"),
    "a window of channels without end": ("(float[1,2,5] x) => (y) { y = LRN <size = 2147483647> (x) }", "ML236"),
    "cells of one size": (
        "(float[1,2,4,4] x, float[1,5] r) => (y) { y = MaxRoiPool <pooled_shape = [2]> (x, r) }", "ML227"),
    "a kernel of no dimensions": (
        "(float[1,1,8] x, int32[1,1,8] m) => (y) "
        "{ y = com.microsoft.MaxpoolWithMask <kernel_shape: ints = []> (x, m) }", "ML227"),
    "an image of other dimensions than its blocks": (
        "(float[1,4,6] x) => (y) { i = Constant <value_ints = [2, 3, 4]> () b = Constant <value_ints = [2, 2]> () "
        "y = Col2Im (x, i, b) }", "ML227"),
    "a matrix of weights of no length": (
        "(float[3] l) => (y) { n = Constant <value_ints: ints = []> () b = Constant <value_int = 5> () "
        "f = Constant <value_float = 1.0> () y = MelWeightMatrix (b, n, b, f, f) }", "ML235"),
    "boxes that are numbers": ("(bool b, float[3] s) => (y) { y = NonMaxSuppression (b, s) }", "ML235"),
    "extra sizes for some dimensions": (
        "(float[1,1,3,3] x, float[1,1,2,1] w, int64[4] p) => (y) "
        "{ y = com.microsoft.ConvTransposeWithDynamicPads <output_padding = [2]> (x, w, p) }", "ML227"),
    "weights of other sizes": (
        "(float[2,16] x, uint8[6,1,1] w, float[6] s) => (y) "
        "{ y = com.microsoft.MatMulNBits <K = 16, N = 6, bits = 4, block_size = 16> (x, w, s) }", "ML235"),
    "a step of 0": (
        "(float x) => (y) { a = Constant <value_int = 0> () b = Constant <value_int = 5> () y = Range (a, b, a) }",
        "ML235"),
    "a rank of millions": ("(float[N] x, int64[16777216] s) => (y) { y = Reshape (x, s) }", "ML242"),
    "bounds of millions of dimensions": (
        "(float[4] x, int64[16777216] s, int64[16777216] e) => (y) { y = Slice (x, s, e) }", "ML242"),
    "a window over no dimensions": ("(float[2,3] x, float[4,3] w) => (y) { y = Conv (x, w) }", "ML227"),
    "keys without values": (
        "(float[3,1,3] q, float[3,1,3] k) => (y) { y = com.microsoft.DecoderMaskedMultiHeadAttention "
        "<num_heads = 3> (q, k) }", "ML227"),
    "a query of another rank than its keys": (
        "(float[4,4] q, float[4,2,3] k, float[4,4,2] v) => (y) "
        '{ y = com.microsoft.GatedDeltaNet <update_rule = "linear"> (q, k, v) }', "ML235"),
    "states of a batch beyond 64 bits": (
        "(float[5,576460752303423488,1] x, float[1,16,1] w, float[1,16,4] r) => (y) "
        "{ y = LSTM <hidden_size = 4, clip = 1.0> (x, w, r) }", "ML242"),
    "n-grams of millions": (
        "(int64[1,4] i, float[1,9] s) => (y) { y = com.microsoft.NGramRepeatBlock <ngram_size = 9000000> (i, s) }",
        "ML236"),
    "a map of millions of dimensions": (
        "(float[1,N,M] t, int64[16777216] n) => (y) { y = AffineGrid (t, n) }", "ML235"),
    "a map of no dimensions": ("(float[1,0,1] t, int64[2] n) => (y) { y = AffineGrid (t, n) }", "ML235"),
    "weights that are no bytes": (
        "(float[2,4] x, float[8] w, float[1] s) => (y) "
        "{ y = com.microsoft.MatMulBnb4 <K = 4, N = 4, block_size = 16, quant_type = 0> (x, w, s) }", "ML235"),
    "a scale of other rank than its blocks": (
        "(int8[2,4] x, float[1] s) => (y) { y = DequantizeLinear <axis = 1, block_size = 2> (x, s) }", "ML235"),
    "a scale of other length": (
        "(int8[2,4] x, float[3] s) => (y) { y = DequantizeLinear <axis = 1> (x, s) }", "ML235"),
    "a kernel of millions, element by element": (
        "(float[1,1,4,4] x, int32[1,1,4,4] m) => (y) "
        "{ y = com.microsoft.MaxpoolWithMask <kernel_shape = [2, 1000000000]> (x, m) }", "ML236"),
    "sections of millions of columns": (
        "(float[1,2,8] x, int64[3,1,2] p, float[9,4] c, float[9,4] s) => (y) "
        "{ y = com.microsoft.MRotaryEmbedding <mrope_section = [1, 1, 1000000000]> (x, p, c, s) }", "ML236"),
    "filters of ones without end": (
        "(float[1,1,9,9] x) => (y) { y = LpPool <kernel_shape = [65536, 65536], ceil_mode = 1, p = 3, "
        "dilations = [2, 2]> (x) }", "ML242"),
    "vectors of a class below 0": (
        "(float[2,3] x) => (y, z) { y, z = ai.onnx.ml.SVMClassifier <classlabels_ints = [0, 1], "
        "coefficients = [1.0], rho = [1.0], support_vectors = [1.0, 1.0, 1.0], vectors_per_class = [2, -1]> (x) }",
        "ML236"),
    "a scale of packed bytes that is one number": (
        "(uint8[1,4] x, int64 i, float s) => (y) "
        "{ y = com.microsoft.GatherBlockQuantized <block_size = 16> (x, i, s) }", "ML235"),
    "filters of another rank": (
        "(float[1,1,3] x, float[1,2,3,1] w) => (y) { y = ConvTranspose <output_shape = [2]> (x, w) }", "ML235"),
    "an output shape of two dimensions of three": (
        "(float[1,1,3,3,3] x, float[1,2,3,1,1] w) => (y) { y = ConvTranspose <output_shape = [2, 2]> (x, w) }", "ML227"
    ),
    "bags that begin at one number": (
        "(float[7,4] t, int64[5] i, int64 o) => (y) "
        '{ y = ATen <operator = "embedding_bag", mode = 0> (t, i, o) }', "ML235"),
    "a filled tensor of a negative size": (
        "() => (y) { y = ConstantFill <shape = [2, -3], value = 1.0> () }", "ML242"),
    "boxes without a height": (
        "(int64[2] n, int64[2] m) => (y) { y = org.openvinotoolkit.PriorBox <aspect_ratio = [0.0], flip = 1, "
        "min_size = [1.0], variance = [0.1]> (n, m) }", "ML235"),
    "branches of which one reads what could not be translated": (
        "(float[3] x, bool c) => (y) { k = If () y = If (c) <then_branch = t () => (float[3] p) { p = Mul (x, k) }, "
        "else_branch = e () => (float[3] q) { q = Neg (x) }> }", "ML227"),
    "a product of strings": (
        "(string[0,5] x, float[5,3] w) => (y) { y = com.microsoft.TransposeMatMul <transA = 1> (x, w) }", "ML240"),
    "pads of an odd number": (
        '(float[3,4] x) => (y) { n = Constant <value_ints = [2]> () y = Pad <mode = "wrap"> (x, n) }', "ML227"),
    "pads of some axes": (
        '(float[3,4] x) => (y) { n = Constant <value_ints = [2, 1]> () y = Pad <mode = "wrap"> (x, n) }', "ML227"),
    "pads of other axes": (
        "(float[3,4] x) => (y) { n = Constant <value_ints = [2, 1]> () a = Constant <value_ints = [0, 1]> () "
        "y = Pad (x, n, , a) }", "ML227"),
    "places that are one number": ("(float[3,4] x, int64 p, float[1] u) => (y) { y = ScatterND (x, p, u) }", "ML235"),
    "truths as indices": (
        "(int64[1,4] i, float[1,9] s) => (y) { b = Cast <to = 9> (i) "
        "y = com.microsoft.NGramRepeatBlock <ngram_size = 2> (b, s) }", "ML235"),
    "labels of four bits": ("(float[3,5] x, int4[3] l) => (y) { y = SoftmaxCrossEntropyLoss (x, l) }", "ML240"),
    "a branch with an input": (
        "(float[1] x) => (y) { c = Constant <value: tensor = bool {1}> () y = If (c) <else_branch = other () => "
        "(float[1] r) { r = Neg (x) }, then_branch = then (float[1] a) => (float[1] r) { r = Neg (x) }> }", "ML226"),
}


def code_of(model: onnx.ModelProto) -> str:
    with pytest.raises(MoLoopError) as caught:
        convert_model(model)
    assert caught.value.exit_code in (2, 3), str(caught.value)
    return caught.value.code


@pytest.mark.parametrize("name", NODES)
@pytest.mark.filterwarnings("ignore::mo_loop.errors.ConversionWarning")
def test_refused(name: str) -> None:
    text, code = NODES[name]
    model = parsed(f"main {text}", opset=21, **{"com.microsoft": 1, "ai.onnx.ml": 3})
    # the text has no weights: those of MatMulNBits are constants
    if name == "weights of other sizes":
        (entry,) = [each for each in model.graph.input if each.name == "w"]
        model.graph.input.remove(entry)
        model.graph.initializer.append(onnx.helper.make_tensor("w", onnx.TensorProto.UINT8, [6, 1, 1], range(6)))
    assert code_of(model) == code


def test_integers_padded_with_no_number() -> None:
    assert code_of(parsed("main (int64[4] x) => (y) { y = Pad <pads = [1, 1], value = nan> (x) }", opset=2)) == "ML235"


def test_a_constant_of_sizes_beyond_64_bits() -> None:
    model = parsed("main (float[2] x) => (y) { y = Add (x, k) }")
    model.graph.initializer.append(onnx.TensorProto(name="k", data_type=1, dims=[0, 2**62, 4], raw_data=b""))
    assert code_of(model) == "ML225"


@pytest.mark.parametrize("nodes", [
    "p = Unsqueeze (r, a) y = ReduceSum (p, a)", "p = Reshape (r, s) y = ReduceSum (p, a)",
    "p = Mul (r, c) y = Conv (p, w)",
])
def test_no_rule_of_the_runtime_asks_for_a_rank_that_is_unknown(nodes: str) -> None:
    """The last check refuses the tensor; its message has the ways to give the model the rank."""
    model = parsed(f"""main (float[N] x, int64[K] s, float[2,3,1,3] w) => (y)
      <int64[1] a = {{0}}, float[1,1,1,3] c = {{1, 2, 3}}> {{ r = Reshape (x, s) {nodes} }}""")
    assert code_of(model) == "ML323"


def test_scales_of_unknown_rank_are_a_vector() -> None:
    model = parsed("main (float[3,2] x, float[N] s) => (y) { y = Resize <mode = \"linear\"> (x, , s) }")
    model.graph.input[1].type.tensor_type.ClearField("shape")
    assert code_of(model) == "ML323"


def test_a_constant_that_is_a_type() -> None:
    model = parsed("main (float[2] x) => (y) { y = Add (x, k) }")
    node = onnx.helper.make_node("Constant", [], ["k"])
    node.attribute.add(name="value", type=onnx.AttributeProto.TYPE_PROTO)
    model.graph.node.insert(0, node)
    assert code_of(model) == "ML227"


def test_an_opset_beyond_32_bits() -> None:
    model = parsed("main (float[2] x) => (y) { y = Neg (x) }")
    model.opset_import.append(onnx.helper.make_opsetid("own", 2**40))
    assert code_of(model) == "ML221"


def test_an_attribute_that_is_no_text() -> None:
    node = onnx.helper.make_node("Cast", ["x"], ["y"], to=1, round_mode=b"\xff")
    assert not _has_default(node, "round_mode", listed("Cast"))
    assert _has_default(onnx.helper.make_node("Cast", ["x"], ["y"], round_mode="up"), "round_mode", listed("Cast"))


def test_a_constant_without_an_output() -> None:
    model = parsed("main (float[2] x) => (y) { k = Constant <value: tensor = float {1}> () y = Neg (x) }")
    del model.graph.node[0].output[:]
    convert_model(model)


def test_steps_that_follow_the_number_of_starts() -> None:
    """A Slice whose bounds and axes are known at run time only, without steps, is not an error."""
    text = "main (float[2,3,4] x, int64[N] s, int64[N] e, int64[N] a) => (y) { y = Slice (x, s, e, a) }"
    assert len(convert_model(parsed(text, opset=13)).graph.of(ops.Slice)) == 1


def test_a_form_is_declared_beside_the_input() -> None:
    assert form_of(Vector | Matrix) == Form((1, 2)) and form_of(AtLeast3) == Form(least=3)
    assert form_of(Needed | One) == Form(is_one=True, is_needed=True) and form_of(int | None) is None
    found = find("LSTM", 14)
    assert found is not None and list(found.forms)[:4] == ["x", "w", "r", "b"]


def test_a_version_without_an_input_has_its_forms() -> None:
    def function(x: Any, y: Vector = None, z: Matrix = None) -> Any:
        return x

    assert describe("Example", 1, function).forms == {"y": Form((1,)), "z": Form((2,))}


def test_what_needs_the_rank_of_a_tensor() -> None:
    for ask in (lambda: UNKNOWN.dims, lambda: UNKNOWN.known_rank, lambda: normalise_axis(0, None)):
        with pytest.raises(UnsupportedError, match=r"^ML314: "):
            ask()


def test_a_constant_in_another_form_has_as_many_elements() -> None:
    tensor = ArrayTensor(f32(1, 2))
    assert tensor.reshaped((1, 2)).shape == (1, 2)
    for wrong in (lambda: tensor.reshaped((3,)), lambda: viewed(tensor, u4, (17,))):
        with pytest.raises(TypeError_):
            wrong()
    assert viewed(tensor, u4, (16,)).shape == (16,)


def test_zero_points_of_another_shape_than_the_weights() -> None:
    text = "main (uint8[1,1,4,4] x) => (y) { y = ConvInteger (x, w, a, z) }"
    model = parsed(text, opset=13)
    arrays = {"w": np.ones((1, 1, 2, 2), np.uint8), "a": np.uint8(1), "z": np.ones((1, 1, 3, 3), np.uint8)}
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(each), name) for name, each in arrays.items())
    with pytest.raises(MoLoopError, match="ML232") as caught:
        convert_model(model)
    assert caught.value.exit_code == 2


def test_a_negative_number_of_batch_dimensions() -> None:
    text = "main (float[2,3] x, int64 i) => (y) { y = GatherND <batch_dims: int = -2> (x, i) }"
    with pytest.raises(MoLoopError, match="ML23") as caught:
        convert_model(parsed(text, opset=13))
    assert caught.value.exit_code == 2


def test_a_decay_of_another_rank() -> None:
    graph = Graph("main")
    shapes = ((1, 4, 2, 1, 3), (1, 4, 2, 3), (1, 4, 2, 3), (1, 4))
    queries, keys, values, decay = (parameter(graph, *shape) for shape in shapes)
    with pytest.raises(ModelError, match=r"^ML235: "):
        recurrence(queries, keys, values, decay, None, parameter(graph, 1, 2, 3, 3))


def test_a_permutation_that_is_a_tensor() -> None:
    model = parsed("main (float[N] s, float[2,3] x) => (y) { r = Transpose (x) y = Transpose (r) }", opset=13)
    for node, name in zip(model.graph.node, ("perm", "perm"), strict=True):
        node.attribute.append(onnx.helper.make_attribute(name, numpy_helper.from_array(np.int64([1, 0]))))
    assert list(_said(model.graph.node[0])) == []
    with pytest.raises(MoLoopError, match="ML227"):
        convert_model(model)


def test_a_zero_point_of_strings() -> None:
    graph = Graph("main")
    with pytest.raises(ModelError, match=r"^ML235: "):
        unless_zero(ops.Constant(np.array(["mul"], object), graph=graph).output)


def test_fewer_scales_than_blocks() -> None:
    assert spread(np.ones((2, 2)), 1, (2, 4), 2).shape == (2, 4)
    for scales in (np.ones((2, 1)), np.ones(2)):
        with pytest.raises(TypeError_, match=r"^ML235: "):
            spread(np.repeat(scales, 2, 0), 1, (2, 4), 2)


def test_rows_and_columns_of_another_number_of_layouts() -> None:
    graph = Graph("main")
    rows = ops.Constant(np.int32([[0, 1], [0, 1]]), graph=graph).output
    with pytest.raises(ModelError, match=r"^ML235: "):
        _layouts(rows, ops.Constant(np.int32([[0]]), graph=graph).output)


def test_a_tree_of_more_levels_than_parts() -> None:
    """Each level is some nodes of its own."""
    count = 5000
    below = np.minimum(np.arange(count) + 1, count - 1)
    none = np.zeros(count, np.int64)
    is_leaf = np.arange(count) == count - 1
    forest = Forest(none, none.astype(float), none, below, below, none.astype(bool), np.int64([0]), is_leaf)
    x = parameter(Graph("main"), 2, 3)
    with pytest.raises(TypeError_, match=r"^ML236: "):
        forest.leaves(x, x.dtype)
