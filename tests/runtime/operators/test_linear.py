"""Products of matrices, determinants, and constants after products."""

from typing import Any

import numpy as np
import pytest

from tests.cases import read_cases
from tests.harness import check_model, check_node, every, floats, node_model, refusal, with_weights

# -- MatMul, Gemm and Einsum, compared with ONNX Runtime


RNG = np.random.default_rng(5)


def drawn(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(("a", "b"), [((5, 0), (0, 3)), ((5, 2), (2, 0)), ((0, 2), (2, 3)), ((0, 0), (0, 3))])
@every(transposed=[0, 1], c=[None, (1,), "row"], dynamic=[(), ("a",), ("b",)])
def test_gemm_of_nothing(a, b, transposed, c, dynamic):
    """The result is not uninitialised memory, and the runtime does not refuse a transposed operand."""
    addend = None if c is None else np.ones((b[1],) if c == "row" else c, np.float32)
    expected = np.zeros((a[0], b[1]), np.float32) + (0 if addend is None else 2 * addend)
    inputs = {"a": np.zeros(a, np.float32), "b": np.zeros(b, np.float32), "c": addend}
    if transposed:
        inputs |= {"a": inputs["a"].T, "b": inputs["b"].T}
    given = {"alpha": 1.5, "beta": 2.0, "transA": transposed, "transB": transposed}
    constants = () if c is None else ("c",)
    check_node("Gemm", inputs, given, opset=13, constants=constants, dynamic=dynamic,
               expected=[expected.astype(np.float32)])


EQUATIONS = {"ij->ji": ["23"], "ij->": ["23"], "ij": ["23"], "ii->i": ["33"], "ii": ["33"], "ij,jk": ["23", "34"],
             "ij , jk -> ik": ["23", "34"], "...ij,...jk->...ik": ["523", "34"], "b...,b...->...": ["234", "234"],
             "bhid,bhjd->bhij": ["2345", "2365"], "i,j->ij": ["2", "3"], "i,i->": ["3", "3"],
             "ij,j,i->": ["23", "3", "2"], "...ii->...i": ["233"], "bA,Ac->bc": ["23", "34"], "i,i->i": ["3", "3"],
             "a...b->b...a": ["2345"], "...i,...i->...": ["5234", "34"]}


# -- Determinants


def matrices(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(shape[-1]).standard_normal(shape).astype(dtype)


def check_matrices(x: Any, dynamic: bool = False, rtol: float = 1e-4, opsets: tuple[int, ...] = (11, 22)) -> None:
    expected = np.asarray(np.linalg.det(x.astype(np.float64))).astype(x.dtype)
    for opset in opsets:
        check_node("Det", {"x": x}, opset=opset, dynamic=dynamic, expected=[expected], rtol=rtol, atol=1e-4)


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_no_square_matrix(shape: Any) -> None:
    assert refusal(node_model("Det", {"x": np.zeros(shape, np.float32)}, opset=22)).code == "ML227"


# -- Constants after reductions and products, which the runtime fuses along the wrong axis


def checked(text: str, sets: list[dict[str, object]], **constants: object) -> None:
    check_model(with_weights(text, constants), *sets)


QUANTISED = "q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) "
SCALES = {"s": np.float32(1 / 64), "z": np.uint8(128)}


def integers(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).integers(-60, 61, shape).astype(np.int8)


def steps(*shape: int) -> np.ndarray:
    """Multiples of the scale, which quantisation leaves unchanged."""
    return np.round(floats(*shape) * 32) / np.float32(64)


read_cases(globals())
