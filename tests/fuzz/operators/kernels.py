"""The element types for which ONNX Runtime has a kernel of an operator, at an opset: read from its table of kernels."""

import functools
from collections import defaultdict
from typing import Any

from mo_loop.frontend import schemas
from mo_loop.frontend.registry import qualified
from mo_loop.frontend.translators import EXPERIMENTAL

Constraints = dict[str, tuple[str, ...]]
NEWEST = 26
"""The newest opset that ONNX Runtime loads."""


LAST_EXPERIMENTAL = 9
"""The newest opset at which ONNX Runtime runs operators that ONNX did not keep."""

OPSETS_OF_CONTRIB = range(13, NEWEST + 1)
"""The opsets of the default domain beside operators of another domain."""


def split(op: str) -> tuple[str, str]:
    """The domain and the name of an operator, which is written as `Relu` or `com.microsoft::Gelu`."""
    domain, _, name = op.rpartition("::")
    return domain, name


def schema(op: str, opset: int) -> Any:
    """The schema of an operator at `opset` of the default domain; None below its first opset."""
    import onnx

    domain, name = split(op)
    try:
        return onnx.defs.get_schema(name, 1 if domain else opset, domain)
    except onnx.defs.SchemaError:
        return schemas.contrib_schema(name, 1 if domain else opset, domain)


@functools.cache
def opsets(op: str) -> tuple[tuple[int, ...], ...]:
    """The opsets at which ONNX Runtime runs an operator, grouped by schema."""
    found: dict[int, list[int]] = defaultdict(list)
    newest = LAST_EXPERIMENTAL if op in EXPERIMENTAL else NEWEST
    for opset in OPSETS_OF_CONTRIB if split(op)[0] else range(1, newest + 1):
        held = schema(op, opset)
        if held is not None and not held.deprecated and (kernels(op, opset) or _is_function(held)):
            found[held.since_version].append(opset)
    return tuple(tuple(each) for each in found.values())


@functools.cache
def kernels(op: str, opset: int) -> tuple[Constraints, ...]:
    """The element types of each kernel of an operator at `opset`, by name of the schema's constraint."""
    held = schema(op, opset)
    return tuple(
        {name: tuple(each[len("tensor(") : -1] for each in types if each.startswith("tensor(")) for name, types in each}
        for first, last, each in _all().get(op, ())
        if held is not None and first <= held.since_version <= last
    )


@functools.cache
def _all() -> dict[str, list[tuple[int, int, tuple[tuple[str, list[str]], ...]]]]:
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

    found = defaultdict(list)
    for kernel in get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider":
            types = tuple(kernel.type_constraints.items())
            found[qualified(kernel.domain, kernel.op_name)].append((*kernel.version_range, types))
    return found


def _is_function(held: Any) -> bool:
    return held.has_function or held.has_context_dependent_function
