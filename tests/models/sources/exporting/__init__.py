"""Exports the modules and functions of a framework to ONNX files with inputs to run them on.

`inputs` describes input data, `models` a model, `protos` strips and checks an exported model, `comparing` runs it,
`writing` writes a folder: they need onnx, and onnxruntime to compare. `pytorch` and `tensorflow` are specific to one
framework: how models are registered, and how one is exported.
"""
