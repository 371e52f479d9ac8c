"""From the modules and functions of a framework to ONNX files with inputs to run them on.

`inputs` describes input data, `models` a model, `protos` strips and checks what an exporter wrote, `comparing` runs it,
`writing` writes a folder: they need onnx, and onnxruntime to compare. `pytorch` and `tensorflow` hold what belongs to
one framework: how models are registered, and how one is exported.
"""
