"""Numerical verification: compares the results of a converted model with those of the ONNX model.

=============  ====================================================================================
`oracle`       ONNX Runtime and the ONNX reference evaluator as sources of expected values
`runtime`      OpenVINO's CPU device: one compiled model, many inferences
`compare`      expected against actual: shape, element type, values
`inferred`     inferred shapes against those of arrays
`judge`        one model, converted, run and compared, and the result in one word
`isolated`     calls of any of these in a worker process, which may crash or hang
`elsewhere`    the same as `runtime` on another OpenVINO release, in another interpreter
=============  ====================================================================================

OpenVINO, ONNX Runtime and onnx are imported inside functions, so importing this package is fast.
"""
