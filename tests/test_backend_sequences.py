"""The cases of the ONNX backend suite on sequences and optionals; sequences at the boundary go through as packed."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support import native

import mo_loop

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

PATTERN = "equence|ptional|^test_loop.*seq|^test_if_(seq|opt)|^test_identity_(seq|opt)"
UNSUPPORTED = {
    "test_if_opt": "a sequence that may be absent",
    "test_optional_has_element_empty_optional_input": "an optional input is taken to be there, and here it is not",
    "test_loop16_seq_none": "likewise",
}


def _cases() -> dict[str, Any]:
    from onnx.backend.test.loader import load_model_tests

    from tools.conformance import collect

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        models = {case.name: case for case in load_model_tests(kind="node")}
        entries = [*collect(["node", "simple"], PATTERN)]
    return {entry.name: entry.sample or models.get(entry.name) for entry in entries}


CASES = _cases()
TENSORS = [name for name, case in CASES.items() if hasattr(case, "feeds")]
PACKED = [name for name in CASES if name not in TENSORS]


def test_there_are_cases() -> None:
    assert (len(TENSORS), len(PACKED)) >= (13, 29)


@pytest.mark.parametrize("name", TENSORS)
def test_tensors_at_the_boundary(name: str) -> None:
    assert native("call", "tools.fuzzing.check", "judge", ("mo_loop", CASES[name])).result == "passed"


@pytest.mark.parametrize("name", [name for name in PACKED if name not in UNSUPPORTED])
def test_sequences_at_the_boundary(name: str, tmp_path: Path) -> None:
    model, (inputs, outputs) = CASES[name].model, CASES[name].data_sets[0]
    feeds: dict[str, Any] = {}
    shapes: dict[str, Any] = {}
    for port, value in zip(model.graph.input, inputs, strict=True):
        if not isinstance(value, list):
            feeds[port.name] = np.asarray(value)
            continue
        rank = np.asarray(value[0]).ndim if value else 1
        shapes[port.name] = [None] * rank  # the suite declares shapes of elements that are not theirs
        packed = mo_loop.pack_sequence(value, rank=rank, dtype=_element_type(port.type))
        feeds[f"{port.name}.data"], feeds[f"{port.name}.shapes"] = packed
    path = tmp_path / "model.xml"
    mo_loop.save_model(mo_loop.convert_model(model, sequence_io="packed", input=shapes or None), path)
    found = dict(native("run_ir", str(path), [feeds])[0])
    for port, value in zip(model.graph.output, outputs, strict=True):
        if not isinstance(value, list):
            np.testing.assert_allclose(found[port.name], value, rtol=1e-5)
            continue
        items = mo_loop.unpack_sequence(found[f"{port.name}.data"], found[f"{port.name}.shapes"])
        assert len(items) == len(value)
        for item, wanted in zip(items, value, strict=True):
            np.testing.assert_allclose(item, np.atleast_1d(wanted), rtol=1e-5)


def _element_type(proto: Any) -> Any:
    """The element type of a sequence or an optional sequence."""
    while not proto.HasField("tensor_type"):
        proto = getattr(proto, proto.WhichOneof("value")).elem_type
    return onnx.helper.tensor_dtype_to_np_dtype(proto.tensor_type.elem_type)
