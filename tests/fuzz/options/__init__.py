"""Random pairs of options on random models, against ONNX Runtime with inputs that numpy prepares."""
