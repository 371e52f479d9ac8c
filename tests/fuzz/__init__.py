"""Random models, compared with other converters' or ONNX Runtime's numbers."""

SKIPPED = "skipped"
"""The result of a model that cannot test a converter."""
