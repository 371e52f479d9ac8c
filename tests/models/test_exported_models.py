"""Models that were exported: from PyTorch, also with lists in Python's control flow, by tf2onnx, of the transformers
package, and estimators of scikit-learn, LightGBM, XGBoost and CatBoost. Each has all its sets on one compiled model."""

import pytest

from tests.models.exported import Exported

FOLDERS = {name: Exported(name) for name in ("pytorch", "pytorch_sequences", "tensorflow", "transformers", "classical")}


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_model_has_cases(folder: str) -> None:
    FOLDERS[folder].check_listed()


MODELS = [(folder, name) for folder, each in FOLDERS.items() for name in each.names]


@pytest.mark.sweep(3)
@pytest.mark.parametrize(("folder", "name"), MODELS)
def test_model(folder: str, name: str) -> None:
    """Every case in order and then in reverse order gives the numbers of ONNX Runtime."""
    FOLDERS[folder].check(name)
