"""The tests; `harness` converts, runs and compares for all of them."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The checkout."""

MODELS = ROOT / "tests" / "models"
"""Models as exporters wrote them, a folder for each framework."""
