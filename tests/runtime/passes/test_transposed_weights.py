"""Weights [K, N] are written as [N, K]: the numbers for tensors of all ranks, and the bytes of the .bin."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from mo_loop import convert_model, save_model
from tests.harness import check, floats, parsed

K, N = 160, 240
TYPES = {"float": np.float32, "float16": np.float16}


def product(shape: str, batch: tuple[int, ...] = (), kind: str = "float") -> onnx.ModelProto:
    model = parsed(f"main ({kind}[{shape}] x) => ({kind} y) {{ y = MatMul(x, w) }}")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model.graph.initializer.append(numpy_helper.from_array(floats(*batch, K, N).astype(TYPES[kind]), "w"))
    return model


@pytest.mark.parametrize("batch", [(), (1,), (1, 1)], ids=str)
@pytest.mark.parametrize("shape", [(K,), (3, K), (2, 3, K), (2, 0, K)], ids=str)
def test_ranks(shape: tuple[int, ...], batch: tuple[int, ...]) -> None:
    sizes = ",".join([*(f"d{axis}" for axis in range(len(shape) - 1)), str(K)])
    check(product(sizes, batch), {"x": floats(*shape, seed=1)})


def test_half_precision() -> None:
    check(product("B,160", kind="float16"), {"x": floats(3, K).astype(np.float16)}, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("kind", TYPES)
def test_the_bin_holds_them_transposed(kind: str, tmp_path: Path) -> None:
    model = product("B,160", kind=kind)
    save_model(convert_model(model), tmp_path / "model.xml")
    weights = numpy_helper.to_array(model.graph.initializer[0])
    assert (tmp_path / "model.bin").read_bytes() == weights.T.tobytes()
    assert 'transpose_b="true"' in (tmp_path / "model.xml").read_text("utf-8")


def test_compressed_to_half_precision() -> None:
    check(product("B,160"), {"x": floats(3, K)}, compress_to_fp16=True, rtol=1e-2, atol=1e-2)
