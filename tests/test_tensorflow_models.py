"""Models as tf2onnx writes them, each with all its sets of inputs on one compiled model."""

from __future__ import annotations

import pytest
from exports import Exports

EXPORTS = Exports("tensorflow")


def test_every_model_has_cases() -> None:
    EXPORTS.check_complete()


@pytest.mark.parametrize("name", EXPORTS.names)
def test_model(name: str) -> None:
    """The numbers of ONNX Runtime, in the order of the cases and then in reverse."""
    EXPORTS.check(name)
