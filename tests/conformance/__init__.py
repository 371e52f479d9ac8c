"""The ONNX backend test suite: its cases as samples, and what is expected of those that do not pass."""
