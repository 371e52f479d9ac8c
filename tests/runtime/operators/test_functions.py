"""Operators that only the bodies of their schemas translate: with symbolic dimensions, at old and new opsets."""

from typing import Any

import numpy as np
import pytest

from mo_loop.frontend import calls, registry
from mo_loop.frontend.calls import schema_function
from tests.cases import read_cases
from tests.harness import check_node, node_model, refusal


def floats(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


# -- losses

LABELS = np.array([[0, 3, 1], [2, 1, 4]])


# -- which body

BODIES = [("Softmax", 17, 13), ("Softmax", 18, 18), ("LogSoftmax", 14, 13), ("LogSoftmax", 23, 18),
          ("MeanVarianceNormalization", 17, 13), ("MeanVarianceNormalization", 18, 18), ("LayerNormalization", 17, 17),
          ("LayerNormalization", 21, 18)]


@pytest.mark.parametrize(("op", "opset", "body"), BODIES)
def test_the_newest_body_not_above_the_opset(op: str, opset: int, body: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some schemas have bodies for several opsets. They give the numbers of the translator."""
    taken = []

    def watched(*given: Any) -> Any:
        taken.append(schema_function(*given))
        return taken[-1]

    find = registry.find
    monkeypatch.setattr(registry, "find", lambda name, *rest: None if name == op else find(name, *rest))
    monkeypatch.setattr(calls, "schema_function", watched)
    inputs = {"x": floats(2, 3, 4, 5)}
    if op == "LayerNormalization":
        inputs["scale"] = floats(5)
    check_node(op, inputs, opset=opset, dynamic=True)
    assert [each.version for each in taken[0].opset_import if not each.domain] == [body]


def test_no_body_for_types_that_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """CausalConvWithState has a body for static shapes only: without its translator it is refused."""
    find = registry.find
    hidden = "CausalConvWithState"
    monkeypatch.setattr(registry, "find", lambda name, *rest: None if name == hidden else find(name, *rest))
    inputs = {"x": floats(2, 4, 5), "w": floats(4, 1, 3)}
    assert refusal(node_model(hidden, inputs, opset=27, outputs=2, dynamic=True)).code == "ML316"


read_cases(globals())
