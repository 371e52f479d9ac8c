"""Models as tf2onnx writes them, each with all its sets of inputs on one compiled model."""

from __future__ import annotations

import pytest

from tests.models.exported import Exported

TENSORFLOW = Exported("tensorflow")


def test_every_model_has_cases() -> None:
    TENSORFLOW.check_listed()


@pytest.mark.parametrize("name", TENSORFLOW.names)
def test_model(name: str) -> None:
    """The numbers of ONNX Runtime, in the order of the cases and then in reverse."""
    TENSORFLOW.check(name)
