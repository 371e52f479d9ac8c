"""Weights that are stored in another order, or once for several readers."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mo_loop.api import convert_model, save_model
from mo_loop.text import to_text
from mo_loop.transforms.config import PassConfig
from tests.harness import check, floats, parsed

# -- Weights whose bytes two nodes read in both orders: the runtime packs them once, and uses the result for both


N, K = 12, 8


def with_weights(text: str, opset: int = 18, **weights: Any) -> onnx.ModelProto:
    """A model with initializers; one that has no array is a TensorProto."""
    made = parsed(text, opset)
    for name, each in weights.items():
        tensor = each if isinstance(each, TensorProto) else numpy_helper.from_array(each, name)
        made.graph.initializer.append(tensor)
    return made


def bin_of(model: onnx.ModelProto, folder: Path, without: bool = False) -> bytes:
    config = PassConfig()
    if without:
        config.disable("SeparateWeightOrders")
    save_model(convert_model(model, config=config), folder / "model.xml")
    return (folder / "model.bin").read_bytes()


# -- matrix products


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("order", [("Gemm<transB=1>", "MatMul"), ("MatMul", "Gemm<transB=1>")], ids=["first", "last"])
def test_autoencoder_with_one_square_matrix(order: tuple[str, str], halves: bool) -> None:
    """y = tanh(x W^T) W"""
    first, last = order
    text = f"main (float[B,8] x) => (float[B,8] y) {{ h = {first}(x, w) t = Tanh(h) y = {last}(t, w) }}"
    model = with_weights(text, w=floats(K, K) / 4)
    tolerance: dict[str, Any] = {"rtol": 1e-2, "atol": 1e-2} if halves else {}
    check(model, {"x": floats(3, K, seed=1)}, {"x": floats(1, K, seed=2)}, compress_to_fp16=halves, **tolerance)


def test_autoencoder_with_fewer_inner_values(tmp_path: Path) -> None:
    """The sizes of both products differ, so the runtime packs the weights for each; the .bin holds them once."""
    text = "main (float[B,8] x) => (float[B,8] y) { h = Gemm<transB=1>(x, w) t = Tanh(h) y = MatMul(t, w) }"
    model = with_weights(text, w=floats(5, K))
    check(model, {"x": floats(3, K, seed=1)})
    assert bin_of(model, tmp_path) == bin_of(model, tmp_path, without=True)


BOTH = """main (float[B,8] x, float[B,8] z) => (float[B,12] y, float[B,12] u) {
  y = Gemm<transB=1>(x, v) u = MatMul(z, w) }"""


def test_same_bytes_of_other_shapes(tmp_path: Path) -> None:
    weights = floats(N, K)
    model = with_weights(BOTH, v=weights, w=weights.reshape(K, N))
    check(model, {"x": floats(2, K, seed=1), "z": floats(2, K, seed=2)})
    held = bin_of(model, tmp_path)
    assert weights.tobytes() in held and weights.reshape(K, N).T.tobytes() in held


def test_large_weights_that_an_embedding_keeps_in_this_order() -> None:
    """TransposeWeights leaves them as they are."""
    text = """main (float[B,160] x, float[B,160] z, int64[3] i) => (float[B,240] y, float[B,240] u, float[3,240] e) {
      y = Gemm<transB=1>(x, v) u = MatMul(z, w) e = Gather(w, i) }"""
    weights = floats(240, 160)
    model = with_weights(text, v=weights, w=weights.reshape(160, 240))
    check(model, {"x": floats(2, 160, seed=1), "z": floats(2, 160, seed=2), "i": np.array([0, 7, 159])}, atol=1e-4)


def test_weights_that_are_each_other_transposed() -> None:
    """The second product reads W^T instead, and the third one has read its bytes in the other order."""
    text = """main (float[B,8] a, float[B,8] b, float[B,8] c) => (float[B,8] x, float[B,8] y, float[B,8] z) {
      x = Gemm<transB=1>(a, w) y = MatMul(b, w) z = MatMul(c, t) }"""
    weights = floats(K, K)
    model = with_weights(text, w=weights, t=np.ascontiguousarray(weights.T))
    check(model, {name: floats(2, K, seed=seed) for seed, name in enumerate("abc", 1)})


@pytest.mark.parametrize("transposed", ["v", "w"])
def test_leading_dimension_of_one(transposed: str) -> None:
    other = "w" if transposed == "v" else "v"
    order = "1, 0" if transposed == "v" else "0, 2, 1"
    text = f"""main (float[3,2,8] x, float[3,2,8] z) => (float[3,2,12] y, float[3,2,12] u) {{
      t = Transpose<perm=[{order}]>({transposed}) y = MatMul(x, t) u = MatMul(z, {other}) }}"""
    weights, last = floats(N, K), (K, N)
    shapes = {"v": (N, K), "w": (1, *last)} if transposed == "v" else {"v": last, "w": (1, N, K)}
    model = with_weights(text, **{name: weights.reshape(shape) for name, shape in shapes.items()})
    check(model, {"x": floats(3, 2, K, seed=1), "z": floats(3, 2, K, seed=2)})


@pytest.mark.parametrize("batch", [(1,), (1, 1), (3,), (2, 3)], ids=str)
def test_stacks_of_matrices(batch: tuple[int, ...]) -> None:
    """Of a product of a stack the runtime of some releases keeps the weights, too."""
    order = ", ".join(map(str, [*range(len(batch)), len(batch) + 1, len(batch)]))
    sizes = ",".join(map(str, batch))
    text = f"""main (float[{sizes},2,8] x, float[{sizes},2,8] z) => (float[{sizes},2,12] y, float[{sizes},2,12] u) {{
      t = Transpose<perm=[{order}]>(v) y = MatMul(x, t) u = MatMul(z, w) }}"""
    weights = floats(*batch, N, K)
    model = with_weights(text, v=weights, w=weights.reshape(*batch, K, N))
    check(model, {"x": floats(*batch, 2, K, seed=1), "z": floats(*batch, 2, K, seed=2)})


# -- bodies


def test_body_of_a_loop() -> None:
    text = """main (float[2,8] x, int64 n) => (float[2,8] y, float[2,8] u) {
      cond = Constant<value = bool {1}>()
      y = Loop (n, cond, x) <body = step (int64 i, bool c, float[2,8] a) => (bool d, float[2,8] b) {
        d = Identity(c) m = MatMul(a, w) b = Sin(m) }>
      u = Gemm<transB=1>(x, w) }"""
    check(with_weights(text, w=floats(K, K)), *({"x": floats(2, K, seed=1), "n": np.array(n)} for n in (3, 1)))


def test_slices_of_a_loop() -> None:
    text = """main (float[5,2,8] x) => (float[5,2,8] y, float[5,2,8] u) {
      y, u = Scan<num_scan_inputs = 1, body = step (float[2,8] a) => (float[2,8] b, float[2,8] c) {
        r = ReduceMax<keepdims = 1>(a) s = Mul(a, r) b = MatMul(s, w) t = Sin(b) c = Gemm<transB=1>(t, w) }>(x) }"""
    check(with_weights(text, w=floats(K, K)), {"x": floats(5, 2, K, seed=1)})


@pytest.mark.parametrize("outside", [False, True])
def test_branches(outside: bool) -> None:
    text = f"""main (float[2,8] x, bool c) => (float[2,8] y, float[2,8] u) {{
      y = If (c) <then_branch = a () => (float[2,8] p) {{ p = Gemm<transB=1>(x, w) }},
                  else_branch = b () => (float[2,8] q) {{ q = MatMul(x, w) }}>
      u = {"MatMul(x, w)" if outside else "Tanh(x)"} }}"""
    check(with_weights(text, w=floats(K, K)), *({"x": floats(2, K, seed=1), "c": np.array(c)} for c in (True, False)))


# -- quantised weights


def quantised(axis: int, block: int = 0) -> str:
    """The products of BOTH with scales along `axis` of the first weights, and along the other one of the second."""
    options = [f"axis = {each}{f', block_size = {block}' if block else ''}" for each in (axis, 1 - axis)]
    return f"""main (float[B,8] x, float[B,8] z) => (float[B,12] y, float[B,12] u) {{
      p = DequantizeLinear<{options[0]}>(v, s) y = Gemm<transB=1>(x, p)
      q = DequantizeLinear<{options[1]}>(w, r) u = MatMul(z, q) }}"""


def weights_of(kind: str) -> tuple[TensorProto, TensorProto]:
    """The same numbers as [N, K] and as [K, N]."""
    numbers = np.random.default_rng(0).integers(-8, 8, (N, K)).astype(np.int8 if kind == "int8" else ml_dtypes.int4)
    return numpy_helper.from_array(numbers, "v"), numpy_helper.from_array(numbers.reshape(K, N), "w")


@pytest.mark.parametrize("kind", ["int8", "int4"])
@pytest.mark.parametrize("block", [0, 4], ids=["columns", "blocks"])
def test_quantised_weights(kind: str, block: int) -> None:
    v, w = weights_of(kind)
    scales = np.abs(floats(N, K // block) if block else floats(N)) / 8 + np.float32(0.1)
    model = with_weights(
        quantised(1 if block else 0, block), opset=21, v=v, w=w, s=scales, r=np.ascontiguousarray(scales.T),
    )
    check(model, {"x": floats(2, K, seed=1), "z": floats(2, K, seed=2)}, rtol=1e-3, atol=1e-3)


def test_activations_of_8_bits() -> None:
    v, w = weights_of("int8")
    text = """main (float[B,8] x, float[B,8] z) => (float[B,12] y, float[B,12] u) {
      a = QuantizeLinear(x, t, o) b = DequantizeLinear(a, t, o) p = DequantizeLinear<axis = 0>(v, s)
      pt = Transpose<perm = [1, 0]>(p) y = MatMul(b, pt)
      c = QuantizeLinear(z, t, o) d = DequantizeLinear(c, t, o) q = DequantizeLinear<axis = 1>(w, s)
      u = MatMul(d, q) }"""
    scales, step = np.full(N, 0.1, np.float32), np.float32(0.03)
    model = with_weights(text, opset=21, v=v, w=w, s=scales, t=np.array(step), o=np.array(0, np.int8))
    check(model, {"x": floats(2, K, seed=1), "z": floats(2, K, seed=2)}, rtol=1e-3, atol=1e-3)


# -- convolutions


def convolutions(channels: tuple[int, int], groups: int = 1, dims: int = 2, one: bool = True) -> onnx.ModelProto:
    """Conv and ConvTranspose of one constant, or of two with the same bytes."""
    out, inner = channels
    kernel = [3] * dims
    wide = [1, inner * groups, *[6] * dims]
    nodes = [
        helper.make_node("Conv", ["x", "v"], ["y"], group=groups),
        helper.make_node("ConvTranspose", ["z", "v" if one else "w"], ["u"], group=groups),
    ]
    filters = floats(groups * out, inner, *kernel)
    held = {"v": filters, "w": filters.reshape(groups * inner, out, *kernel)}
    graph = helper.make_graph(
        nodes, "main", [helper.make_tensor_value_info(name, TensorProto.FLOAT, wide) for name in "xz"],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "yu"],
        [numpy_helper.from_array(held[name], name) for name in ("v" if one else "vw")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


@pytest.mark.parametrize(
    ("channels", "groups", "dims", "one"),
    [((4, 4), 1, 2, True), ((4, 4), 1, 3, True), ((4, 4), 1, 1, True), ((3, 5), 1, 2, False), ((4, 4), 3, 2, True),
     ((4, 4), 3, 1, True), ((1, 1), 6, 2, True)],
    ids=["square", "volumes", "line", "other shapes", "groups", "groups of a line", "each channel"],
)
def test_convolution_and_its_transpose(channels: tuple[int, int], groups: int, dims: int, one: bool) -> None:
    shape = (1, channels[1] * groups, *[6] * dims)
    feeds = {"x": floats(*shape, seed=1), "z": floats(*shape, seed=2)}
    check(convolutions(channels, groups, dims, one), feeds, atol=1e-4)


def test_convolution_and_its_transpose_in_half_precision() -> None:
    feeds = {"x": floats(1, 4, 6, 6, seed=1), "z": floats(1, 4, 6, 6, seed=2)}
    check(convolutions((4, 4)), feeds, compress_to_fp16=True, rtol=1e-2, atol=5e-2)


def test_filters_are_held_once(tmp_path: Path) -> None:
    model = convolutions((4, 4))
    assert bin_of(model, tmp_path).count(numpy_helper.to_array(model.graph.initializer[0]).tobytes()) == 1


# -- Language models with one matrix for embedding and scores: it is stored once, for each form of the model


VOCABULARY, WIDTH = 90, 40
TOKENS = {"i": np.array([3, 1, 4, 1])}
BODY = """main (int64[4] i, int64 n) => (float[a, b, c] y) {{
  x0 = Gather(v, i)
  x, y = Loop (n, "", x0) <body = step (int64 k, bool c, float[4, 40] x) => (bool d, float[4, 40] z, float[a, b] s) {{
    d = Identity(c)  z = Relu(x)
    {product}
  }}>
}}"""
FORMS = {
    "a copy": ("main (int64[4] i) => (float[a, b] y) { x = Gather(v, i) y = MatMul(x, w) }", ("v", "w")),
    "a Transpose": (
        "main (int64[4] i) => (float[a, b] y) { x = Gather(v, i) t = Transpose<perm=[1, 0]>(v) y = MatMul(x, t) }",
        ("v",),
    ),
    "Gemm": ("main (int64[4] i) => (float[a, b] y) { x = Gather(v, i) y = Gemm<transB=1>(x, v) }", ("v",)),
    "a copy in a loop": (BODY.format(product="s = MatMul(x, w)"), ("v", "w")),
    "a Transpose in a loop": (BODY.format(product="t = Transpose<perm=[1, 0]>(v)\n s = MatMul(x, t)"), ("v",)),
}


def model(form: str, rows: int = VOCABULARY) -> onnx.ModelProto:
    """A model of one of the FORMS with a table of `rows` x WIDTH."""
    text, names = FORMS[form]
    made = parsed(text)
    table = np.random.default_rng(0).standard_normal((rows, WIDTH)).astype(np.float32)
    held = {"v": table, "w": np.ascontiguousarray(table.T)}
    made.graph.initializer.extend(numpy_helper.from_array(held[name], name) for name in names)
    return made


@pytest.mark.parametrize("rows", [VOCABULARY, WIDTH], ids=["matrix", "square"])
@pytest.mark.parametrize("form", FORMS)
def test_the_table_is_stored_once(form: str, rows: int, tmp_path: Path) -> None:
    feeds: dict[str, Any] = TOKENS | ({"n": np.array(2)} if "loop" in form else {})
    source = model(form, rows)
    check(source, feeds)
    converted = convert_model(source)
    text = to_text(converted.graph)
    assert "transpose_b: true" in text and "Transpose(" not in text
    save_model(converted, tmp_path / "model.xml")
    assert (tmp_path / "model.bin").stat().st_size < 1.1 * 4 * rows * WIDTH


# -- Weights [K, N] are written as [N, K]: the numbers for tensors of all ranks, and the bytes of the .bin


INNER, COLUMNS = 160, 240
TYPES = {"float": np.float32, "float16": np.float16}


def product(shape: str, batch: tuple[int, ...] = (), kind: str = "float") -> onnx.ModelProto:
    model = parsed(f"main ({kind}[{shape}] x) => ({kind} y) {{ y = MatMul(x, w) }}")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model.graph.initializer.append(numpy_helper.from_array(floats(*batch, INNER, COLUMNS).astype(TYPES[kind]), "w"))
    return model


@pytest.mark.parametrize("batch", [(), (1,), (1, 1)], ids=str)
@pytest.mark.parametrize("shape", [(INNER,), (3, INNER), (2, 3, INNER), (2, 0, INNER)], ids=str)
def test_ranks(shape: tuple[int, ...], batch: tuple[int, ...]) -> None:
    sizes = ",".join([*(f"d{axis}" for axis in range(len(shape) - 1)), str(INNER)])
    check(product(sizes, batch), {"x": floats(*shape, seed=1)})


def test_half_precision() -> None:
    check(product("B,160", kind="float16"), {"x": floats(3, INNER).astype(np.float16)}, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("kind", TYPES)
def test_the_bin_holds_them_transposed(kind: str, tmp_path: Path) -> None:
    model = product("B,160", kind=kind)
    save_model(convert_model(model), tmp_path / "model.xml")
    weights = numpy_helper.to_array(model.graph.initializer[0])
    assert (tmp_path / "model.bin").read_bytes() == weights.T.tobytes()
    assert 'transpose_b="true"' in (tmp_path / "model.xml").read_text("utf-8")


def test_compressed_to_half_precision() -> None:
    check(product("B,160"), {"x": floats(3, INNER)}, compress_to_fp16=True, rtol=1e-2, atol=1e-2)
