"""Along which axis a state grows, from the shapes before and after an inference."""

from __future__ import annotations

from dataclasses import dataclass

from mo_loop.errors import UnsupportedError
from mo_loop.graph.dimension import Dim, Dimension
from mo_loop.ops.base import Parameter, Result


@dataclass(frozen=True)
class Growth:
    """The axis that is longer after an inference; None if the shape stays."""

    axis: int | None


def growth_of(parameter: Parameter, result: Result, appended: int | None) -> Growth | str:
    """The growth from the shape of an input to that of its next value, or the reason why it cannot be a state.

    Dimensions that only may differ are equal: exporters give the batch of each input a name of its own.

    Args:
        appended: the axis along which the graph appends to the input, if that is known. No other one grows then.
    """
    before, after = parameter.output.type, result.value.type
    if before.dtype is not after.dtype:
        return f"the element types {before.dtype} and {after.dtype} differ"
    if before.shape is None or after.shape is None:
        return "the rank is not known"
    if len(before.shape) != len(after.shape):
        return f"the ranks {len(before.shape)} and {len(after.shape)} differ"
    dims = list(zip(before.shape, after.shape, strict=True))
    surely = [axis for axis, (old, new) in enumerate(dims) if _is_sure(old, new)]
    if len(surely) > 1:
        shown = " and ".join(f"{dims[axis][0]} becomes {dims[axis][1]}" for axis in surely[:2])
        return f"more than one dimension changes: {shown}"
    if surely:
        axis = surely[0]
        old, new = dims[axis]
        if isinstance(old, int) and isinstance(new, int) and axis != appended:
            return f"dimension {axis} is {old} before and {new} after, and nothing is appended along it"
        return Growth(axis)
    if appended is None or isinstance(dims[appended][0], int):  # a static size is asked for in each inference
        return Growth(None)
    old, new = dims[appended]
    return Growth(None if old == new else appended)


def _is_sure(old: Dimension, new: Dimension) -> bool:
    """Whether a dimension surely changes: the two cannot be equal, or the new one is the old one and something more."""
    difference = new - old
    if isinstance(difference, int):
        return difference != 0
    return isinstance(old, Dim) and isinstance(new, Dim) and set(old.terms) <= set(new.terms)


def misfit(before: str, after: str, parameter: Parameter, result: Result, reason: str) -> UnsupportedError:
    """The error of a pair whose types do not fit."""
    return UnsupportedError(
        f"the output {after!r}, {result.value.type}, cannot be the next value of the input {before!r}, "
        f"{parameter.output.type}",
        where=result.value.origin, why=reason, code="ML327",
        hint="pair it with an output of its type, or keep it an input (--stateful-pair "
        f"{before}=); shapes can be given with --input",
    )  # fmt: skip
