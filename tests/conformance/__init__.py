"""The ONNX backend test suite: its cases as samples, and the expected results of the cases that do not pass."""
