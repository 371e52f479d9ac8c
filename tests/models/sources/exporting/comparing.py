"""Compares ONNX Runtime with the framework of a model."""

from collections.abc import Mapping, Sequence

import numpy as np

from tests.models.sources.exporting.inputs import Inputs

RTOL, ATOL = 1e-4, 1e-5

Expected = Mapping[str, Sequence[np.ndarray]]
"""For each case, the outputs of the framework in the order of the ONNX model."""


def compare(data: bytes, cases: Mapping[str, Inputs], expected: Expected) -> float:
    """The largest difference between ONNX Runtime and the expected values; AssertionError beyond the tolerance.

    A case without expected values is run all the same.
    """
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)  # exporters declare some shapes incorrectly, which the tests need
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    largest = 0.0
    for case, inputs in cases.items():
        actual = session.run(names, {name: data.array() for name, data in inputs.items()})
        if case not in expected:
            continue
        for name, want, have in zip(names, expected[case], actual, strict=True):
            assert (have.dtype, have.shape) == (want.dtype, want.shape), f"{case}: {name}"
            np.testing.assert_allclose(have, want, RTOL, ATOL, err_msg=f"{case}: {name}")
            if want.dtype != np.bool_:
                largest = max(largest, float(np.abs(have - want).max(initial=0)))
    return largest
