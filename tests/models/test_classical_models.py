"""Estimators of scikit-learn, LightGBM, XGBoost and CatBoost, each with all its sets on one compiled model."""

from __future__ import annotations

import pytest

from tests.models.exported import Exported

CLASSICAL = Exported("classical")


def test_every_model_has_cases() -> None:
    CLASSICAL.check_listed()


@pytest.mark.parametrize("name", CLASSICAL.names)
def test_model(name: str) -> None:
    """Every case in order and then in reverse order gives the numbers of ONNX Runtime."""
    CLASSICAL.check(name)
