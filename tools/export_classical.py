"""Export small estimators of scikit-learn, LightGBM, XGBoost and CatBoost to ONNX with the usual tool of each package.

    pip install scikit-learn==1.9.1 skl2onnx==1.20.0 onnxmltools==1.16.0 lightgbm==4.7.0 xgboost==3.2.0 \\
        catboost==1.2.10 onnx==1.23.2 onnxruntime==1.32.0
    python tools/export_classical.py                # every model, into tests/models/classical
    python tools/export_classical.py --out models stacking catboost

The estimators are in tests/models/sources/classical_models, one file a kind. They are fitted to tables that
scikit-learn ships. Other versions of the packages may fit other models.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.models.sources.classical_models import composed, linear, trees
from tests.models.sources.exporting.classical import export
from tests.models.sources.exporting.writing import main

MAX_BYTES = 20_000
MODELS = {**linear.MODELS, **trees.MODELS, **composed.MODELS}


if __name__ == "__main__":
    sys.exit(main("estimators", "classical", MODELS, export, max_bytes=MAX_BYTES, domains=("ai.onnx.ml",)))
