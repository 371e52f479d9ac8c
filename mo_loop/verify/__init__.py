"""Numerical verification: what a converted model computes, held against what the ONNX model computes.

=============  ====================================================================================
`oracle`       ONNX Runtime and the ONNX reference evaluator as sources of expected values
`runtime`      OpenVINO's CPU device: one compiled model, many inferences
`compare`      expected against actual: shape, element type, values
=============  ====================================================================================

OpenVINO, ONNX Runtime and onnx are imported inside functions only, so importing this package costs next to nothing.
"""
