"""Random valid ONNX models with control flow, to be converted and run.

`scope` holds the model under construction, `values` its values, `pieces`, `movement` and `lists` the operators,
`bodies` the code that all bodies share, `loops`, `scans` and `branches` the control flow, `carried` the lists in it,
`generator` whole models with their input sets, `lowering` a form that ONNX Runtime computes correctly, `oracle` the
expected values, `report` the tables.
"""
