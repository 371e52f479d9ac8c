"""Models exported from PyTorch, each with all its sets of inputs on one compiled model."""

from __future__ import annotations

import pytest

from tests.models.exported import Exported

PYTORCH, SEQUENCES = Exported("pytorch"), Exported("pytorch_sequences")


@pytest.mark.parametrize("folder", [PYTORCH, SEQUENCES], ids=["pytorch", "pytorch_sequences"])
def test_every_model_has_cases(folder: Exported) -> None:
    folder.check_listed()


@pytest.mark.parametrize("name", PYTORCH.names)
def test_model(name: str) -> None:
    """Every case in order and then in reverse order gives the numbers of ONNX Runtime."""
    PYTORCH.check(name)


@pytest.mark.parametrize("name", SEQUENCES.names)
def test_model_with_sequences(name: str) -> None:
    """Lists in Python's control flow give the numbers of ONNX Runtime."""
    SEQUENCES.check(name)
