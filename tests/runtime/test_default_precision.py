"""Integers do not depend on the precision of the runtime: their forms, and their numbers where it has bf16."""

from typing import Any

import numpy as np
import pytest

from mo_loop import convert_model, ops
from mo_loop.graph import Node
from mo_loop.ops.convolution import Convolution
from tests.fuzz.default_precision import KINDS, draw
from tools.default_precision import DEFAULT, default_precision, result

CASES = [draw(3, index) for index in range(40)]


def test_every_kind_is_drawn() -> None:
    assert {case.name.removesuffix(" in a Loop") for case in CASES} == set(KINDS)
    assert any("Loop" in case.name for case in CASES)


@pytest.mark.parametrize("quantization", ["fast", "exact"])
def test_layers_between_integers_are_marked(quantization: str) -> None:
    """Each product and each Convert to integers of these models has ports of integers, or the mark of precision."""
    for case in CASES:
        graph = convert_model(case.model, quantization=quantization).graph
        nodes = [node for scope in graph.scopes() for node in scope.ordered()]
        for node in (each for each in nodes if isinstance(each, ops.MatMul | Convolution | ops.Convert)):
            assert _reads_integers(node) or "precise" in node.rt_info, (case.name, node)


def _reads_integers(node: Node) -> bool:
    first: Any = node.inputs[0]
    made_of_integers = isinstance(node, ops.Convert) and not node.destination_type.is_integer
    return made_of_integers or not first.dtype.is_float


@pytest.mark.parametrize("quantization", ["fast", "exact"])
def test_numbers_in_f32(quantization: str) -> None:
    for case in CASES[:12]:
        assert np.array_equal(result(case, quantization), case.expected), case.name


@pytest.mark.skipif(default_precision() == "f32", reason="the default precision of the processor is f32: no bf16")
@pytest.mark.parametrize("quantization", ["fast", "exact"])
def test_numbers_in_the_default_precision(quantization: str) -> None:
    for case in CASES:
        assert np.array_equal(result(case, quantization, DEFAULT), case.expected), case.name
