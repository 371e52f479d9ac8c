"""The tests. `harness` converts, runs and compares models for all of them."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The checkout."""

MODELS = ROOT / "tests" / "models"
"""Exported models, one folder for each framework."""
