"""Damaged models; tools/fuzz_bytes.py runs any number of them."""

import onnx
import pytest

from mo_loop.errors import InternalError
from mo_loop.frontend import registry
from mo_loop.frontend.onnx_graphs import domain_of
from mo_loop.look.inspection.read import inspect
from tests.fuzz.damage.damaging import damaged
from tests.fuzz.damage.execution import KINDS, Found, execute_one
from tests.fuzz.damage.fields import graphs_of
from tests.fuzz.damage.running import run
from tests.fuzz.damage.sources import models
from tests.harness import parsed

SEED, COUNT = 2026, 500


@pytest.mark.sweep(4)
@pytest.mark.parametrize("quarter", range(4))
def test_executions(quarter: int) -> None:
    found = run("onnx", SEED, quarter * COUNT, COUNT, jobs=1)
    assert not found.failures, [f"{each.place}: {each.text}, seed {SEED}, {each.number}" for each in found.failures]
    assert found.accepted + sum(found.refused.values()) == COUNT
    assert found.accepted > COUNT / 5 and len(found.refused) > 15


def test_check_and_inspect() -> None:
    found = run("check", SEED, 0, 200, jobs=1)
    assert not found.failures, [f"{each.place}: {each.text}, seed {SEED}, {each.number}" for each in found.failures]
    assert found.accepted > 100


def test_a_scan_of_more_inputs_than_it_has_is_inspected() -> None:
    """The number is that of a list of axes, which would not fit into the memory."""
    body = "b (float[2] s, float i) => (float[2] t, float j) { t = Identity (s) j = Identity (i) }"
    scan_of = f"Scan <num_scan_inputs = {2**40}, body = {body}> (s, x)"
    (scan,) = inspect(parsed(f"main (float[2] s, float[4] x) => (y, z) {{ y, z = {scan_of} }}")).control
    assert (len(scan.states), len(scan.scan_inputs)) == (0, 2)


def test_a_failure_names_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(data: bytes) -> None:
        raise InternalError("a bug") from ZeroDivisionError("inner")

    monkeypatch.setattr(KINDS["onnx"], "use", fails)
    found = Found()
    execute_one("onnx", SEED, 3, found)
    (failure,) = found.failures
    assert (failure.number, failure.text) == (3, "ZeroDivisionError: inner")


def test_there_is_a_model_of_every_operator() -> None:
    found = set()
    for _, data in models():
        model = onnx.load_from_string(data)
        nodes = [*(node for graph in graphs_of(model) for node in graph.node)]
        nodes += [node for function in model.functions for node in function.node]
        found |= {registry.qualified(domain_of(node), node.op_type) for node in nodes}
    assert {op for names in registry.FAMILIES.values() for op in names.split()} <= found


def test_a_number_gives_the_same_damage_again() -> None:
    first = [damaged(SEED, number) for number in range(40)]
    assert first == [damaged(SEED, number) for number in range(40)]
    assert len({data for _, data in first}) > 35
    assert all(data != dict(models())[name] for name, data in first[:5])
