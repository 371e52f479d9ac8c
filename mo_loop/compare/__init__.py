"""Numerical verification: compares the results of a converted model with those of the ONNX model.

=============  ====================================================================================
`verifying`    `mo-loop verify`: a model, its IR and several sets of inputs, with the arguments of `verify_options`
`deciding`     the verdict: the ends decide where they agree, the pieces of `layers` where they do not
`passes`       the pass of a conversion that changed the numbers
`ir_runs`      runs of an IR, also of one with states
`layers`       the first tensor that differs, also inside bodies, node by node of the ONNX model
`input_sets`   the inputs, given or generated, with the results that are expected of them
`oracle`       ONNX Runtime and the ONNX reference evaluator as sources of expected values
`execution`    OpenVINO's CPU device; calls of any of these in a worker process, which may crash or hang
`results`      expected against actual: shape, element type, values; the report
`reducing`     `mo-loop reduce`: the smallest model that shows a condition
=============  ====================================================================================

OpenVINO, ONNX Runtime and onnx are imported inside functions, so importing this package is fast.
"""
