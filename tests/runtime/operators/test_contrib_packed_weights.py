"""Matrix products and lookups with packed weights."""

from pathlib import Path

import numpy as np
import pytest

from mo_loop import convert_model, save_model
from mo_loop.errors import ConversionErrors
from tests.harness import check_node, node_model

RANDOM = np.random.default_rng(17)


def bits_of(packed, bits, length):
    """The integers in bytes, the first in the lowest bits."""
    shifts = np.arange(8 // bits) * bits
    cells = (packed[..., None] >> shifts) & ((1 << bits) - 1)
    return cells.reshape(*packed.shape[:-1], -1)[..., :length]


def product(a, b, scales, zero, groups, bits):
    """a * W in f64; `zero` has a number for each block."""
    integers = bits_of(b.reshape(len(b), -1), bits, a.shape[-1]).astype(np.float64)
    return a.astype(np.float64) @ ((integers - zero[:, groups]) * scales[:, groups]).T


def inputs(length, block, bits, rows=5):
    blocks = -(-length // block)
    return {"a": RANDOM.standard_normal((2, 3, length)).astype(np.float32),
            "b": RANDOM.integers(0, 256, (rows, blocks, block * bits // 8)).astype(np.uint8),
            "scales": RANDOM.uniform(-0.2, 0.2, (rows, blocks)).astype(np.float32)}


WEIGHTS = ("b", "scales", "zero_points", "g_idx", "bias")


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("constants", [WEIGHTS, ()])
def test_packed_zero_points_and_a_shorter_last_block(bits, constants):
    given = inputs(40, 16, bits)
    given["zero_points"] = RANDOM.integers(0, 256, (5, -(-3 * bits // 8))).astype(np.uint8)
    given["g_idx"], given["bias"] = None, np.arange(5, dtype=np.float32)
    zero = bits_of(given["zero_points"], bits, 3)
    expected = product(given["a"], given["b"], given["scales"], zero, np.arange(40) // 16, bits) + given["bias"]
    check_node("com.microsoft::MatMulNBits", given, {"K": 40, "N": 5, "bits": bits, "block_size": 16}, opset=1,
               constants=[name for name in constants if given[name] is not None], dynamic=["a"],
               expected=[expected.astype(np.float32)], atol=1e-4)


@pytest.mark.parametrize("order", ["blocks", "any"])
@pytest.mark.parametrize("bits", [2, 4])
def test_groups_with_packed_zero_points(order, bits):
    """ONNX Runtime ignores the zero points here, and reads weights of 2 bits as weights of 4 bits."""
    given = inputs(40, 16, bits)
    groups = RANDOM.permutation(np.arange(40) // 16) if order == "blocks" else RANDOM.integers(0, 3, 40)
    given["zero_points"] = RANDOM.integers(0, 256, (5, -(-3 * bits // 8))).astype(np.uint8)
    given["g_idx"] = groups.astype(np.int32)
    zero = bits_of(given["zero_points"], bits, 3)
    expected = product(given["a"], given["b"], given["scales"], zero, groups, bits)
    check_node("com.microsoft::MatMulNBits", given, {"K": 40, "N": 5, "bits": bits, "block_size": 16}, opset=1,
               constants=WEIGHTS[:4], expected=[expected.astype(np.float32)], atol=1e-4)


def test_absent_weights():
    given = {"a": np.ones((2, 32), np.float32), "b": np.zeros((4, 0, 16), np.uint8), "scales": np.zeros(0, np.float32),
             "zero_points": None, "g_idx": None, "bias": np.arange(4, dtype=np.float32)}
    check_node("com.microsoft::MatMulNBits", given, {"K": 32, "N": 4, "block_size": 32}, opset=1,
               constants=["b", "scales", "bias"], expected=[np.tile(given["bias"], (2, 1))])


def test_weights_stay_four_bits_in_the_file(tmp_path: Path):
    given = inputs(1000, 32, 4, rows=64)
    model = node_model("com.microsoft::MatMulNBits", given, {"K": 1000, "N": 64, "block_size": 32}, opset=1,
                       constants=["b", "scales"])
    save_model(convert_model(model), tmp_path / "model.xml")
    weights = given["b"].nbytes + given["scales"].nbytes
    assert weights <= (tmp_path / "model.bin").stat().st_size < weights + 200


def test_indices_outside_the_data():
    """They give zeros."""
    table = RANDOM.integers(0, 256, (6, 16)).astype(np.uint8)
    scales = RANDOM.uniform(0.1, 0.2, (6, 1)).astype(np.float32)
    places = np.array([[0, 5, 6], [-1, -7, 40]], np.int64)
    rows = np.concatenate([(bits_of(table, 4, 32) - 8.0) * scales, np.zeros((1, 32))])
    expected = rows[np.where((places < -6) | (places > 5), 6, places % 6)].astype(np.float32)
    check_node("com.microsoft::GatherBlockQuantized", {"data": table, "indices": places, "scales": scales},
               {"block_size": 32}, opset=1, constants=["data", "scales"], dynamic=True, expected=[expected])


def test_training_form_of_a_table_of_weights():
    """The kernel reads elements of other rows here."""
    given = {"a": np.ones((1, 4), np.float32), "b": np.zeros(8, np.uint8), "absmax": np.ones(1, np.float32)}
    attributes = {"K": 4, "N": 4, "block_size": 16, "quant_type": 1, "transB": 0}
    model = node_model("com.microsoft::MatMulBnb4", given, attributes, opset=1, constants=["b", "absmax"])
    with pytest.raises(ConversionErrors, match="transB 0"):
        convert_model(model)
