"""Numerical verification: compares the results of a converted model with those of the ONNX model.

=============  ====================================================================================
`oracle`       ONNX Runtime and the ONNX reference evaluator as sources of expected values
`runtime`      OpenVINO's CPU device: one compiled model, many inferences
`compare`      expected against actual: shape, element type, values
=============  ====================================================================================

OpenVINO, ONNX Runtime and onnx are imported inside functions, so importing this package is fast.
"""
