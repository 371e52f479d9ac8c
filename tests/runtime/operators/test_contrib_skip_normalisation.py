"""Operators of com.microsoft that fuse normalisations. Those without a kernel for CPUs are compared with numpy."""

from typing import Any

import numpy as np
import pytest

from mo_loop.api import convert_model
from mo_loop.errors import MoLoopError
from tests.harness import check_node, node_model

RNG = np.random.default_rng(5)


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


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
