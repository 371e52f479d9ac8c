"""The cases of ONNX's backend suite whose models hold Loop, Scan or If: the numbers that are stored with them.

Among them are operators that ONNX itself spells out as loops (Range, LinearAttention, SequenceMap).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper
from support import check

from mo_loop.convert import convert_model
from mo_loop.errors import MoLoopError

HOME = "onnx.backend.test.case.node"
MODULES = ("if_", "loop", "scan", "rangeop", "sequence_map", "linear_attention")
NAMES = ("test_if", "test_loop", "test_scan", "test_range", "test_sequence_map", "test_linear_attention")
CONTROL_FLOW = {"If", "Loop", "Scan"}


def operators(graph: Any) -> Iterator[str]:
    """The operators of a graph and of the bodies below it."""
    for node in graph.node:
        yield node.op_type
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from operators(attribute.g)


def cases() -> list[Any]:
    """The cases of the modules above; a module that an older onnx lacks is passed over."""
    for module in MODULES:
        with contextlib.suppress(ModuleNotFoundError):
            import_module(f"{HOME}.{module}")
    found = [case for case in import_module(HOME)._NodeTestCases if case.name.startswith(NAMES)]
    return [case for case in found if not CONTROL_FLOW.isdisjoint(operators(case.model.graph))]


def has_tensors_only(model: Any) -> bool:
    """Whether nothing but tensors goes in and out."""
    return all(port.type.HasField("tensor_type") for port in (*model.graph.input, *model.graph.output))


def array_of(value: Any) -> Any:
    """A stored value as an array."""
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


CASES = cases()
TENSORS = [pytest.param(case, id=case.name) for case in CASES if has_tensors_only(case.model)]
OTHERS = [pytest.param(case, id=case.name) for case in CASES if not has_tensors_only(case.model)]


def test_the_suite_is_there() -> None:
    names = {case.name for case in CASES}
    assert {"test_if", "test_loop11", "test_scan_sum", "test_scan9_sum", "test_loop13_seq", "test_if_seq"} <= names


@pytest.mark.parametrize("case", TENSORS)
def test_tensors_at_the_boundary(case: Any) -> None:
    feeds, expected = [], []
    for inputs, outputs in case.data_sets:
        feeds.append({port.name: array_of(each) for port, each in zip(case.model.graph.input, inputs, strict=True)})
        expected.append(
            [(port.name, array_of(each)) for port, each in zip(case.model.graph.output, outputs, strict=True)]
        )
    check(case.model, *feeds, expected=expected)


@pytest.mark.parametrize("case", OTHERS)
def test_sequences_at_the_boundary_are_refused(case: Any) -> None:
    with pytest.raises(MoLoopError) as caught:
        convert_model(case.model)
    assert caught.value.exit_code == 3
