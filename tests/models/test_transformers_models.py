"""Architectures of the transformers package, each with all its sets of inputs on one compiled model."""

from __future__ import annotations

import pytest

from tests.models.exported import Exported

TRANSFORMERS = Exported("transformers")


def test_every_model_has_cases() -> None:
    TRANSFORMERS.check_listed()


@pytest.mark.parametrize("name", TRANSFORMERS.names)
def test_model(name: str) -> None:
    """Every case in order and then in reverse order gives the numbers of ONNX Runtime."""
    TRANSFORMERS.check(name)
