"""Operators by family, each against ONNX Runtime or the reference evaluator: `from .support import check_node`."""
