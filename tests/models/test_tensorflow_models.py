"""Models exported by tf2onnx, each with all its sets of inputs on one compiled model."""

from __future__ import annotations

import pytest

from tests.models.exported import Exported

TENSORFLOW = Exported("tensorflow")


def test_every_model_has_cases() -> None:
    TENSORFLOW.check_listed()


@pytest.mark.parametrize("name", TENSORFLOW.names)
def test_model(name: str) -> None:
    """Every case in order and then in reverse order gives the numbers of ONNX Runtime."""
    TENSORFLOW.check(name)
