"""Operators that only the bodies of their schemas translate: with symbolic dimensions, at old and new opsets."""

from typing import Any

import numpy as np
import pytest

from mo_loop.frontend import calls, registry
from mo_loop.frontend.calls import schema_function
from tests.harness import check_node, every, node_model, pairs, refusal


def floats(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


# -- losses

LABELS = np.array([[0, 3, 1], [2, 1, 4]])


@pairs(operator=[
    ("NegativeLogLikelihoodLoss", 12), ("NegativeLogLikelihoodLoss", 22), ("SoftmaxCrossEntropyLoss", 12),
    ("SoftmaxCrossEntropyLoss", 13),
], ignore=[None, 1], weighted=[False, True], reduction=["none", "sum", "mean"], dynamic=[False, True])
def test_losses(operator: tuple[str, int], ignore: int | None, weighted: bool, reduction: str, dynamic: bool) -> None:
    op, opset = operator
    inputs = {"x": floats(2, 5, 3), "y": LABELS, "w": np.float32([1, 2, 0.5, 3, 0.25]) if weighted else None}
    attributes = {"reduction": reduction, **({} if ignore is None else {"ignore_index": ignore})}
    check_node(op, inputs, attributes, opset=opset, dynamic=dynamic)


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_loss_and_logarithms(reduction: str) -> None:
    inputs = {"x": floats(4, 5), "y": LABELS[0, [0, 1, 2, 0]]}
    check_node("SoftmaxCrossEntropyLoss", inputs, {"reduction": reduction}, opset=13, outputs=2, dynamic=True)


# -- rotary embeddings


@every(dynamic=[False, True], interleaved=[0, 1])
def test_rotary_embedding(interleaved: int, dynamic: bool) -> None:
    inputs = {"x": floats(2, 4, 3, 8), "cos": floats(10, 4), "sin": floats(10, 4),
              "p": np.array([[0, 1, 2], [4, 7, 9]])}
    check_node("RotaryEmbedding", inputs, {"interleaved": interleaved}, opset=23, dynamic=dynamic)


# -- convolutions


@every(dynamic=[False, True], activation=["none", "silu", "swish"])
@pytest.mark.parametrize(("bias", "past"), [(False, False), (True, True), (False, True)])
@pytest.mark.parametrize(("length", "size"), [(5, 3), (1, 3), (4, 1)])
def test_causal_convolution(length: int, size: int, bias: bool, past: bool, activation: str, dynamic: bool) -> None:
    """The output may be longer than the input, or empty."""
    inputs = {"x": floats(2, 4, length), "w": floats(4, 1, size), "b": floats(4) if bias else None,
              "past": floats(2, 4, size - 1) if past else None}
    check_node("CausalConvWithState", inputs, {"activation": activation}, opset=27, outputs=["y", "kept"],
               constants=("w",), dynamic=dynamic)


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
