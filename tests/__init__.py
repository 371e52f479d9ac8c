"""The tests: `harness` has what they are written with, `running` how they run.

- unit: parts of the program without OpenVINO, a folder for each house; golden: a text for each case of a pass
- runtime: converted models on OpenVINO, against ONNX Runtime; its probes show errors of the runtime
- cli, cluster, browser: commands, stores and schedulers, the page
- conformance, models, hostile: the suite of ONNX, exported models, files that attack a converter
- fuzz: generators of random models, which tools/fuzz_*.py and others draw from, and a part of what these run
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The checkout."""

MODELS = ROOT / "tests" / "models"
"""Exported models, one folder for each framework."""
