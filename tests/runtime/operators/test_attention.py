"""Attention of ONNX: what its masks, windows, caches and outputs mean, in each version.

ONNX Runtime computes the expected values; the reference evaluator does where ONNX Runtime has no implementation, or
says another thing than ONNX.
"""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mo_loop.api import convert_model
from mo_loop.compare.oracle.oracle import Reference
from mo_loop.frontend import calls
from tests.cases import read_cases
from tests.harness import check_model, check_node, every, floats, folded, node_model, refusal

VERSIONS = (23, 24, 25)
INFINITE = np.float32(-np.inf)


def tensors(heads: int = 4, kv_heads: int = 4, queries: int = 3, keys: int = 5) -> dict[str, Any]:
    return {"q": floats(2, heads, queries, 8), "k": floats(2, kv_heads, keys, 8, seed=1),
            "v": floats(2, kv_heads, keys, 6, seed=2)}


def numpy_type(name: str) -> Any:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def with_past(given: dict[str, Any], mask: Any = None, past: int = 2) -> dict[str, Any]:
    kv_heads = given["k"].shape[1]
    caches = {"pk": floats(2, kv_heads, past, 8, seed=3), "pv": floats(2, kv_heads, past, 6, seed=4)}
    return {**given, "mask": mask, **caches}


def with_ends(given: dict[str, Any], ends: Any, mask: Any = None) -> dict[str, Any]:
    return {**given, "mask": mask, "pk": None, "pv": None, "ends": np.array(ends)}


def check(given: dict[str, Any], attributes: dict[str, Any] | None = None, *, opset: int = 25, **more: Any) -> None:
    check_node("Attention", given, attributes, opset=opset, **more)


def check_reference(given: dict[str, Any], attributes: dict[str, Any], *, opset: int = 25, outputs: Any = 1,
                    dynamic: bool = False) -> None:
    """Against the reference evaluator."""
    model = node_model("Attention", given, attributes, opset=opset, outputs=outputs, dynamic=dynamic)
    feeds = {name: value for name, value in given.items() if value is not None}
    check_model(model, feeds, expected=[array for _, array in Reference(model).run(feeds)])


# -- heads and types


@every(kind=["float16", "float64", "bfloat16"], mask=[None, "boolean", "numbers"], dynamic=[False, True])
def test_types(kind: str, mask: str | None, dynamic: bool) -> None:
    dtype = numpy_type(kind)
    given = {name: value.astype(dtype) for name, value in tensors(4, 2).items()}
    if mask:
        given["mask"] = np.tri(3, 5, 1, dtype=bool) if mask == "boolean" else floats(3, 5).astype(dtype)
    check_reference(given, {"is_causal": 1}, opset=24, dynamic=dynamic)


# -- masks

MASKS: dict[str, Any] = {
    "vector": floats(5), "rows": floats(3, 5), "heads": floats(4, 3, 5), "all": floats(2, 4, 3, 5),
    "columns": floats(2, 1, 1, 5), "booleans": floats(3, 5) > -0.5, "booleans of heads": floats(4, 3, 5) > -0.5,
    "booleans of all": floats(2, 1, 3, 5) > -0.5, "integers": np.arange(15).reshape(3, 5) % 4,
    "shorter": floats(3, 4), "shorter booleans": floats(2, 1, 3, 2) > -0.5, "one column": floats(3, 1),
}


@every(causal=[0, 1], mask=MASKS, dynamic=[False, True])
def test_masks(mask: str, causal: int, dynamic: bool) -> None:
    check({**tensors(), "mask": MASKS[mask]}, {"is_causal": causal}, dynamic=dynamic)


HIDDEN = {"booleans": np.array([[0, 0, 0, 0, 0], [1, 0, 1, 0, 1], [1, 1, 1, 1, 1]], bool),
          "numbers": np.where(np.arange(15).reshape(3, 5) < 5, INFINITE, np.float32(0.5)),
          "after the causal one": np.array([[0, 1, 1, 1, 1], [0, 0, 1, 1, 1], [0, 1, 0, 1, 1]], bool)}


# -- caches


def operations(given: dict[str, Any], attributes: dict[str, Any] | None = None, **more: Any) -> list[str]:
    graph = convert_model(node_model("Attention", given, attributes, opset=25, **more), **folded()).graph
    return [type(each).__name__ for each in graph.ordered()]


def test_caches_are_plain_concatenations() -> None:
    model = node_model("Attention", with_past(tensors(4, 2)), opset=25, outputs=["y", "a", "b"])
    graph = convert_model(model, **folded()).graph
    joins = [each for each in graph.ordered() if type(each).__name__ == "Concat"]
    assert [[type(each.node).__name__ for each in join.inputs] for join in joins] == [["Parameter", "Parameter"]] * 2


# -- the cheapest form

GUARDS = ("Select", "ReduceLogicalOr")


def guards(given: dict[str, Any], attributes: dict[str, Any] | None = None, **more: Any) -> list[str]:
    found = operations(given, attributes, **more)
    assert [each for each in found if each in ("MatMul", "Softmax")] == ["MatMul", "Softmax", "MatMul"]
    return [each for each in found if each in GUARDS]


CERTAIN: dict[str, tuple[Any, dict[str, Any]]] = {"none": (None, {}), "causal": (None, {"is_causal": 1}),
                                                  "booleans": (np.tri(3, 5, dtype=bool), {}),
                                                  "numbers": (floats(3, 5), {})}


@pytest.mark.parametrize("name", CERTAIN)
def test_no_guard_where_every_query_sees_a_key(name: str) -> None:
    """The numbers of a constant mask are known."""
    mask, attributes = CERTAIN[name]
    assert guards({**tensors(), "mask": mask}, attributes, constants=("mask",) if mask is not None else ()) == []


def test_one_guard_behind_the_product() -> None:
    """The runtime makes one kernel of both products and the softmax."""
    assert guards({**tensors(), "mask": floats(3, 5)}) == ["ReduceLogicalOr", "Select"]


def test_no_guard_in_a_window_of_a_sequence_on_itself() -> None:
    attributes = {"left_window_size": 1, "right_window_size": 0}
    assert guards(tensors(queries=5), attributes) == []
    assert guards(tensors(queries=8), attributes) == ["Select"]


def test_the_body_of_the_schema_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """It differs between releases of onnx, and the IR must not."""

    def never(*_: Any) -> Any:
        raise AssertionError("the function of the schema was asked for")

    monkeypatch.setattr(calls, "schema_function", never)
    for opset in VERSIONS:
        convert_model(node_model("Attention", {**tensors(), "mask": floats(3, 5)}, opset=opset))


# -- what is refused


@pytest.mark.parametrize(("given", "attributes", "code"), [
    ({"q": floats(2, 3, 32), "k": floats(2, 5, 32), "v": floats(2, 5, 32)}, {}, "ML227"),
    ({**tensors(), "mask": None, "pk": floats(2, 4, 2, 8)}, {}, "ML227"),
    ({**with_past(tensors()), "ends": np.array([1, 2])}, {}, "ML227"),
    (tensors(4, 3), {}, "ML235"),
    ({**tensors(), "k": floats(2, 5, 32)}, {}, "ML235"),
    (tensors(), {"qk_matmul_output_mode": 4}, "ML236"),
    (tensors(), {"softmax_precision": 7}, "ML236"),
    (tensors(), {"left_window_size": -2}, "ML236"),
], ids=["heads", "one past", "two caches", "heads that do not divide", "ranks", "mode", "precision", "window"])
def test_refused(given: dict[str, Any], attributes: dict[str, Any], code: str) -> None:
    assert refusal(node_model("Attention", given, attributes, opset=25)).code == code


read_cases(globals())
