"""Classical machine learning: the models of the folder, and the export of one by the usual tool of its package.

MODELS = Catalogue()
MODELS.enter("sklearn", {
    "logistic_regression": (IRIS, "LogisticRegression, three classes.", LogisticRegression(max_iter=300)),
})

The estimators are fitted to the data here, each in a process of its own. The inputs of the cases are drawn on a grid
on which the thresholds of trees lie. Fitting is seeded, but another version of a package may still fit another model.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tests.models.sources.exporting.comparing import Expected
from tests.models.sources.exporting.inputs import Data, exact
from tests.models.sources.exporting.models import Model

OPSETS = {"sklearn": {"": 18, "ai.onnx.ml": 3}, "lightgbm": {"": 15}, "xgboost": {"": 15}, "catboost": {"": 9}}
"""Exporter -> the opsets that it is given, or that it writes; the file has lower ones if they suffice."""


@dataclass(frozen=True)
class Table:
    """Rows [N, F] of features and what is to be predicted, on a grid of `step`; `missing` is the share of NaN."""

    x: np.ndarray
    y: np.ndarray | None
    step: float
    missing: float = 0.0

    def with_missing(self, share: float) -> Table:
        """The table with so many of its values missing."""
        x = self.x.copy()
        x[np.random.default_rng(0).random(x.shape) < share] = np.nan
        return Table(x, self.y, self.step, share)

    def rows(self, seed: int, count: int) -> Data:
        """New rows between the smallest and the largest ones."""
        random = np.random.default_rng(seed)
        low, high = np.nanmin(self.x, 0), np.nanmax(self.x, 0)
        drawn = np.round(random.uniform(low, high, (count, len(low))) / self.step) * self.step
        drawn = np.round(drawn, 6)
        drawn[random.random(drawn.shape) < self.missing] = np.nan
        if self.x.dtype.kind == "i":
            return exact(drawn.astype(int).tolist())
        return Data(drawn.shape, "float32", values=tuple(drawn.ravel().tolist()))


@dataclass(frozen=True)
class ClassicalModel(Model):
    """An estimator, which is fitted to `table`."""

    table: Table
    text: str
    estimator: Any
    fitted_with: dict[str, Any]

    @property
    def about(self) -> str:
        return self.text


class Catalogue(dict[str, ClassicalModel]):
    """Models by name, in the order of their definition."""

    def enter(self, exporter: str, rows: Mapping[str, tuple[Any, ...]]) -> None:
        """Enter models: the table, a sentence, the estimator, and any further arguments of `fit`."""
        column = "features" if exporter == "catboost" else "X"
        for name, (table, text, estimator, *rest) in rows.items():
            drawn = {"few": table.rows(1, 4), "one": table.rows(2, 1), "more": table.rows(3, 12)}
            cases = {case: {column: data} for case, data in drawn.items()}
            opset, given = OPSETS[exporter][""], rest[0] if rest else {}
            self[name] = ClassicalModel(type(estimator), exporter, opset, cases, table, text, estimator, given)


def export(model: ClassicalModel) -> tuple[onnx.ModelProto, Expected]:
    """The ONNX model as the exporter writes it. Its numbers are compared with ONNX Runtime alone: estimators compute in
    f64 what the exported models compute in f32, so that votes and labels may differ."""
    estimator, x = model.estimator, model.table.x
    estimator.fit(x, model.table.y, **model.fitted_with)
    proto = {"sklearn": _of_sklearn, "catboost": _of_catboost}.get(model.exporter, _of_boosters)(model, estimator)
    names = [port.name for port in proto.graph.input]
    if names != list(model.example):
        raise ValueError(f"the inputs are {names}")
    return proto, {}


def _of_sklearn(model: ClassicalModel, estimator: Any) -> onnx.ModelProto:
    from skl2onnx import to_onnx

    return to_onnx(estimator, model.table.x[:1], target_opset=OPSETS["sklearn"])


def _of_boosters(model: ClassicalModel, estimator: Any) -> onnx.ModelProto:
    import onnxmltools
    from onnxmltools.convert.common.data_types import FloatTensorType

    convert = getattr(onnxmltools, f"convert_{model.exporter}")
    types = [("X", FloatTensorType([None, model.table.x.shape[1]]))]
    return convert(estimator, initial_types=types, target_opset=OPSETS[model.exporter][""])


def _of_catboost(model: ClassicalModel, estimator: Any) -> onnx.ModelProto:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        estimator.save_model(str(path), format="onnx")
        return onnx.load(path)
