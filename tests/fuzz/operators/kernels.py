"""The element types for which ONNX Runtime has a kernel of an operator, at an opset: read from its table of kernels."""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import Any

Constraints = dict[str, tuple[str, ...]]
NEWEST = 26
"""The newest opset that ONNX Runtime loads."""


def schema(op: str, opset: int) -> Any:
    """The schema of an operator at `opset`; None below its first opset."""
    import onnx

    try:
        return onnx.defs.get_schema(op, opset, "")
    except onnx.defs.SchemaError:
        return None


@functools.cache
def opsets(op: str) -> tuple[tuple[int, ...], ...]:
    """The opsets at which ONNX Runtime runs an operator, grouped by schema."""
    found: dict[int, list[int]] = defaultdict(list)
    for opset in range(1, NEWEST + 1):
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
        if kernel.domain == "" and kernel.provider == "CPUExecutionProvider":
            found[kernel.op_name].append((*kernel.version_range, tuple(kernel.type_constraints.items())))
    return found


def _is_function(held: Any) -> bool:
    return held.has_function or held.has_context_dependent_function
