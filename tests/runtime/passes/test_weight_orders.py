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
from tests.cases import read_cases
from tests.harness import check, floats, parsed, with_weights

# -- Weights whose bytes two nodes read in both orders: the runtime packs them once, and uses the result for both


N, K = 12, 8


def bin_of(model: onnx.ModelProto, folder: Path, without: bool = False) -> bytes:
    config = PassConfig()
    if without:
        config.disable("SeparateWeightOrders")
    save_model(convert_model(model, config=config), folder / "model.xml")
    return (folder / "model.bin").read_bytes()


# -- matrix products


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
    table = np.random.default_rng(0).standard_normal((rows, WIDTH)).astype(np.float32)
    held = {"v": table, "w": np.ascontiguousarray(table.T)}
    return with_weights(text, **{name: held[name] for name in names})


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
    return with_weights(model, w=floats(*batch, INNER, COLUMNS).astype(TYPES[kind]))


@pytest.mark.parametrize("kind", TYPES)
def test_the_bin_holds_them_transposed(kind: str, tmp_path: Path) -> None:
    model = product("B,160", kind=kind)
    save_model(convert_model(model), tmp_path / "model.xml")
    weights = numpy_helper.to_array(model.graph.initializer[0])
    assert (tmp_path / "model.bin").read_bytes() == weights.T.tobytes()
    assert 'transpose_b="true"' in (tmp_path / "model.xml").read_text("utf-8")


read_cases(globals())
