"""Constants without elements, in place of each input of each operator: converted, or refused as a fault of the model.

The operators and their other inputs are drawn by `tests/fuzz/operators`; small ones become constants, so that
translators read them.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from mo_loop.api import convert_model
from mo_loop.errors import ConversionErrors, MoLoopError
from tests.fuzz.operators.model import Model
from tests.fuzz.operators.table import FAMILIES, operators_of
from tests.fuzz.operators.trial import Missing, nodes_of
from tests.harness import parsed

PARTS = 6


@pytest.mark.sweep(6)
@pytest.mark.parametrize("part", range(PARTS))
def test_an_empty_constant_is_no_internal_error(part: int) -> None:
    every = [op for family in FAMILIES for op in operators_of(family)][part::PARTS]
    found = []
    for op in every:
        for place, model in _models(op):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    convert_model(model)
            except MoLoopError as error:
                errors = error.errors if isinstance(error, ConversionErrors) else [error]
                found += [f"{op}, input {place}: {each}" for each in errors if each.code == "ML400"]
            except Exception as error:
                found.append(f"{op}, input {place}: {error!r}")
    assert not found, "\n".join(found)


NODES = {
    "an axis of products": ("(float[2,3] x) => (y) <int64[0] n = {}> { y = CumProd (x, n) }", "ML235"),
    "an axis of a transform": ('(float[2,3,1] x) => (y) <int64[0] n = {}> { y = DFT (x, "", n) }', "ML235"),
    "a diagonal": ("(float[2,3] x) => (y) <int64[0] n = {}> { y = Trilu (x, n) }", "ML235"),
    "a step in a function": (
        '(int64 x) => (y) { y = own.F (x) } <domain: "own", opset_import: ["": 26]> F (x) => (y) '
        "{ n = Constant <value_ints: ints = []> () y = Range (x, x, n) }", "ML235"),
    "a region": (
        "(float[1,2] x) => (y) <float[0] n = {}, float[2] s = {1, 2}> "
        '{ y = Resize <coordinate_transformation_mode = "tf_crop_and_resize"> (x, n, s) }', "ML235"),
    "rows of layouts": (
        "(float[1,2,32] q, float[1,2,16] k, float[1,2,16] v, float[1,2,8,8] a, int32[1] t, int32[1] e) => (y, c, d) "
        "<int32[1,0] n = {}, int32[1,5] s = {0,1,3,3,5}> { y, c, d = com.microsoft.SparseAttention "
        "<kv_num_heads = 2, num_heads = 4, sparse_block_size = 2> (q, k, v, a, a, n, s, t, e) }", "ML235"),
}


@pytest.mark.parametrize("name", NODES)
def test_an_empty_constant_is_a_fault_of_the_model(name: str) -> None:
    text, code = NODES[name]
    with pytest.raises(MoLoopError) as caught:
        convert_model(parsed(f"main {text}", 26, own=1, **{"com.microsoft": 1}))
    assert caught.value.code == code


def test_weights_without_columns_are_not_rounded() -> None:
    model = parsed("""main (uint8[2,64] x) => (y) <float s = {1}, float[1,0] n = {}, uint8[1] w = {0}>
        { y = com.microsoft.MatMulIntegerToFloat (x, w, s, n) }""", **{"com.microsoft": 1})
    model.graph.initializer[2].CopyFrom(numpy_helper.from_array(np.ones((64, 1), np.uint8), "w"))
    with warnings.catch_warnings(action="error"):
        assert convert_model(model).graph.results[0].value.shape == (2, 0)


def _models(op: str) -> Iterator[tuple[int, Any]]:
    """The place of an input, and the model of the operator in which it is a constant without elements."""
    for seed in range(3):
        try:
            drawn = nodes_of(f"{op}/empty/{seed}", op, count=1)
        except Missing:
            return
        model = Model(drawn)
        for place, port in enumerate(drawn[0].ports):
            if port is None:
                continue
            proto = model.proto()
            next(each for each in proto.graph.node if each.name == "node").input[place] = "nothing"
            arrays = {"nothing": np.zeros([0] * max(1, seed), port.array.dtype)}
            for each in [each for each in proto.graph.input if model.feeds[0][each.name].ndim <= 1]:
                proto.graph.input.remove(each)
                arrays[each.name] = model.feeds[0][each.name]
            proto.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), n) for n, v in arrays.items())
            yield place, proto
