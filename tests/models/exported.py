"""Exported models on disk: a folder below tests/models, whose cases.toml lists inputs for each model.

    FOLDER = Exported("pytorch")
    FOLDER.check("lstm")            # converts it, runs every case on one compiled model, compares with ONNX Runtime
"""

from pathlib import Path

from tests import MODELS
from tests.harness import check
from tests.models.sources.exporting.inputs import read_cases


class Exported:
    """One folder of models."""

    def __init__(self, name: str) -> None:
        self.folder = MODELS / name
        self.models = read_cases(self.folder / "cases.toml")

    @property
    def names(self) -> list[str]:
        """Names of the models, sorted."""
        return sorted(self.models)

    def path(self, name: str) -> Path:
        """The file of a model."""
        return self.folder / f"{name}.onnx"

    def check(self, name: str) -> None:
        """Every case in order and then in reverse order gives the numbers of ONNX Runtime; else AssertionError."""
        check(self.path(name), *self.models[name].sets)

    def check_listed(self, at_least: int = 3) -> None:
        """Every file is listed, with at least this many cases; else AssertionError."""
        assert {path.stem for path in self.folder.glob("*.onnx")} == set(self.models)
        assert [name for name, model in self.models.items() if len(model.cases) < at_least] == []
