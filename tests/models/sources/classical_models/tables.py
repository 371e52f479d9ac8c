"""The data that the estimators are fitted to, from the tables that scikit-learn ships."""

import numpy as np
from sklearn import datasets

from tests.models.sources.exporting.classical import Table


def _iris() -> Table:
    x, y = datasets.load_iris(return_X_y=True)
    return Table(x.astype(np.float32), y, 0.05)


def _diabetes() -> Table:
    """Six of its features, as whole tenths."""
    x, y = datasets.load_diabetes(return_X_y=True)
    return Table(np.round(x[:120, :6] * 100, 1).astype(np.float32), y[:120], 0.05)


IRIS = _iris()
DIABETES = _diabetes()
TWO = Table(IRIS.x, (IRIS.y == 1).astype(int), IRIS.step)
"""One kind of iris against the other two."""
FEW = Table(IRIS.x[::4], IRIS.y[::4], IRIS.step)
FEW_OF_TWO = Table(TWO.x[::4], TWO.y[::4], IRIS.step)
FEW_NUMBERS = Table(DIABETES.x[::3], DIABETES.y[::3], DIABETES.step)
"""For estimators that keep what they are fitted to."""
WHOLE = Table(IRIS.x.astype(np.int64), IRIS.y, 1)
"""Categories."""
ALONE = Table(IRIS.x, None, IRIS.step)
"""Nothing is to be predicted."""
RANKED = Table(DIABETES.x, (DIABETES.y // 80).astype(int), DIABETES.step)
"""Grades of documents."""
GAPS, GAPS_OF_TWO = IRIS.with_missing(0.1), TWO.with_missing(0.1)
