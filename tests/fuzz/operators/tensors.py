"""Constants, copies, casts, and operators on shapes."""

from typing import Any

import numpy as np

from .draw import OMITTED, Draw, Node
from .model import FOUR_BITS
from .table import unary
from .values import numbers

NARROW = (
    "float float16 double bfloat16 int8 uint8 int16 uint16 int32 uint32 int64 uint64 bool float8e4m3fn float8e5m2 int4 "
    "uint4"
)


def _onnx(dtype: Any) -> int:
    from onnx import helper

    return 8 if dtype.kind == "O" else int(helper.np_dtype_to_tensor_dtype(dtype))


def constant(d: Draw) -> Node:
    """One of the attributes that the opset has."""
    from onnx import numpy_helper

    ways = [name for name in ("value", "value_float", "value_int", "value_floats", "value_ints")
            if name in d.schema.attributes]
    way = d.pick(*ways)
    array = numbers(d.values, tuple(d.shape(0, 3)), d.dtype())
    some = d.integer(0, 3)
    values = {"value": numpy_helper.from_array(array, "value"), "value_float": d.number(-3, 3),
              "value_int": d.integer(-9, 9), "value_floats": [d.number(-3, 3) for _ in range(some)],
              "value_ints": [d.integer(-9, 9) for _ in range(some)]}
    chosen = values[way]
    return d.node([], **{way: chosen if chosen != [] else [1]})


def filled(d: Draw) -> Node:
    """ConstantOfShape: one number, a shape."""
    from onnx import numpy_helper

    value = numbers(d.values, (1,), d.dtype("T2"))
    shape = d.parameter(d.shape(0, 4), constant=0.4)
    return d.node([shape], value=d.maybe(numpy_helper.from_array(value, "value"), 0.7))


def cast(d: Draw) -> Node:
    """From any type to any other."""
    source, target = d.dtype("T1", NARROW), d.dtype("T2", NARROW)
    # ONNX does not define the cast of a negative number to an unsigned type, or of an infinity to an integer type.
    values = "positive" if target.name.startswith("uint") else "special" if target.kind in "fb" else "any"
    x = d.data(d.shape(0, 4), source, values)
    if target.kind == "u" and source.kind in "iu":
        x.array = np.abs(x.array.astype(np.int64)).astype(source)
    return d.node([x], to=_onnx(target), saturate=d.maybe(d.pick(0, 1), 0.2) if "float8" in target.name else OMITTED,
                  narrow=target.name in FOUR_BITS)


def cast_like(d: Draw) -> Node:
    source, target = d.dtype("T1", NARROW), d.dtype("T2", NARROW)
    x = d.data(d.shape(0, 4), source, "positive")
    return d.node([x, d.data(d.shape(0, 3), target, "positive", constant=0.3)], narrow=target.name in FOUR_BITS)


def shape(d: Draw) -> Node:
    """All dimensions, or a range of them."""
    x = d.data(d.shape(0, 5), d.dtype("T"))
    bounds = [d.maybe(d.integer(-6, 6), 0.5) for _ in range(2)]
    return d.node([x], start=bounds[0] if d.since >= 15 else OMITTED, end=bounds[1] if d.since >= 15 else OMITTED)


OPERATORS = {"Constant": constant, "ConstantOfShape": filled, "Identity": unary("special"), "Cast": cast,
             "CastLike": cast_like, "Shape": shape, "Size": unary()}
