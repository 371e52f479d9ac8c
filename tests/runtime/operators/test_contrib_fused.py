"""Operators of com.microsoft with fused parts: sums, activations, gates, normalisations, rotations, pools."""

import math
from typing import Any

import numpy as np
import onnx.reference
import pytest

from mo_loop.api import convert_model
from mo_loop.errors import MoLoopError
from tests.harness import check_node, every, node_model, refusal

# -- Operators of com.microsoft with fused sums, activations and gates, compared with numpy: they have no kernels for
# CPUs.


RNG = np.random.default_rng(7)


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def convolved(x: Any, w: Any, b: Any, attributes: dict[str, Any]) -> Any:
    model = node_model("Conv", {"x": x, "w": w, "b": b}, attributes, opset=17)
    return onnx.reference.ReferenceEvaluator(model).run(None, {"x": x, "w": w, "b": b})[0]


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def gelu(x: Any) -> Any:
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


ATTRIBUTES = {"pads": [1, 0, 1, 2], "strides": [2, 1], "group": 2}


def test_channels_last() -> None:
    """The transformers tool stores the filters with their channels last, too."""
    x, w, b = floats(2, 4, 6, 7), floats(6, 2, 3, 2), floats(6)
    check_node("com.microsoft::NhwcConv", {"x": x.transpose(0, 2, 3, 1), "w": w.transpose(0, 2, 3, 1), "b": b},
               ATTRIBUTES, opset=1, constants=("w", "b"), dynamic=["x"],
               expected=[convolved(x, w, b, ATTRIBUTES).transpose(0, 2, 3, 1)], atol=1e-4)


def test_channels_last_with_a_sum_and_an_activation() -> None:
    """The filters are those of Conv."""
    x, w, b = floats(2, 4, 6, 7), floats(6, 2, 3, 2), floats(6)
    y = convolved(x, w, b, ATTRIBUTES)
    z = floats(*y.shape)
    check_node("com.microsoft::NhwcFusedConv",
               {"x": x.transpose(0, 2, 3, 1), "w": w, "b": b, "z": z.transpose(0, 2, 3, 1)},
               {**ATTRIBUTES, "activation": "LeakyRelu", "activation_params": [0.25]}, opset=1, constants=("w", "b"),
               expected=[np.where(y + z < 0, (y + z) * np.float32(0.25), y + z).transpose(0, 2, 3, 1)], atol=1e-4)


def test_product_then_softmax() -> None:
    a, b = floats(3, 2, 5), floats(2, 5, 4)
    product = 0.5 * np.matmul(a.transpose(1, 0, 2), b)
    powers = np.exp(product - product.max(1, keepdims=True))
    check_node("com.microsoft::FusedMatMulActivation", {"a": a, "b": b},
               {"transBatchA": 1, "alpha": 0.5, "activation": "Softmax", "activation_axis": 1}, opset=1, dynamic=True,
               expected=[powers / powers.sum(1, keepdims=True)], atol=1e-5)


def test_product_of_nothing_is_zero() -> None:
    a, b = floats(0, 5), floats(0, 3)
    check_node("com.microsoft::TransposeMatMul", {"a": a, "b": b}, {"transA": 1}, opset=1, constants=("b",),
               expected=[np.zeros((5, 3), np.float32)])


@pytest.mark.parametrize("turned", [{"transA": 1}, {"transB": 1}])
def test_stack_of_constant_matrices(turned: dict[str, int]) -> None:
    """The runtime multiplies a constant of three dimensions with as many matrices only."""
    a, b = floats(4, 4), floats(3, 4, 4)
    left, right = a.T if "transA" in turned else a, b.transpose(0, 2, 1) if "transB" in turned else b
    check_node("com.microsoft::FusedMatMul", {"a": a, "b": b}, turned, opset=1, constants=("b",), dynamic=["a"],
               expected=[left @ right], atol=1e-5)


def test_product_then_gelu() -> None:
    x, w, bias = floats(2, 3, 4), floats(4, 5), floats(5)
    y = x @ w + bias
    expected = 0.5 * y * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))
    check_node("com.microsoft::GemmFastGelu", {"x": x, "w": w, "bias": bias}, opset=1, constants=("w", "bias"),
               expected=[expected.astype(np.float32)], atol=1e-5)


def test_sums() -> None:
    x, bias, skip = floats(2, 3, 8), floats(8), floats(2, 3, 8)
    check_node("com.microsoft::BiasAdd", {"x": x, "bias": bias, "skip": skip}, opset=1, dynamic=True,
               expected=[x + bias + skip])
    left, right = np.split(x + bias, 2, -1)
    check_node("com.microsoft::BiasSplitGelu", {"x": x, "bias": bias}, opset=1, dynamic=["x"],
               expected=[(left * gelu(right)).astype(np.float32)], atol=1e-5)


def test_sums_of_halves() -> None:
    x, bias, skip = (floats(*shape).astype(np.float16) for shape in ((2, 3, 8), (8,), (2, 3, 8)))
    total = x.astype(np.float32) + bias
    left, right = np.split(total, 2, -1)
    check_node("com.microsoft::BiasAdd", {"x": x, "bias": bias, "skip": skip}, opset=1, dynamic=True,
               expected=[(total + skip).astype(np.float16)], atol=1e-2)
    check_node("com.microsoft::BiasSplitGelu", {"x": x, "bias": bias}, opset=1, dynamic=["x"],
               expected=[(left * gelu(right)).astype(np.float16)], atol=1e-2)


@pytest.mark.parametrize(("axis", "inner", "shape"), [(3, 1, (2, 1, 1, 5)), (2, 0, (1, 1, 4, 5)), (3, 0, (4, 5))])
def test_masked_softmax(axis: int, inner: int, shape: tuple[int, ...]) -> None:
    """All dimensions from the axis on are normalised together."""
    data, bias = floats(2, 3, 4, 5), floats(*shape)
    powers = np.exp(data + bias)
    check_node("com.microsoft::BiasSoftmax", {"data": data, "bias": bias}, {"axis": axis, "is_inner_broadcast": inner},
               opset=1, dynamic=["data"], expected=[powers / powers.sum(tuple(range(axis, 4)), keepdims=True)],
               atol=1e-5)


def test_nothing_is_dropped_without_training() -> None:
    data, bias, residual = floats(2, 3), floats(3), floats(2, 3)
    check_node("com.microsoft::BiasDropout",
               {"data": data, "bias": bias, "residual": residual, "ratio": np.float32(0.5)}, opset=1, outputs=2,
               constants=("ratio",), expected=[data + bias + residual, np.ones((2, 3), bool)])


@pytest.mark.parametrize("is_split", [False, True])
def test_gated_linear_unit(is_split: bool) -> None:
    """The limit bounds the gate from above only."""
    both = 3 * floats(2, 3, 8)
    gate, up = np.split(both, 2, -1)
    low, high = np.minimum(gate, 2), np.clip(up, -2, 2)
    expected = low * sigmoid(1.7 * low) * (high + 1)
    check_node("com.microsoft::SwiGLU", {"gate": gate, "up": up} if is_split else {"gate": both},
               {"activation_alpha": 1.7, "activation_beta": 1.0, "limit": 2.0}, opset=1, dynamic=True,
               expected=[expected.astype(np.float32)], atol=1e-5)


def test_gate_with_a_projection() -> None:
    x, y, gate, weight = floats(2, 3, 4), floats(2, 3, 4), floats(2, 3, 5), floats(5, 1)
    check_node("com.microsoft::GatedAdd", {"x": x, "y": y, "gate": gate, "weight": weight}, opset=1,
               expected=[x + y * sigmoid(gate @ weight)], atol=1e-5)


def test_unknown_activation() -> None:
    inputs = {"a": floats(2, 3), "b": floats(3, 4)}
    model = node_model("com.microsoft::FusedGemm", inputs, {"activation": "Swish9"}, opset=1)
    assert "the attribute 'activation' is 'Swish9', and must be one of Affine, Celu" in str(refusal(model))


# -- Operators of com.microsoft that fuse normalisations. Those without a kernel for CPUs are compared with numpy


def group_norm(x: Any, gamma: Any, beta: Any, groups: int, epsilon: float, silu: int) -> Any:
    """Over channels in the last dimension."""
    rows = x.reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
    mean, variance = rows.mean((1, 3), keepdims=True), rows.var((1, 3), keepdims=True)
    y = ((rows - mean) / np.sqrt(variance + epsilon)).reshape(x.shape) * gamma + beta
    return y / (1 + np.exp(-y)) if silu else y


@pytest.mark.parametrize("silu", [0, 1])
@pytest.mark.parametrize("last", [0, 1])
def test_groups_of_channels(last: int, silu: int) -> None:
    x, gamma, beta = floats(2, 3, 5, 6), floats(6), floats(6)
    y = group_norm(x, gamma, beta, 2, 1e-3, silu)
    to_file = (lambda array: array) if last else (lambda array: array.transpose(0, 3, 1, 2))
    check_node("com.microsoft::GroupNorm", {"x": to_file(x), "gamma": gamma, "beta": beta},
               {"channels_last": last, "activation": silu, "groups": 2, "epsilon": 1e-3}, opset=1, dynamic=["x"],
               constants=("gamma", "beta"), expected=[to_file(y)], atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 3, 5, 6), (2, 1, 1, 6), (2, 6)])
def test_sum_before_groups(shape: tuple[int, ...]) -> None:
    """The skip has every element, or one number for each channel of each sample."""
    x, gamma, beta, skip, bias = floats(2, 3, 5, 6), floats(6), floats(6), floats(*shape), floats(6)
    total = x + (skip.reshape(2, 1, 1, 6) if skip.ndim == 2 else skip) + bias
    check_node("com.microsoft::SkipGroupNorm", {"x": x, "gamma": gamma, "beta": beta, "skip": skip, "bias": bias},
               {"activation": 1, "groups": 3}, opset=1, outputs=2, constants=("gamma", "beta", "bias"),
               expected=[group_norm(total, gamma, beta, 3, 1e-5, 1), total], atol=1e-5)


def test_sum_before_groups_of_leading_channels() -> None:
    x, gamma, beta, skip, bias = floats(2, 3, 5, 6), floats(6), floats(6), floats(2, 6), floats(6)
    total = x + skip.reshape(2, 1, 1, 6) + bias
    check_node("com.microsoft::SkipGroupNorm",
               {"x": x.transpose(0, 3, 1, 2), "gamma": gamma, "beta": beta, "skip": skip, "bias": bias},
               {"activation": 0, "groups": 2, "channels_last": 0}, opset=1, outputs=2, dynamic=["x"],
               expected=[each.transpose(0, 3, 1, 2) for each in (group_norm(total, gamma, beta, 2, 1e-5, 0), total)],
               atol=1e-5)


def test_statistics_are_outputs() -> None:
    """ONNX Runtime's kernel for CPUs leaves them out."""
    x, skip, gamma = floats(2, 3, 8), floats(2, 3, 8), floats(8)
    total = x + skip
    mean, deviation = total.mean(-1, keepdims=True), np.sqrt(total.var(-1, keepdims=True) + 1e-6)
    y = (total - mean) / deviation * gamma
    inputs, attributes = {"x": x, "skip": skip, "gamma": gamma}, {"epsilon": 1e-6}
    check_node("com.microsoft::SkipLayerNormalization", inputs, attributes, opset=1, outputs=4,
               expected=[y, mean, 1 / deviation, total], atol=1e-5)
    root = np.sqrt((total**2).mean(-1, keepdims=True) + 1e-6)
    check_node("com.microsoft::SkipSimplifiedLayerNormalization", inputs, attributes, opset=1, outputs=4,
               expected=[total / root * gamma, np.zeros_like(root), 1 / root, total], atol=1e-5)


def test_embeddings_lack_a_scale() -> None:
    ids, table = np.zeros((1, 2), np.int32), floats(3, 4)
    inputs = {"ids": ids, "kinds": None, "words": table, "places": table, "types": None, "gamma": None, "beta": table}
    model = node_model("com.microsoft::EmbedLayerNormalization", inputs, opset=1, outputs=2)
    with pytest.raises(MoLoopError, match=r"EmbedLayerNormalization .*the input 'gamma' is absent"):
        convert_model(model)


def test_quantised_embeddings_count_the_words() -> None:
    """The mask has other numbers than 0 and 1: the kernel counts the 1."""
    bytes_of = lambda *shape: RNG.integers(0, 256, shape).astype(np.uint8)  # noqa: E731
    tables = {"words": bytes_of(7, 4), "places": bytes_of(5, 4), "kinds": None, "gamma": bytes_of(4)}
    given: dict[str, Any] = {"ids": RNG.integers(0, 7, (2, 3)).astype(np.int32), "segments": None, **tables}
    given |= {"beta": bytes_of(4), "mask": np.array([[1, 1, 0], [1, 2, 0]], np.int32)}
    names = ("words", "places", "kinds", "gamma", "beta")
    given |= {f"{each}_scale": np.array(0.02 + k / 100, np.float32) for k, each in enumerate(names)}
    given |= {f"{each}_zero": np.array(120 + 9 * k, np.uint8) for k, each in enumerate(names)}
    given |= {"kinds_scale": None, "kinds_zero": None}
    constants = [each for each, array in given.items() if array is not None and each not in ("ids", "mask")]
    _, counts = check_node("com.microsoft::QEmbedLayerNormalization", given, opset=1, outputs=2, constants=constants,
                           dynamic=["ids", "mask"])
    assert counts.tolist() == [2, 1]


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("shape", [(0, 3), (2, 0)], ids=["no sequence", "no token"])
def test_parts_of_rows_that_do_not_exist(shape: tuple[int, int], dynamic: bool) -> None:
    """The last dimension is divided into parts in a tensor without elements too."""
    x, none = floats(*shape, 12), np.zeros((*shape, 12), np.float32)
    check_node("com.microsoft::BranchwiseRMSNorm", {"x": x, "scale": floats(4)}, {"num_branches": 3}, opset=1,
               dynamic=dynamic, expected=[none])
    check_node("com.microsoft::GatedRMSNorm", {"x": x, "scale": floats(4), "gate": x}, opset=1, dynamic=dynamic,
               expected=[none])
    mixed = {"streams": x, "gates": floats(*shape, 12)}
    check_node("com.microsoft::HyperConnectionPreMix", mixed, {"num_branches": 3}, opset=1, dynamic=dynamic,
               expected=[none[..., :4]])
    added = {"streams": x, "block": floats(*shape, 4), "gates": floats(*shape, 3), "mix": floats(*shape, 3, 3)}
    check_node("com.microsoft::HyperConnectionPostMix", added, {"num_branches": 3}, opset=1, dynamic=dynamic,
               expected=[none])


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_groups_of_halves(dynamic: bool) -> None:
    x, skip = floats(2, 3, 5, 6).astype(np.float16), floats(2, 3, 5, 6).astype(np.float16)
    gamma, beta, wide = floats(6), floats(6), x.astype(np.float32)
    given, total = {"gamma": gamma, "beta": beta}, wide + skip
    attributes = {"activation": 1, "groups": 2}
    check_node("com.microsoft::GroupNorm", {"x": x, **given}, attributes, opset=1, dynamic=dynamic,
               expected=[group_norm(wide, gamma, beta, 2, 1e-5, 1).astype(np.float16)], atol=2e-2)
    check_node("com.microsoft::SkipGroupNorm", {"x": x, **given, "skip": skip}, attributes, opset=1, outputs=2,
               dynamic=dynamic, atol=2e-2,
               expected=[each.astype(np.float16) for each in (group_norm(total, gamma, beta, 2, 1e-5, 1), total)])


# -- Rotary embeddings, and the attention operators' other small parts


dynamic_or_not = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])


@pytest.mark.parametrize("interleaved", [0, 1])
@dynamic_or_not
def test_positions_from_the_first_on(interleaved, dynamic):
    inputs = {"x": floats(2, 3, 16), "at": np.array([4], np.int64), "cos": floats(9, 4), "sin": floats(9, 4)}
    attributes = {"interleaved": interleaved, "num_heads": 2}
    check_node("com.microsoft::RotaryEmbedding", inputs, attributes, opset=1, dynamic=dynamic)


@dynamic_or_not
def test_a_part_of_each_head(dynamic):
    at = RNG.integers(0, 9, (2, 3))
    inputs = {"x": floats(2, 5, 3, 10), "at": at, "cos": floats(9, 4), "sin": floats(9, 4)}
    attributes = {"num_heads": 5, "rotary_embedding_dim": 8}
    check_node("com.microsoft::RotaryEmbedding", inputs, attributes, opset=1, dynamic=dynamic)


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("sections", [[3, 2, 1], [1, 2, 3], [1, 4, 1], [0, 6, 0], [2, 2, 2]])
@dynamic_or_not
def test_positions_of_three_kinds(layout, sections, dynamic):
    at = RNG.integers(0, 9, (3, 2, 3))
    inputs = {"x": floats(2, 3, 24), "at": at, "cos": floats(9, 6), "sin": floats(9, 6)}
    attributes = {"mrope_section": sections, "mrope_layout": layout, "num_heads": 2}
    check_node("com.microsoft::MRotaryEmbedding", inputs, attributes, opset=1, dynamic=dynamic)


def test_gemma():
    emb, tensors = floats(2, 3, 8), [floats(2, 4, 3, 8).astype(np.float16) for _ in range(4)]
    cos, sin = (each(emb).astype(np.float16)[:, None] for each in (np.cos, np.sin))
    q, q_rot, k, k_rot = tensors
    inputs = {"emb": emb, "q": q, "q_rot": q_rot, "k": k, "k_rot": k_rot}
    expected = [q * cos + q_rot * sin, k * cos + k_rot * sin]
    check_node("com.microsoft::GemmaRotaryEmbedding", inputs, opset=1, outputs=["a", "b"], expected=expected, rtol=2e-3,
               atol=2e-3)


@dynamic_or_not
def test_repeated_tokens(dynamic):
    inputs = {"ids": np.array([[1, 2, 3, 1, 2], [2, 2, 2, 2, 2]]), "scores": floats(2, 5)}
    check_node("com.microsoft::NGramRepeatBlock", inputs, {"ngram_size": 3}, opset=1, dynamic=dynamic)


# -- MaxpoolWithMask: a window's row ends at its first masked element


X = np.array([[[3, 1, 4, 1, 5, 9, 2, np.nan]]], np.float32)
MASK = np.array([[[1, 1, 0, 1, 1, 1, 1, 1]]], np.int32)
LOWEST = np.finfo(np.float32).min


@dynamic_or_not
def test_rows_end_at_the_mask(dynamic) -> None:
    """A window that starts at a masked element is empty, for any following elements; NaN is never the largest."""
    (y,) = check_node("com.microsoft::MaxpoolWithMask", {"x": X, "mask": MASK}, {"kernel_shape": [3]}, opset=1,
                      dynamic=dynamic)
    assert y.ravel().tolist() == [3, 1, LOWEST, 9, 9, 9]


@dynamic_or_not
def test_rows_of_images_end_alone(dynamic) -> None:
    """Each row of a window ends at its own masked element; of the first element of an image the mask is not read."""
    x = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    mask = np.array([[[[0, 1, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1]]]], np.int32)
    attributes = {"kernel_shape": [2, 2], "strides": [1, 2], "pads": [0, 0, 1, 0]}
    inputs = {"x": x, "mask": mask}
    (y,) = check_node("com.microsoft::MaxpoolWithMask", inputs, attributes, opset=1, dynamic=dynamic)
    assert y[0, 0].tolist() == [[5, 3], [5, 11], [LOWEST, 11]]


@dynamic_or_not
def test_masks_of_channels(dynamic) -> None:
    """The kernel of ONNX Runtime takes the mask of a channel from its first element modulo the number of masks on."""
    rng = np.random.default_rng(3)
    x, mask = rng.standard_normal((2, 3, 7)).astype(np.float32), (rng.random((1, 3, 7)) > 0.3).astype(np.int32)
    check_node("com.microsoft::MaxpoolWithMask", {"x": x, "mask": mask}, {"kernel_shape": [3]}, opset=1,
               dynamic=dynamic)


# -- Pooling of images whose channels are last, and regions


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_padding_is_smaller_than_all_integers(kind):
    """The least integer is the largest of a window that reaches into the padding; 0 would be larger for int8."""
    x = np.full((1, 3, 3, 2), np.iinfo(kind).min, kind)
    x[0, 1, 1] = [5, 6]
    attributes = {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1], "strides": [2, 2]}
    (y,) = check_node("com.microsoft::NhwcMaxPool", {"x": x}, attributes, opset=1, dynamic=True)
    least = np.iinfo(kind).min
    assert y[0, ..., 0].tolist() == [[least, least], [least, 5]]
    assert y[0, ..., 1].tolist() == [[least, least], [least, 6]]


@every(mode=["nearest", "bilinear"], dynamic=[False, True], seed=[0, 1, 2, 3])
def test_places_of_a_crop_are_rounded_as_by_onnx_runtime(mode, dynamic, seed):
    """At halves, at borders, and for one row: the last place is computed from the end alone."""
    rng = np.random.default_rng(seed)
    height, width = (int(each) for each in rng.integers(1, 12, 2))
    x, rois = rng.standard_normal((2, 2, height, width)), np.round(rng.uniform(-0.1, 1.1, (400, 4)) * 20) / 20
    inputs = {"x": x.astype(np.float32), "rois": rois.astype(np.float32),
              "images": rng.integers(0, 2, 400).astype(np.int32), "size": rng.integers(1, 8, 2).astype(np.int32)}
    check_node("com.microsoft::CropAndResize", inputs, {"mode": mode, "extrapolation_value": -7.0}, opset=1,
               dynamic=dynamic)
