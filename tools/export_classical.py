"""Export small estimators of scikit-learn, LightGBM, XGBoost and CatBoost to ONNX with the usual tool of each package.

    pip install scikit-learn==1.9.1 skl2onnx==1.20.0 onnxmltools==1.16.0 lightgbm==4.7.0 xgboost==3.2.0 \\
        catboost==1.2.10 onnx==1.23.2 onnxruntime==1.32.0
    python tools/export_classical.py                # every model, into tests/models/classical
    python tools/export_classical.py --out models stacking catboost

The estimators are in tests/models/sources/classical_models, one file a kind. They are fitted to tables that
scikit-learn ships. Other versions of the packages may fit other models.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.models.sources.classical_models import composed, linear, trees
from tests.models.sources.exporting.classical import export
from tests.models.sources.exporting.writing import write_folder

OUT = Path(__file__).resolve().parents[1] / "tests" / "models" / "classical"
MAX_BYTES = 20_000
MODELS = {**linear.MODELS, **trees.MODELS, **composed.MODELS}


def main() -> int:
    """Export the models named on the command line, or all of them."""
    parser = argparse.ArgumentParser(description="Export small estimators to ONNX.")
    parser.add_argument("--out", type=Path, default=OUT, help="folder to write to (default: tests/models/classical)")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(MODELS)}")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in MODELS]:
        parser.error(f"unknown model: {', '.join(unknown)}")

    missing = write_folder(
        options.out,
        MODELS,
        options.names or MODELS,
        "tools/export_classical.py",
        export,
        max_bytes=MAX_BYTES,
        sequences=None,
        domains=("ai.onnx.ml",),
        start="fork",  # importing the packages is slow
    )
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
