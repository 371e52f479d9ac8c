"""Attention of ONNX and ONNX Runtime, with caches, masks, positions; linear attention."""
