"""Random configurations of single ONNX operators.

===============  =====================================================================================
`draw`           the random source of a description: types, sizes, values, what is constant and what is fed
`kernels`        which element types ONNX Runtime computes an operator with, at an opset
`values`         numbers that matter: ties, negatives, infinities, extremes
`table`          operator -> description; the short forms that most lines of a family are
`model`          a drawn node as an ONNX model: static, symbolic and computed dimensions
`trial`          what workers do: ask ONNX Runtime, or convert and compare
`known`          configurations that do not pass, each with its reason
===============  =====================================================================================

The other modules describe the operators, a family each, under the names of `mo_loop.frontend.registry.FAMILIES`.
"""
