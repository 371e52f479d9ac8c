"""Random recurrent models, run step by step with states that live across inferences.

`models` draws a model with its inputs for a sequence of any length, `stepping` runs an IR one step in each inference
(it needs nothing but OpenVINO and numpy, so that any release can run it), `comparing` holds the steps against ONNX
Runtime's run over the whole sequence.
"""
