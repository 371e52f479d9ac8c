"""Constants, conversions, and the shape and size of tensors."""

from typing import Any

import numpy as np

from mo_loop.frontend.vocabulary import Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.tensor import ArrayTensor, Tensor
from mo_loop.graph.types import (
    ElementType,
    boolean,
    f4e2m1,
    f8e4m3,
    f8e5m2,
    f8e8m0,
    f32,
    from_onnx,
    i4,
    i32,
    i64,
    string,
    u4,
)
from mo_loop.target import ERROR, Gap

AVOIDS = {
    "Cast": (
        Gap(
            "boolean-of-split", "`Convert` to boolean of an output of `VariadicSplit` does not compile",
            "`NotEqual` to 0", ERROR,
        ),
        Gap("float8-overflow", "`Convert` to float8 does not saturate", "values are limited first, NaN is kept"),
        Gap(
            "four-bits", "i4 and u4 are stored in 8 bits inside a graph, and do not wrap around",
            "the lowest four bits, computed in i32",
        ),
    ),
}  # fmt: skip
"""Operator -> the errors of the runtime that its translator avoids."""


@translates("Constant", since=1)
def constant(
    *,
    value: Any = None,
    sparse_value: Any = None,
    value_float: float | None = None,
    value_floats: tuple[float, ...] | None = None,
    value_int: int | None = None,
    value_ints: tuple[int, ...] | None = None,
    value_string: str | None = None,
    value_strings: tuple[str, ...] | None = None,
    node: Context,
):
    """Exactly one of the attributes is present."""
    tensor: Tensor | None = value if value is not None else sparse_value
    if tensor is None:
        tensor = _from_scalars(
            (value_float, f32), (value_floats, f32), (value_int, i64), (value_ints, i64),
            (value_string, string), (value_strings, string),
        )  # fmt: skip
    return ops.Constant(tensor, graph=node.graph)


def _from_scalars(*candidates: tuple[Any, ElementType]) -> Tensor:
    for given, dtype in candidates:
        if given is not None:
            return ArrayTensor(np.array(given, dtype.numpy), dtype)
    raise ModelError("Constant has no value", code="ML227")


@translates("ConstantOfShape", since=9)
def constant_of_shape(shape, *, value: Any = None):
    """The value broadcast to the shape."""
    filler = ArrayTensor(np.zeros((), np.float32), f32)
    if value is not None:
        filler = value.reshaped(())
    return ops.Broadcast(filler, shape)


@translates("Identity", since=1, elementwise=True)
def identity(x, *, node: Context):
    """The value itself with one more name; an Identity only if the result is a model output."""
    return ops.Identity(x) if node.makes_model_output() else x


@translates("Cast", since=1, elementwise=True)
def cast_by_name(x, *, to: str):
    """In opset 1 the type is a name."""
    return _cast(x, _named_type(to))


@translates("Cast", since=6, without="round_mode", fixed={"saturate": 0}, elementwise=True)
@translates("Cast", since=19, without="round_mode", elementwise=True)
@translates("Cast", since=24, ignored="round_mode", elementwise=True)
def cast(x, *, to: int, saturate: int = 1, round_mode: str = "up"):
    """Only float8 types use `saturate`, only float8e8m0 uses `round_mode`."""
    return _cast(x, from_onnx(to), bool(saturate))


@translates("CastLike", since=15, without="round_mode", fixed={"saturate": 0}, elementwise=True)
@translates("CastLike", since=19, without="round_mode", elementwise=True)
@translates("CastLike", since=24, ignored="round_mode", elementwise=True)
def cast_like(x, target_type, *, saturate: int = 1, round_mode: str = "up"):
    """To the element type of another tensor."""
    return _cast(x, target_type.dtype, bool(saturate))


def _named_type(name: str) -> ElementType:
    import onnx

    try:
        return from_onnx(onnx.TensorProto.DataType.Value(name.upper()))
    except ValueError:
        raise ModelError(f"Cast to {name!r}, which is not an element type", code="ML227") from None


_LARGEST = {f8e4m3: 448.0, f8e5m2: 57344.0}


def _cast(x: Value, to: ElementType, saturate: bool = False):
    if x.dtype is to:
        return x
    if to in (f4e2m1, f8e8m0):
        raise UnsupportedError(f"a cast to {to}: the runtime rounds differently from ONNX", code="ML317")
    if saturate and to in _LARGEST and x.dtype.is_float and _LARGEST.get(x.dtype, np.inf) > _LARGEST[to]:
        if x.dtype in _LARGEST:  # the runtime does not compute in these types
            x = ops.Convert(x, destination_type=f32)
        limit = np.array(_LARGEST[to], x.dtype.numpy)
        x = ops.Select(ops.IsNaN(x), x, ops.Minimum(limit, ops.Maximum(-limit, x)))
    if string in (x.dtype, to):
        raise UnsupportedError(f"a cast from {x.dtype} to {to}: the IR cannot convert strings", code="ML303")
    if to is boolean:
        # Convert truncates first, so that 0.5 becomes false, and does not compile after a VariadicSplit.
        return ops.NotEqual(x, 0)
    if to in (i4, u4) and x.dtype.is_integer:
        # The lowest four bits in i32: the runtime computes 4-bit types in 8 bits.
        offset = 8 if to is i4 else 0
        bits = ops.BitwiseAnd(ops.Convert(x, destination_type=i32) + offset, 15)
        x = bits - offset
    return ops.Convert(x, destination_type=to)


@translates("Shape", since=1, without="start end")
@translates("Shape", since=15)
def shape(x, *, start: int = 0, end: int | None = None):
    """The dimensions from `start` to `end`, both clamped."""
    dims = ops.ShapeOf(x)
    if start == 0 and end is None:
        return dims
    return ops.Slice(dims, [start], [np.iinfo(np.int32).max if end is None else end], [1], [0])


@translates("Size", since=1)
def size(x):
    """The number of elements, a scalar."""
    return ops.ReduceProd(ops.ShapeOf(x), [0], keep_dims=False)
