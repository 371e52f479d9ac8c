"""The goals of tools/bench_operators.py, and the models that it measures."""

import onnx
import pytest

from mo_loop.compare.oracle.oracle import OnnxRuntime
from tests.harness import need_onnxruntime
from tools.benching import slow_operators
from tools.benching.loop_times import Row
from tools.benching.operator_models import model
from tools.benching.slow_operators import Slow, goal, reason, stale
from tools.benching.typical_operators import ROWS_OF, typical


def row(name: str, ours: float, ovc: float, ort: float) -> Row:
    return Row(name, times={"ours": ours, "ovc": ovc, "ort": ort})


def test_a_row_is_held_against_both_peers() -> None:
    assert goal(row("Add", 113, 100, 100)) <= 1 < goal(row("Add", 114, 100, 100))
    assert goal(row("Add", 230, 1000, 100)) <= 1 < goal(row("Add", 231, 1000, 100))
    assert goal(Row("Add", "other numbers")) == float("inf")
    assert goal(Row("Add", times={"ours": 230, "ort": 100})) <= 1


def test_reasons_hold_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = (Slow("*", "as ovc", as_peer=True), Slow("TopK/*", "ties"))
    monkeypatch.setattr(slow_operators, "SLOW", entries)
    slow, within = row("TopK/1e3", 400, 100, 100), row("TopK/1e5", 100, 100, 100)
    assert reason(slow) == "ties" and reason(row("Add/1e3", 400, 400, 100)) == "as ovc"
    assert not reason(row("Add/1e3", 400, 100, 100))
    as_long = row("Add/1e3", 400, 400, 100)
    assert stale([slow, within, as_long]) == [] and stale([within, as_long]) == ["no longer holds: TopK/*: ties"]


@pytest.mark.parametrize("form", ["static", "dynamic"])
def test_a_drawn_model_has_about_the_elements(form: str) -> None:
    need_onnxruntime("1.32")
    _, sample = model("Softmax", 10_000, form, "float", 0)
    (x,) = sample.feeds[0].values()
    assert 2_500 <= x.size <= 40_000 and x.dtype == "float32"
    dims = onnx.load_from_string(sample.model).graph.input[0].type.tensor_type.shape.dim
    assert all(bool(dim.dim_param) == (form == "dynamic") for dim in dims)
    assert model("Softmax", 10_000, form, "int8", 0) is None


@pytest.mark.parametrize("name", ROWS_OF)
def test_models_of_typical_sizes_are_valid(name: str) -> None:
    for dynamic in (False, True):
        proto, feeds = typical(name, dynamic)
        session = OnnxRuntime(onnx.load_from_string(proto))
        assert {port.name for port in session._session.get_inputs()} == feeds.keys()
