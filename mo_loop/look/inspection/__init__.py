"""The contents of an ONNX model or an IR, found without reading weights (`mo-loop inspect`).

from mo_loop.look.inspection.read import inspect

inspection = inspect("model.onnx")
inspection.operators, inspection.scopes, inspection.control        # nothing is translated, no tensor is read
"""
