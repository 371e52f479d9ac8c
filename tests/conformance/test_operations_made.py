"""The table of `mo-loop ops` lists the operations that translators make of the cases of the ONNX backend test suite."""

import onnx

from mo_loop.frontend.model import load
from mo_loop.frontend.translate import translate
from tests.conformance.cases import collect
from tests.conformance.operations_made import missing, operations_in

EVERY = 4
"""One case in this many is translated; `tools/record_operations.py` translates all."""


def test_operations_of_the_cases_are_listed() -> None:
    found = missing(entry.sample.model for entry in list(collect(["node"]))[::EVERY])
    unlisted = [f"{name} of version {since} makes {sorted(made)}" for (name, since), made in found.items()]
    assert not unlisted, "run `python tools/record_operations.py`:\n" + "\n".join(unlisted)


def test_operations_of_bodies_are_found() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]>
        main (bool c, float[2] x) => (float[2] y) {
            y = If (c) <then_branch = a () => (float[2] t) { t = Neg (x) },
                else_branch = b () => (float[2] e) { e = Add (x, x) }>
        }"""
    graph = translate(load(onnx.parser.parse_model(text)))
    assert operations_in(graph) == {"If-8", "Negative-1", "Add-1"}


def test_an_operation_that_is_not_listed_is_found(monkeypatch) -> None:
    case = next(entry for entry in collect(["node"], "^test_softmax_axis_0$"))
    monkeypatch.setattr("mo_loop.frontend.operators._table", lambda: {"Softmax": {13: ("Exp-1",)}})
    assert list(missing([case.sample.model]).values()) == [{"SoftMax-8"}]
