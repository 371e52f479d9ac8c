"""Export small PyTorch models to ONNX for tests of control flow, recurrent layers and ordinary networks.

    pip install torch==2.13.0 onnx onnxscript       # add onnxruntime to have every case compared with PyTorch
    python tools/export_pytorch.py                  # every model, into tests/models/pytorch and pytorch_sequences
    python tools/export_pytorch.py --out models lstm gru

The models are in tests/models/sources/pytorch_models, one file a kind. Those with operators on
sequences go to a folder of their own.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.models.sources.exporting.pytorch import export
from tests.models.sources.exporting.writing import require_known, write_folder
from tests.models.sources.pytorch_models import (
    control_flow,
    decoding,
    list_changes,
    list_decoding,
    networks,
    operators,
    recurrent,
    sequences,
    vision,
)

MODELS = Path(__file__).resolve().parents[1] / "tests" / "models"
MAX_BYTES = 60_000
FOLDERS = {
    "pytorch": {
        **control_flow.MODELS,
        **decoding.MODELS,
        **recurrent.MODELS,
        **networks.MODELS,
        **vision.MODELS,
        **operators.MODELS,
    },
    "pytorch_sequences": {**sequences.MODELS, **list_changes.MODELS, **list_decoding.MODELS},
}


def main() -> int:
    """Export the models named on the command line, or all of them."""
    known = [name for models in FOLDERS.values() for name in models]
    parser = argparse.ArgumentParser(description="Export small PyTorch models to ONNX.")
    parser.add_argument("--out", type=Path, default=MODELS, help="where the folders are (default: tests/models)")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(known)}")
    options = parser.parse_args()
    require_known(parser, options.names, known)

    missing = []
    for folder, models in FOLDERS.items():
        names = [name for name in models if not options.names or name in options.names]
        if names:
            missing += write_folder(
                options.out / folder,
                models,
                names,
                "tools/export_pytorch.py",
                export,
                max_bytes=MAX_BYTES,
                sequences=folder == "pytorch_sequences",
            )
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
