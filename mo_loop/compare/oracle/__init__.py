"""The expected results: ONNX Runtime, checked against itself, its known errors and exact arithmetic."""
