"""Models as tf2onnx writes them, each with all its sets of inputs on one compiled model."""

from __future__ import annotations

import pytest
from exported import Exported

from mo_loop import convert_model
from mo_loop.errors import ConversionErrors

TENSORFLOW = Exported("tensorflow")
SEQUENCES = ["ragged"]


def test_every_model_has_cases() -> None:
    TENSORFLOW.check_listed()


@pytest.mark.parametrize("name", [name for name in TENSORFLOW.names if name not in SEQUENCES])
def test_model(name: str) -> None:
    """The numbers of ONNX Runtime, in the order of the cases and then in reverse."""
    TENSORFLOW.check(name)


@pytest.mark.parametrize("name", SEQUENCES)
def test_model_with_sequences(name: str) -> None:
    """Refused with the place and the name of every operator on sequences. Once supported: the right numbers."""
    try:
        convert_model(TENSORFLOW.path(name))
    except ConversionErrors as refused:
        assert {error.code for error in refused.errors} == {"ML302"}
        assert all("Sequence" in error.message and error.where for error in refused.errors)
        return
    TENSORFLOW.check(name)
