"""Operators by family, against ONNX Runtime or the reference evaluator: `from tests.harness import check_node`."""
