"""Random configurations of single ONNX operators.

===============  =====================================================================================
`draw`           the random choices of a description: types, sizes, values, constants and inputs
`kernels`        the element types for which ONNX Runtime has a kernel of an operator, at an opset
`values`         numbers: ties, negatives, infinities, extremes
`table`          operator -> description; short forms for most operators of a family
`model`          a drawn node as an ONNX model: static, symbolic and computed dimensions
`trial`          the functions of workers: run ONNX Runtime, or convert and compare
`known`          configurations that do not pass, each with its reason
===============  =====================================================================================

Each other module describes the operators of one family.
"""
