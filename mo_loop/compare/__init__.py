"""Numerical verification: compares the results of a converted model with those of the ONNX model.

=============  ====================================================================================
`oracle`       ONNX Runtime and the ONNX reference evaluator as sources of expected values
`runtime`      OpenVINO's CPU device: one compiled model, many inferences
`compare`      expected against actual: shape, element type, values
`isolated`     calls of any of these in a worker process, which may crash or hang
`hosted`       an object of any of these in a worker process
`layers`       the first tensor that differs, also inside bodies, node by node of the ONNX model
`passes`       the pass of a conversion that changed the numbers
`verifying`    `mo-loop verify`: a model, its IR and several sets of inputs; `report`, `report_formats` show the result
`generated`    inputs made from the types of a model, and from `roles`; `given` reads those of files
`ir_runs`      runs of an IR, also of one with states; `expected_sets` and `step_inputs` are its inputs
`graph_edits`  the ONNX model between other inputs and outputs, and with the weights of an IR in f16
=============  ====================================================================================

OpenVINO, ONNX Runtime and onnx are imported inside functions, so importing this package is fast.
"""
