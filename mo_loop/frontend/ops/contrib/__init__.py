"""Translators of ONNX Runtime's own operators, the domain com.microsoft; one module for each family of `CONTRIB`.

The schemas are in mo_loop/frontend/contrib_schemas.json. ONNX Runtime's CPU kernels are the reference; for operators
without one the description in the schema is.
"""
