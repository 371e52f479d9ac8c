"""Operators in the sizes that networks have: the rows of `tools/bench_operators.py --quick`.

model, feeds = typical("Pad/edges", dynamic=True)       bytes, and arrays by name
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

_RNG = np.random.default_rng(0)


def _floats(*shape: int) -> Any:
    return _RNG.standard_normal(shape).astype(np.float32)


def _below(high: int, *shape: int) -> Any:
    return _RNG.integers(0, high, shape)


IMAGE, TOKENS, ROWS = _floats(1, 64, 56, 56), _floats(128, 768), _floats(64, 1024)
AXIS, ONES = np.int64([1]), np.int64([0, 0, 1, 1] * 2)
CELL = {"x": _floats(100, 1, 64)}


def _weights(gates: int) -> dict[str, Any]:
    return {"w": _floats(1, gates * 128, 64) / 10, "r": _floats(1, gates * 128, 128) / 10}


def _forest(trees: int, leaves: int) -> dict[str, Any]:
    """Trees as LightGBM grows them: one leaf after the other becomes a node, so some are far deeper than others."""
    count, columns = 2 * leaves - 1, np.zeros((trees, 4, 2 * leaves - 1), np.int64)
    for feature, yes, no, is_inner in columns:
        found, feature[:] = [0], _below(20, count)
        for made in range(1, count, 2):
            place = found.pop(int(_below(len(found), 1)[0]))
            yes[place], no[place], is_inner[place] = made, made + 1, 1
            found += [made, made + 1]
    feature, yes, no, is_inner = (part.reshape(-1) for part in columns.transpose(1, 0, 2))
    tree, node = (part.reshape(-1) for part in np.indices((trees, count)))
    leaf = is_inner == 0
    return {
        "nodes_treeids": tree.tolist(), "nodes_nodeids": node.tolist(), "nodes_featureids": feature.tolist(),
        "nodes_modes": ["LEAF" if each else "BRANCH_LEQ" for each in leaf], "nodes_values": _floats(leaf.size).tolist(),
        "nodes_truenodeids": yes.tolist(), "nodes_falsenodeids": no.tolist(), "n_targets": 1,
        "target_treeids": tree[leaf].tolist(), "target_nodeids": node[leaf].tolist(),
        "target_ids": [0] * int(leaf.sum()), "target_weights": _floats(int(leaf.sum())).tolist(),
    }


FOREST = _forest(100, 31)
Row = tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any], int]
ROWS_OF: dict[str, Row] = {
    "Add": ({"x": IMAGE, "y": IMAGE}, {}, {}, 1),
    "ArgMax/classes": ({"x": _floats(1, 32000)}, {}, {"axis": -1}, 1),
    "ArgMax/pixels": ({"x": _floats(1, 21, 128, 128)}, {}, {"axis": 1}, 1),
    "AveragePool": ({"x": IMAGE}, {}, {"kernel_shape": [3, 3], "strides": [2, 2]}, 1),
    "Cast": ({"x": _below(2, 64, 1024)}, {}, {"to": 1}, 1),
    "Clip": ({"x": IMAGE}, {"l": np.float32(0), "h": np.float32(6)}, {}, 1),
    "Concat": ({"x": IMAGE, "y": IMAGE}, {}, {"axis": 1}, 1),
    "Conv": ({"x": IMAGE}, {"w": _floats(64, 64, 3, 3) / 10}, {"pads": [1] * 4}, 1),
    "ConvTranspose": ({"x": _floats(1, 64, 28, 28)}, {"w": _floats(64, 32, 4, 4)}, {"strides": [2, 2]}, 1),
    "CumSum": ({"x": _below(2, 8, 512)}, {"a": np.int64(1)}, {}, 1),
    "DepthToSpace": ({"x": IMAGE}, {}, {"blocksize": 2}, 1),
    "DynamicQuantizeLinear": ({"x": ROWS}, {}, {}, 3),
    "Equal/integers": ({"x": _below(9, 64, 1024)}, {"y": np.int64(7)}, {}, 1),
    "Erf": ({"x": ROWS}, {}, {}, 1),
    "Expand": ({"x": _floats(1, 1, 1, 128)}, {"s": np.int64([4, 12, 64, 128])}, {}, 1),
    "GRU": (CELL, _weights(3), {"hidden_size": 128, "linear_before_reset": 1}, 2),
    "GRU/before_reset": (CELL, _weights(3), {"hidden_size": 128}, 2),
    "Gather": ({"i": _below(1000, 8, 128)}, {"x": _floats(1000, 64)}, {}, 1),
    "GatherElements": ({"x": _floats(100, 640), "i": _below(100, 50, 640)}, {}, {}, 1),
    "GatherND": ({"x": _floats(100, 64), "i": _below(100, 1000, 1)}, {}, {}, 1),
    "Gemm": ({"x": TOKENS}, {"w": _floats(768, 768), "b": _floats(768)}, {}, 1),
    "GlobalAveragePool": ({"x": _floats(1, 512, 14, 14)}, {}, {}, 1),
    "GridSample": ({"x": _floats(1, 16, 56, 56), "g": np.tanh(_floats(1, 56, 56, 2))}, {}, {}, 1),
    "HardSwish": ({"x": IMAGE}, {}, {}, 1),
    "InstanceNormalization": ({"x": IMAGE}, {"s": _floats(64), "b": _floats(64)}, {}, 1),
    "LRN": ({"x": _floats(1, 64, 28, 28)}, {}, {"size": 5}, 1),
    "LSTM": (CELL, _weights(4), {"hidden_size": 128}, 3),
    "LayerNormalization": ({"x": TOKENS}, {"s": _floats(768), "b": _floats(768)}, {}, 1),
    "MatMul": ({"x": _floats(12, 128, 64), "y": _floats(12, 64, 128)}, {}, {}, 1),
    "MaxPool/indices": ({"x": IMAGE}, {}, {"kernel_shape": [2, 2], "strides": [2, 2]}, 2),
    "NonZero": ({"x": _below(9, 100, 1000) == 0}, {}, {}, 1),
    "OneHot": ({"x": _below(100, 1000)}, {"d": np.int64(100), "v": _floats(2)}, {}, 1),
    "PRelu": ({"x": IMAGE}, {"s": _floats(64, 1, 1)}, {}, 1),
    "Pad": ({"x": IMAGE}, {"p": ONES}, {}, 1),
    "Pad/reflect": ({"x": IMAGE}, {"p": ONES}, {"mode": "reflect"}, 1),
    "Pow": ({"x": ROWS}, {"y": np.float32(2)}, {}, 1),
    "QuantizeLinear": ({"x": ROWS}, {"s": np.float32(0.05), "z": np.uint8(128)}, {}, 1),
    "ReduceMax": ({"x": ROWS}, {"a": AXIS}, {}, 1),
    "ReduceMax/integers": ({"x": _below(200, 64, 128)}, {"a": AXIS}, {}, 1),
    "ReduceMean": ({"x": ROWS}, {"a": AXIS}, {}, 1),
    "ReduceSum/integers": ({"x": _below(2, 64, 1024)}, {"a": AXIS}, {}, 1),
    "Resize/linear": ({"x": _floats(1, 32, 40, 40)}, {"": None, "s": np.float32([1, 1, 2, 2])}, {"mode": "linear"}, 1),
    "Resize/nearest": ({"x": _floats(1, 32, 40, 40)}, {"": None, "s": np.float32([1, 1, 2, 2])}, {}, 1),
    "ScatterND": ({"x": _floats(1000, 64), "i": _below(100, 9, 1), "u": _floats(9, 64)}, {}, {}, 1),
    "Sigmoid": ({"x": IMAGE}, {}, {}, 1),
    "Slice": ({"x": _floats(8, 128, 256)}, {"s": np.int64([0]), "e": np.int64([64]), "a": AXIS}, {}, 1),
    "Softmax": ({"x": _floats(12, 128, 128)}, {}, {}, 1),
    "Softmax/channels": ({"x": _floats(1, 21, 64, 64)}, {}, {"axis": 1}, 1),
    "Split": ({"x": _floats(8, 128, 768)}, {}, {"axis": 2, "num_outputs": 3}, 3),
    "TopK": ({"x": _floats(1, 8400)}, {"k": np.int64([300])}, {}, 2),
    "TopK/classes": ({"x": _floats(1, 1000)}, {"k": np.int64([5])}, {}, 2),
    "Transpose": ({"x": _floats(1, 128, 12, 64)}, {}, {"perm": [0, 2, 1, 3]}, 1),
    "ai.onnx.ml::TreeEnsembleRegressor/row": ({"x": _floats(1, 20)}, {}, FOREST, 1),
    "ai.onnx.ml::TreeEnsembleRegressor/rows": ({"x": _floats(1000, 20)}, {}, FOREST, 1),
    "Where": ({"c": _below(2, 1, 1, 128, 128) == 1, "x": _floats(1, 12, 128, 128)}, {"y": np.float32(-1e9)}, {}, 1),
}
"""Inputs, constants, attributes and the number of outputs, by the operator and what distinguishes its rows."""


def typical(name: str, dynamic: bool) -> tuple[bytes, Mapping[str, Any]]:
    """The model of a row and its inputs; with `dynamic` only the sizes of indices are known."""
    from tests.harness import node_model

    inputs, constants, attributes, outputs = ROWS_OF[name]
    ports = {**constants, **inputs} if name == "Gather" else {**inputs, **constants}
    model = node_model(
        name.partition("/")[0], ports, attributes, opset=3 if "::" in name else 21, outputs=outputs,
        constants=[*constants],
        dynamic=[each for each in inputs if each != "i"] if dynamic else False,
    )
    return model.SerializeToString(), inputs
