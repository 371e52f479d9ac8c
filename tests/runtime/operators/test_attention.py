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
from tests.harness import check_model, check_node, every, floats, folded, node_model, pairs, parsed, refusal

dynamics = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
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


@pairs(
    attributes=[{}, {"is_causal": 1}, {"scale": 0.25}, {"scale": 1.0}, {"softcap": 2.0},
                {"is_causal": 1, "softcap": 3.0}],
    opset=VERSIONS, kv_heads=[1, 2, 4], dynamic=[False, True],
)
def test_attention(attributes: dict[str, Any], opset: int, kv_heads: int, dynamic: bool) -> None:
    check(tensors(4, kv_heads), attributes, opset=opset, dynamic=dynamic)


@every(kv_heads=[1, 2, 4], dynamic=[False, True])
def test_three_dimensions(kv_heads: int, dynamic: bool) -> None:
    given = {"q": floats(2, 3, 32), "k": floats(2, 5, 8 * kv_heads), "v": floats(2, 5, 6 * kv_heads)}
    check(given, {"q_num_heads": 4, "kv_num_heads": kv_heads}, opset=24, outputs=4, dynamic=dynamic)


def test_heads_that_are_known_with_other_sizes_that_are_not() -> None:
    model = parsed("""main (float[B, 4, S, 8] q, float[B, 2, T, 8] k, float[B, 2, T, 8] v) => (float[B, 4, S, 8] y) {
          y = Attention <is_causal = 1> (q, k, v) }""", opset=24)
    sizes = [(2, 3, 3), (1, 1, 5), (2, 4, 2)]
    check_model(
        model,
        *({"q": floats(b, 4, s, 8), "k": floats(b, 2, t, 8), "v": floats(b, 2, t, 8, seed=1)} for b, s, t in sizes),
    )


@every(kind=["float16", "float64", "bfloat16"], mask=[None, "boolean", "numbers"], dynamic=[False, True])
def test_types(kind: str, mask: str | None, dynamic: bool) -> None:
    dtype = numpy_type(kind)
    given = {name: value.astype(dtype) for name, value in tensors(4, 2).items()}
    if mask:
        given["mask"] = np.tri(3, 5, 1, dtype=bool) if mask == "boolean" else floats(3, 5).astype(dtype)
    check_reference(given, {"is_causal": 1}, opset=24, dynamic=dynamic)


@pytest.mark.parametrize("precision", [1, 10, 11, 16])
def test_precision_of_the_softmax(precision: int) -> None:
    check_node("Attention", tensors(), {"softmax_precision": precision}, opset=24, rtol=0.02, atol=0.01)


def test_a_scale_of_0() -> None:
    check_reference(tensors(), {"scale": 0.0})


def test_values_of_another_type() -> None:
    """The result has the type of the queries."""
    given = tensors()
    wanted = Reference(node_model("Attention", given, opset=25)).run(given)[0][1]
    check_node("Attention", {**given, "v": given["v"].astype(np.float64)}, opset=25, expected=[wanted])


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


@every(mask=["rows", "heads", "booleans", "integers"], opset=[23, 24], dynamic=[False, True])
def test_masks_of_older_versions(mask: str, opset: int, dynamic: bool) -> None:
    check({**tensors(), "mask": MASKS[mask]}, opset=opset, dynamic=dynamic)


@every(mask=["shorter", "shorter booleans"], dynamic=[False, True])
def test_shorter_masks_of_version_24(mask: str, dynamic: bool) -> None:
    check_reference({**tensors(), "mask": MASKS[mask]}, {}, opset=24, dynamic=dynamic)


def test_a_mask_of_one_column_is_broadcast_in_version_23() -> None:
    """The reference evaluator pads it; the text and the function of the schema do not."""
    given = {**tensors(), "mask": MASKS["one column"]}
    whole = {**given, "mask": np.repeat(given["mask"], 5, axis=1)}
    wanted = Reference(node_model("Attention", whole, opset=23)).run(whole)[0][1]
    check_node("Attention", given, opset=23, expected=[wanted])


@every(mask=["rows", "integers", "booleans", "shorter", "booleans of heads"], causal=[0, 1])
def test_constant_masks(mask: str, causal: int) -> None:
    check({**tensors(), "mask": MASKS[mask]}, {"is_causal": causal}, constants=["mask"])


@pytest.mark.parametrize("kind", ["float16", "float64", "bfloat16"])
def test_constant_masks_of_other_types(kind: str) -> None:
    dtype = numpy_type(kind)
    given = {name: value.astype(dtype) for name, value in {**tensors(), "mask": HIDDEN["numbers"]}.items()}
    wide = {name: value.astype(np.float64) for name, value in given.items()}
    wanted = Reference(node_model("Attention", wide, opset=24)).run(wide)[0][1]
    check_node("Attention", given, opset=24, constants=["mask"], expected=[wanted.astype(dtype)])


HIDDEN = {"booleans": np.array([[0, 0, 0, 0, 0], [1, 0, 1, 0, 1], [1, 1, 1, 1, 1]], bool),
          "numbers": np.where(np.arange(15).reshape(3, 5) < 5, INFINITE, np.float32(0.5)),
          "after the causal one": np.array([[0, 1, 1, 1, 1], [0, 0, 1, 1, 1], [0, 1, 0, 1, 1]], bool)}


@every(mode=[0, 2, 3], mask=HIDDEN, opset=VERSIONS, dynamic=[False, True])
def test_queries_that_see_no_key(mask: str, mode: int, opset: int, dynamic: bool) -> None:
    check_reference({**tensors(4, 2), "mask": HIDDEN[mask]},
                    {"qk_matmul_output_mode": mode, "is_causal": int("causal" in mask)}, opset=opset,
                    outputs=["y", "", "", "scores"], dynamic=dynamic)


@pytest.mark.parametrize("kind", ["float16", "float64"])
def test_queries_that_see_no_key_in_other_types(kind: str) -> None:
    given = {name: value.astype(kind) for name, value in tensors().items()}
    check_reference({**given, "mask": HIDDEN["booleans"]}, {})


@pytest.mark.parametrize("keys", [1, 2, 3, 5, 6, 7, 8, 9, 17, 33])
def test_queries_that_see_no_key_of_any_number(keys: int) -> None:
    """The runtime computes in vectors, and the rest of a row in another way."""
    mask = floats(3, keys)
    mask[1] = INFINITE
    check_reference({**tensors(keys=keys), "mask": mask}, {})


def test_the_lowest_finite_number_hides_no_row() -> None:
    mask = np.full((3, 5), np.finfo(np.float32).min, np.float32)
    check({**tensors(), "mask": mask})


# -- caches


@pairs(mode=[0, 1, 2, 3], mask=[None, "numbers", "booleans"], causal=[0, 1], kv_heads=[2, 4], softcap=[0.0, 2.0],
       dynamic=[False, True])
def test_a_past_and_all_outputs(mode: int, mask: str | None, causal: int, kv_heads: int, softcap: float,
                                dynamic: bool) -> None:
    given = {"numbers": floats(3, 7), "booleans": floats(3, 7) > -1, None: None}[mask]
    attributes = {"qk_matmul_output_mode": mode, "is_causal": causal, "softcap": softcap}
    inputs, outputs = with_past(tensors(4, kv_heads), given), ["y", "key", "value", "scores"]
    check_node("Attention", inputs, attributes, opset=25, outputs=outputs, dynamic=dynamic)


@every(queries=[1, 3, 6], causal=[0, 1], ends=[[5, 2], [1, 4], [0, 5]], dynamic=[False, True])
def test_padded_caches(ends: list[int], causal: int, queries: int, dynamic: bool) -> None:
    """Of more queries than keys, the first see none."""
    check_reference(with_ends(tensors(4, 2, queries), ends), {"is_causal": causal}, opset=24, dynamic=dynamic)


@every(mask=["heads", "shorter", "booleans", "shorter booleans"], causal=[0, 1], dynamic=[False, True])
def test_padded_caches_with_a_mask(mask: str, causal: int, dynamic: bool) -> None:
    check_reference(with_ends(tensors(), [4, 2], MASKS[mask]), {"is_causal": causal}, opset=24, dynamic=dynamic)


def operations(given: dict[str, Any], attributes: dict[str, Any] | None = None, **more: Any) -> list[str]:
    graph = convert_model(node_model("Attention", given, attributes, opset=25, **more), **folded()).graph
    return [type(each).__name__ for each in graph.ordered()]


def test_caches_are_plain_concatenations() -> None:
    model = node_model("Attention", with_past(tensors(4, 2)), opset=25, outputs=["y", "a", "b"])
    graph = convert_model(model, **folded()).graph
    joins = [each for each in graph.ordered() if type(each).__name__ == "Concat"]
    assert [[type(each.node).__name__ for each in join.inputs] for join in joins] == [["Parameter", "Parameter"]] * 2


def test_attention_in_a_loop() -> None:
    model = parsed("""main (int64 n, float[1, 2, 3, 4] x) => (float[1, 2, 3, 4] y) {
          y = Loop (n, "", x) <body = step (int64 i, bool c, float[1, 2, 3, 4] s) => (bool d, float[1, 2, 3, 4] t) {
            d = Identity (c) t = Attention <is_causal = 1> (s, x, s) }> }""", opset=23)
    check_model(model, *({"n": np.array(count), "x": floats(1, 2, 3, 4)} for count in (2, 0, 3)))


# -- windows


@pairs(left=[-1, 0, 1, 2], right=[-1, 0, 1], causal=[0, 1], cache=["none", "past", "padded"],
       mask=[None, "rows", "booleans"], dynamic=[False, True])
def test_windows(left: int, right: int, causal: int, cache: str, mask: str | None, dynamic: bool) -> None:
    given = tensors(4, 2, queries=4)
    shape = (4, 7 if cache == "past" else 5)
    numbers = {None: None, "rows": floats(*shape), "booleans": floats(*shape) > -0.5}[mask]
    inputs = {"none": {**given, "mask": numbers}, "past": with_past(given, numbers),
              "padded": with_ends(given, [5, 2], numbers)}[cache]
    attributes = {"left_window_size": left, "right_window_size": right, "is_causal": causal}
    check_reference(inputs, attributes, outputs=3 if cache == "past" else 1, dynamic=dynamic)


@dynamics
def test_a_window_that_ends_before_the_queries(dynamic: bool) -> None:
    """The later ones of more queries than keys see no key."""
    check_reference(tensors(queries=6, keys=3), {"left_window_size": 1}, dynamic=dynamic)


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
