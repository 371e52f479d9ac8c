"""Whether the table of ONNX Runtime's errors (compare/oracle/checked_oracle.py) is true of the installed release.

    python tools/probe_oracle.py
    python tools/probe_oracle.py scan-returns-input

Each row has a small model here. The exit code is 1 if the release has an error that the table denies, or the
other way round. An error that depends on the processor can be absent: the saturation of sums needs one without VNNI.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.compare.oracle.checked_oracle import ORACLE_ERRORS, SHAPE, misshapen, row, run_twice
from mo_loop.compare.oracle.oracle import OnnxRuntime
from mo_loop.support.workers import Pool

DEPENDING = {"saturating-products"}
"""Errors that some processors do not show."""


def main(arguments: list[str] | None = None) -> int:
    """Run the probes; 1 if the table is wrong."""
    import onnxruntime

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="*", metavar="ID", help="rows of the table; by default all")
    options = parser.parse_args(arguments)
    release, wrong = onnxruntime.__version__, 0
    with Pool("tools.probe_oracle:shown", limit=60) as pool:
        for each in ORACLE_ERRORS:
            if options.ids and each.id not in options.ids:
                continue
            outcome = pool.call(each.id)
            if not outcome.ok and "InferenceSession" not in outcome.detail:
                print(f"{each.id}: {outcome.message}", flush=True)
                wrong += 1
                continue
            # A release without the operator does not have this error.
            has_it = outcome.ok and bool(outcome.value)
            agrees = has_it == each.is_in(release) or (each.id in DEPENDING and not has_it)
            wrong += not agrees
            said = "has it" if has_it else "has it not"
            print(f"{each.id:32s} {said}{'' if agrees else ': the table says otherwise'}", flush=True)
    print(f"ONNX Runtime {release}: {wrong} of the rows are wrong")
    return int(wrong > 0)


def shown(id: str) -> bool:
    """Whether this release shows the error of a row."""
    model, feeds, expected = PROBES[id]()
    optimise = "extended" if id in DEPENDING else "none"
    runtime = OnnxRuntime(model, optimise, arena=False) if not expected else _plain(model)
    found, unstable = run_twice(runtime, feeds)
    if expected:
        return any(not np.array_equal(value, expected[name]) for name, value in found if name in expected)
    return bool(misshapen(model, feeds, found) if row(id).shows == SHAPE else unstable)


def _plain(model: Any) -> Any:
    """ONNX Runtime as it is, without what `OnnxRuntime` does for exact sums."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    names = [port.name for port in session.get_outputs()]

    class Plain:
        def run(self, feeds: Mapping[str, Any]) -> list[tuple[str, Any]]:
            return list(zip(names, session.run(None, dict(feeds)), strict=True))

    return Plain()


Probe = tuple[Any, dict[str, Any], dict[str, Any]]
"""A model, inputs, and the right values of outputs; without values, the runs differ or the shapes are wrong."""


def _model(text: str, opset: int = 18, **weights: Any) -> Any:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": {opset}]> {text}')
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items())
    return model


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def _cell_state() -> Probe:
    text = """g (float[T,2,3] x) => (float[T,1,2,4] y, float[1,2,4] h, float[1,2,4] c) {
      y, h, c = LSTM <hidden_size=4> (x, W, R) }"""
    return _model(text, W=_random(1, 16, 3), R=_random(1, 16, 4)), {"x": _random(0, 2, 3)}, {}


def _product() -> Probe:
    text = "g (float[A,B,M,K] a, float[B,K,N] b) => (float[A,B,M,N] y) { y = MatMul (a, b) }"
    return _model(text), {"a": _random(2, 1, 4, 0), "b": _random(3, 0, 5)}, {}


def _reduction() -> Probe:
    text = "g (float[B,8,T] x) => (float[B,8] y) { y = ReduceMean <keepdims=0> (x, axes) }"
    return _model(text, axes=np.array([-1])), {"x": _random(2, 8, 0)}, {}


def _scan() -> Probe:
    text = """g (float[2] s, float[5,2] x) => (float[2] last, float[5,2] y) {
      last, y = Scan <num_scan_inputs=1, body = b (float[2] a, float[2] e) => (float[2] n, float[2] e) {
        n = Add (a, e) }> (s, x) }"""
    x = _random(5, 2)
    return _model(text), {"s": _random(2), "x": x}, {"y": x}


def _number() -> Probe:
    text = """g (int64 n, bool c) => (int64[N] y) {
      y = Loop (n, c) <body = b (int64 i, bool d) => (bool e, int64 i) { e = Identity (d) }> }"""
    return _model(text), {"n": np.array(4), "c": np.array(True)}, {"y": np.arange(4)}


def _saturation() -> Probe:
    text = "g (uint8[1,2] a) => (int32[1,1] y) { y = MatMulInteger (a, w) }"
    model = _model(text, w=np.full((2, 1), 127, np.int8))
    return model, {"a": np.full((1, 2), 255, np.uint8)}, {"y": np.array([[2 * 255 * 127]], np.int32)}


def _attention() -> Probe:
    text = """g (float[1,1,1,4] q, float[1,1,3,4] k, float[1,1,3,4] v, bool[1,3] m) => (float[1,1,1,4] y) {
      y = Attention <is_causal=1> (q, k, v, m) }"""
    q, k, v = _random(1, 1, 1, 4), _random(1, 1, 3, 4), _random(1, 1, 3, 4)
    feeds = {"q": q, "k": k, "v": v, "m": np.ones((1, 3), bool)}
    return _model(text, 23), feeds, {"y": v[:, :, :1]}


def _labels() -> Probe:
    """One node with two leaves; each leaf votes for both classes."""
    votes = [(1, 0, 0.8), (1, 1, 0.2), (2, 0, 0.1), (2, 1, 0.9)]
    node = helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", classlabels_int64s=[3, 7],
        nodes_treeids=[0] * 3, nodes_nodeids=[0, 1, 2], nodes_featureids=[0] * 3, nodes_values=[0.0] * 3,
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0],
        class_treeids=[0] * 4, class_nodeids=[each for each, _, _ in votes], class_ids=[each for _, each, _ in votes],
        class_weights=[each for _, _, each in votes], post_transform="NONE",
    )
    make, kind = helper.make_tensor_value_info, onnx.TensorProto
    graph = helper.make_graph(
        [node], "g", [make("x", kind.FLOAT, ["N", 1])],
        [make("label", kind.INT64, ["N"]), make("scores", kind.FLOAT, ["N", 2])],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return model, {"x": np.float32([[-1], [1]])}, {"label": np.array([3, 7])}


def _grid() -> Probe:
    text = "g (float[1,2,3] t) => (float[1,1,3,2] y) { y = AffineGrid <align_corners=1> (t, size) }"
    model = _model(text, 20, size=np.array([1, 1, 1, 3]))
    grid = np.array([[[[-1, 0], [0, 0], [1, 0]]]], np.float32)
    return model, {"t": np.float32([[[1, 0, 0], [0, 1, 0]]])}, {"y": grid}


PROBES: dict[str, Callable[[], Probe]] = {
    "cell-state-of-no-steps": _cell_state,
    "product-over-nothing": _product,
    "reduction-of-nothing": _reduction,
    "scan-returns-input": _scan,
    "loop-returns-number": _number,
    "saturating-products": _saturation,
    "causal-attention-of-one-query": _attention,
    "labels-of-two-classes": _labels,
    "grid-of-one-pixel": _grid,
}


if __name__ == "__main__":
    sys.exit(main())
