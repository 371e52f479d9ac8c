"""Operations are written with the version of their specification, which their documentation names."""

import pytest

from mo_loop import ops
from tests.unit.ops.examples import operations

WITHOUT_SPECIFICATION = {
    "AtLeast", "Barrier", "Dequantize", "DynamicQuantize", "Failed", "Identity", "IntegerMatMul", "Opaque",
    "OpaqueSink", "Quantize", "RoundedOrExact", "Scan",
}
"""Operations that are not written, or with the name and version of another one."""

OTHER_NAMES = {"Const": "Constant"}
"""Types whose specification has another name."""


@pytest.mark.parametrize("name", sorted(
    name for name in {*operations()} - WITHOUT_SPECIFICATION if not getattr(ops, name).library
))
def test_the_opset_is_that_of_the_specification(name: str) -> None:
    cls = getattr(ops, name)
    documentation = (cls.__doc__ or "").rpartition("Spec: ")[2]
    assert documentation.startswith(f"{OTHER_NAMES.get(cls.type, cls.type)}-{cls.opset}.")
