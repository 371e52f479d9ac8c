"""Random valid ONNX models with control flow, and what converters make of them.

`scope` holds the model under construction, `values` what it is made of, `pieces`, `movement` and `lists` the operators,
`bodies` what bodies share, `loops`, `scans` and `branches` the control flow, `carried` the lists in it, `generator`
whole models with their input sets, `lowering` a form ONNX Runtime computes rightly, `check` what a worker does with one
model, `report` the tables.
"""
