"""Operators that ONNX did not keep. ONNX Runtime has kernels of some up to opset 9; others are compared with numpy."""

from typing import Any

import numpy as np
import pytest

from mo_loop.api import convert_model
from mo_loop.errors import MoLoopError
from tests.cases import read_cases
from tests.harness import check, check_node, node_model, raised

RNG = np.random.default_rng(5)
IMAGE = RNG.standard_normal((2, 3, 5, 6)).astype(np.float32)
pytestmark = pytest.mark.filterwarnings("ignore::mo_loop.errors.ConversionWarning")
KERNELS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "Affine": ("Affine", {"x": IMAGE}, {"alpha": 2.0, "beta": -1.0}),
    "Scale": ("Scale", {"x": IMAGE}, {"scale": 0.5}),
    "ScaledTanh": ("ScaledTanh", {"x": IMAGE}, {"alpha": 2.0, "beta": 0.5}),
    "ParametricSoftplus": ("ParametricSoftplus", {"x": IMAGE}, {"alpha": 2.0, "beta": 0.5}),
    "ImageScaler": ("ImageScaler", {"x": IMAGE}, {"scale": 2.0, "bias": [1.0, 2.0, 3.0]}),
    "Crop by borders": ("Crop", {"x": IMAGE}, {"border": [1, 2, 0, 1]}),
    "Crop to a size": ("Crop", {"x": IMAGE}, {"border": [1, 2, 0, 0], "scale": [2, 3]}),
    "DynamicSlice": ("DynamicSlice",
                     {"x": IMAGE, "s": np.array([1, -4]), "e": np.array([9, -1]), "axes": np.array([1, 3])}, {}),
}


@pytest.mark.parametrize("case", KERNELS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_as_onnxruntime(case: str, dynamic: bool) -> None:
    op, inputs, attributes = KERNELS[case]
    check_node(op, inputs, attributes, opset=7, dynamic=["x"] if dynamic else False)


FILLS: dict[str, tuple[dict[str, Any], dict[str, Any], Any]] = {
    "shape as attribute": ({}, {"shape": [2, 3], "value": 4.0}, np.full((2, 3), 4, np.float32)),
    "shape of the input": ({"x": IMAGE}, {"value": 4.0}, np.full(IMAGE.shape, 4, np.float32)),
    "shape and more": ({"x": IMAGE}, {"extra_shape": [2], "dtype": 6, "value": 3.0},
                       np.full((*IMAGE.shape, 2), 3, np.int32)),
    "the input is the shape": ({"s": np.array([2, 3])},
                               {"input_as_shape": 1, "extra_shape": [4], "dtype": 7, "value": 9.0},
                               np.full((2, 3, 4), 9, np.int64)),
}


@pytest.mark.parametrize("case", FILLS)
def test_constant_fill(case: str) -> None:
    inputs, attributes, expected = FILLS[case]
    check_node("ConstantFill", inputs, attributes, opset=7, expected=[expected])


# -- ATen

TABLE = RNG.standard_normal((7, 4)).astype(np.float32)
INDICES = np.array([0, 1, 3, 6, 3])
OFFSETS = np.array([0, 2, 2])
WEIGHTS = RNG.standard_normal(5).astype(np.float32)


def bags(mode: int, weights: Any = None, padding: int = -1) -> Any:
    """The sum, the mean or the maximum of each bag; an empty bag has zeros."""
    rows = TABLE[INDICES] * (1 if weights is None else weights[:, None])
    found = []
    for first, last in ((0, 2), (2, 2), (2, 5)):
        kept = [row for row, index in zip(rows[first:last], INDICES[first:last], strict=True) if index != padding]
        reduced = (np.sum, np.mean, np.max)[mode]
        found.append(reduced(kept, axis=0) if kept else np.zeros(4, np.float32))
    return np.array(found, np.float32)


BAGS: dict[str, tuple[dict[str, Any], dict[str, Any], Any]] = {
    "sum": ({"i": INDICES, "o": OFFSETS}, {"mode": 0}, bags(0)),
    "mean": ({"i": INDICES, "o": OFFSETS}, {"mode": 1}, bags(1)),
    "weights": ({"i": INDICES, "o": OFFSETS, "w": WEIGHTS}, {"mode": 0}, bags(0, WEIGHTS)),
    "padding": ({"i": INDICES, "o": OFFSETS}, {"mode": 1, "padding_idx": 3}, bags(1, padding=3)),
    "padding and weights": ({"i": INDICES, "o": OFFSETS, "w": WEIGHTS}, {"padding_idx": 3}, bags(0, WEIGHTS, 3)),
    "last offset": ({"i": INDICES, "o": np.array([0, 2, 2, 5])}, {"mode": 0, "include_last_offset": 1}, bags(0)),
    "maximum": ({"i": INDICES, "o": OFFSETS}, {"mode": 2}, bags(2)),
    "maximum and last offset": ({"i": INDICES, "o": np.array([0, 2, 2, 5])}, {"mode": 2, "include_last_offset": 1},
                                bags(2)),
    "maximum and padding": ({"i": INDICES, "o": OFFSETS}, {"mode": 2, "padding_idx": 3}, bags(2, padding=3)),
    "packed maximum": ({"i": INDICES[:4].reshape(2, 2)}, {"mode": 2}, TABLE[INDICES[:4].reshape(2, 2)].max(axis=1)),
    "packed maximum and padding": ({"i": np.array([[5, 3], [3, 3]])}, {"mode": 2, "padding_idx": 3},
                                   np.stack([TABLE[5], 0 * TABLE[5]])),
    "packed": ({"i": INDICES[:4].reshape(2, 2)}, {"mode": 0}, TABLE[INDICES[:4].reshape(2, 2)].sum(axis=1)),
    "packed mean": ({"i": INDICES[:4].reshape(2, 2)}, {"mode": 1}, TABLE[INDICES[:4].reshape(2, 2)].mean(axis=1)),
}


@pytest.mark.parametrize("case", BAGS)
@pytest.mark.parametrize("domain", ["", "org.pytorch.aten::"])
def test_embedding_bag(case: str, domain: str) -> None:
    inputs, attributes, expected = BAGS[case]
    attributes = {"operator": "embedding_bag", **attributes}
    check_node(f"{domain}ATen", {"t": TABLE, **inputs}, attributes, opset=1 if domain else 11, expected=[expected])


def test_the_other_outputs_of_embedding_bag_are_only_named() -> None:
    """As PyTorch exports it: four outputs, of which nothing reads three."""
    made = node_model("ATen", {"t": TABLE, "i": INDICES, "o": OFFSETS}, {"operator": "embedding_bag"}, opset=11)
    made.graph.node[0].output.extend(["places", "sizes", "largest"])
    check(made, {"t": TABLE, "i": INDICES, "o": OFFSETS}, expected=[[(made.graph.output[0].name, bags(0))]])
    made.graph.output.add(name="sizes")
    raised(MoLoopError, convert_model, made, match="the other outputs of embedding_bag")


read_cases(globals())
