"""Export small TensorFlow models to ONNX with tf2onnx for tests of control flow and recurrent layers.

    pip install tensorflow-cpu==2.15.1 tf2onnx==1.17.0 onnx==1.17.0 onnxruntime==1.20.1      # Python 3.11
    python tools/export_tensorflow.py               # every model, into tests/models/tensorflow
    python tools/export_tensorflow.py --out models lstm_masked fold

TensorFlow 2.15 is the last one with Keras 2, which tf2onnx needs; it requires numpy 1, and an ml_dtypes that is too old
for a later onnx. Other versions of TensorFlow or tf2onnx may write other graphs.

The models are in tests/models/sources/tensorflow_models, one file a kind. Where Python hashes strings at
random, the tool starts itself again with fixed hashes, for the files to be reproducible.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read once, when TensorFlow is imported
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.models.sources.exporting.tensorflow import export
from tests.models.sources.exporting.writing import main
from tests.models.sources.tensorflow_models import control_flow, graphs, growing, loops, recurrent

MAX_BYTES = 60_000
MODELS = {
    **recurrent.MODELS,
    **loops.MODELS,
    **control_flow.MODELS,
    **growing.MODELS,
    **graphs.MODELS,
}


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main("TensorFlow models", "tensorflow", MODELS, export, max_bytes=MAX_BYTES))
