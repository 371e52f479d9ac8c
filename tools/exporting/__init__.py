"""From modules to ONNX files with inputs to run them on.

`inputs` describes input data, `catalogue` the models of one folder, `export` makes and checks one ONNX model, `writing`
writes a folder. Needs torch, onnx and onnxscript; with onnxruntime every case is compared with PyTorch.
"""
