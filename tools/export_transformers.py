"""Export small models of the transformers package to ONNX, with random weights made from their configurations.

    pip install torch==2.13.0 transformers==5.23.0 onnx onnxscript      # add onnxruntime to compare with PyTorch
    python tools/export_transformers.py                    # every model, into out/transformers
    python tools/export_transformers.py --opset 17 bert    # another opset than the model's own
    python tools/export_transformers.py --commit-small     # the committed ones, into tests/models/transformers

The models are in tests/models/sources/transformers_models, each through TorchScript and through dynamo.
Nothing is downloaded. The committed ones are those below 200 KB except the models in TWINS, larger forms of committed
models, so that the folder stays near a megabyte.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.models.sources.exporting.pytorch import OPSETS, TorchModel, export
from tests.models.sources.exporting.writing import require_known, write_folder
from tests.models.sources.transformers_models import generation, perception, state_space, text

MODELS: dict[str, TorchModel] = {
    **text.MODELS,
    **generation.MODELS,
    **perception.MODELS,
    **state_space.MODELS,
}
COMMITTED = Path(__file__).resolve().parents[1] / "tests" / "models" / "transformers"
TWINS = {"gpt2", "gpt2_step", "gpt2_generate", "t5_step", "llama", "llama_step", "clip", "whisper_decoder", "mamba"}
SMALL, ANY_SIZE = 200_000, 1 << 31


def main() -> int:
    """Export the models named on the command line, or all of them."""
    parser = argparse.ArgumentParser(description="Export small models of the transformers package to ONNX.")
    parser.add_argument("--out", type=Path, default=Path("out", "transformers"), help="folder to write to")
    parser.add_argument("--opset", type=int, help="export with this opset, where the exporter writes it")
    parser.add_argument("--commit-small", action="store_true", help="write the small ones to tests/models/transformers")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(MODELS)}")
    options = parser.parse_args()
    require_known(parser, options.names, MODELS)
    if options.commit_small and options.opset is not None:
        parser.error("--commit-small keeps every model's own opset")

    models = {name: model for name, model in MODELS.items() if options.opset is None or writes(model, options.opset)}
    if options.opset is not None:
        models = {name: replace(model, opset=options.opset) for name, model in models.items()}
    missing = write_folder(
        COMMITTED if options.commit_small else options.out,
        models,
        [name for name in models if name in (options.names or models) and not (options.commit_small and name in TWINS)],
        "tools/export_transformers.py",
        export,
        max_bytes=SMALL if options.commit_small else ANY_SIZE,
    )
    return 1 if missing else 0


def writes(model: TorchModel, opset: int) -> bool:
    """Whether the exporter of a model supports an opset."""
    first, last = OPSETS[model.exporter]
    return first <= opset <= last


if __name__ == "__main__":
    sys.exit(main())
