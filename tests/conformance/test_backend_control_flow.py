"""The cases of ONNX's backend suite whose models contain Loop, Scan or If: compared with the stored outputs.

They include operators that ONNX itself defines by loops (Range, LinearAttention, SequenceMap).
"""

from collections.abc import Iterator
from typing import Any

import onnx
import pytest

from mo_loop.api import convert_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.errors import MoLoopError
from tests.conformance.cases import Entry, collect
from tests.conformance.expectations import differences, read
from tests.running.samples import judge

PATTERN = "^test_(if|loop|scan|range|sequence_map|linear_attention)"
MODULES = "^(if|loop|scan|range|sequence_map|linear_attention)"
CONTROL_FLOW = {"If", "Loop", "Scan"}


def operators(graph: Any) -> Iterator[str]:
    """The operators of a graph and of its bodies."""
    for node in graph.node:
        yield node.op_type
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from operators(attribute.g)


def has_control_flow(entry: Entry) -> bool:
    return not CONTROL_FLOW.isdisjoint(operators(onnx.load_from_string(entry.sample.model).graph))


CASES = [entry for entry in collect(["node"], PATTERN, MODULES) if has_control_flow(entry)]
PACKED = [entry for entry in CASES if entry.sample.arguments]
EXPECTED = read()


def test_the_suite_has_cases() -> None:
    names = {entry.name for entry in CASES}
    assert {"test_if", "test_loop11", "test_scan_sum", "test_scan9_sum", "test_loop13_seq", "test_if_seq"} <= names


@pytest.mark.parametrize("entry", CASES, ids=lambda entry: entry.name)
def test_case(entry: Entry) -> None:
    verdict = isolated(judge, ("mo_loop", entry.sample))
    assert list(differences(EXPECTED, {entry.name: verdict})) == []


@pytest.mark.parametrize("entry", PACKED, ids=lambda entry: entry.name)
def test_sequence_inputs_and_outputs_are_refused_without_sequence_io(entry: Entry) -> None:
    with pytest.raises(MoLoopError) as caught:
        convert_model(entry.sample.model)
    assert caught.value.exit_code == 3
