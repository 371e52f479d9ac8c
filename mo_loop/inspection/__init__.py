"""What a model holds, ONNX or IR, without its weights (`mo-loop inspect`).

from mo_loop.inspection.read import outlined

outline = outlined("model.onnx")
outline.operators, outline.scopes, outline.control        # nothing is translated, no tensor is read
"""
