"""Architectures of the transformers package in small, with random weights; each file has a catalogue, MODELS.

`wrappers` makes a module with plain tensors as inputs and outputs of each. Nothing is loaded: models are made from
their configurations, and the hub is switched off before the package is imported.
"""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
