"""Draws loops whose states are moved more than computed: delays, the last frames, and states that grow.

Numbers are small integers, so that all element types hold them and sums of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

from tests.fuzz.drawn_graph import Scope

if TYPE_CHECKING:
    from tests.fuzz.states.models import Drawing

Array = np.ndarray[Any, Any]
TYPES = (np.float32, np.float16, np.int32, np.int64, np.bool_)
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
FORMS = ("bare", "rows", "turned", "flat", "first in, first out", "newest first", "columns", "second", "constant")


def integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    """Numbers that every type of `TYPES` holds."""
    return rng.integers(-3, 4, shape).astype(dtype)


def delays(drawing: Drawing) -> None:
    """A Scan whose states become the step's slice of the input, views and parts of it, other states, or constants."""
    rng, graph = drawing.rng, drawing.graph
    dtype, batch, width = TYPES[int(rng.integers(len(TYPES)))], drawing.batch, drawing.width
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    drawing.result.from_zeros = drawing.chance(0.5)
    x = drawing.given("x", integers(rng, (12, batch, width), dtype), ["T", drawing.batch_name, width], 0)
    body = Scope("body")
    forms = [str(each) for each in rng.choice(FORMS, int(rng.integers(1, 4)))]
    if drawing.batch_name == "B":
        forms = [form if form not in ("flat", "constant") else "bare" for form in forms]
    frames = int(rng.integers(2, 4))
    shapes = [_shape(form, batch, width, frames) for form in forms]
    states = [body.parameter(f"s{n}", kind, list(_names(shape, drawing))) for n, shape in enumerate(shapes)]
    piece = body.parameter("piece", kind, [drawing.batch_name, width])
    nexts, read = [], body.op("Cast", piece, to=FLOAT)
    for n, (form, state) in enumerate(zip(forms, states, strict=True)):
        nexts.append(_next(body, form, state, piece, states[n - 1], shapes[n - 1] == shapes[n], (batch, width)))
        read = body.op("Add", read, _as_rows(body, form, state))
    for state, shape in zip(nexts, shapes, strict=True):
        body.result(body.op("Identity", state), kind, list(_names(shape, drawing)))
    body.result(read, FLOAT, [drawing.batch_name, width])
    firsts = [_first(drawing, f"first{n}", shape, dtype) for n, shape in enumerate(shapes)]
    drawing.outputs += graph.op("Scan", *firsts, x, outputs=len(firsts) + 1, num_scan_inputs=1, body=body.body())


def _shape(form: str, batch: int, width: int, frames: int) -> tuple[int, ...]:
    return {"rows": (1, batch, width), "turned": (width, batch), "flat": (batch * width,),
            "first in, first out": (frames, batch, width), "newest first": (frames, batch, width),
            "columns": (batch, frames * width)}.get(form, (batch, width))


def _names(shape: tuple[int, ...], drawing: Drawing) -> list[Any]:
    """The sizes with the name of the batch: it is the last but one, or the first of [batch, ...]."""
    if drawing.batch_name != "B":
        return list(shape)
    at = {1: 0, 3: 1}.get(len(shape), 1 if shape == (drawing.width, drawing.batch) else 0)
    if len(shape) == 2 and drawing.width == drawing.batch:
        return [None, None]
    return ["B" if axis == at else size for axis, size in enumerate(shape)]


def _next(body: Scope, form: str, state: str, piece: str, other: str, fits: bool, sizes: tuple[int, int]) -> str:
    """The next value of a state."""
    one, many = body.constant(np.array([1])), body.constant(np.array([99]))
    first, minus = body.constant(np.array([0])), body.constant(np.array([-1]))
    if form == "second" and fits and other != state:
        return str(body.op("Identity", other))
    if form == "rows":
        return str(body.op("Unsqueeze", piece, first))
    if form == "turned":
        return str(body.op("Transpose", piece, perm=[1, 0]))
    if form == "flat":
        return str(body.op("Reshape", piece, minus))
    if form == "first in, first out":
        late = body.op("Slice", state, one, many, first)
        return str(body.op("Concat", late, body.op("Unsqueeze", piece, first), axis=0))
    if form == "newest first":
        early = body.op("Slice", state, first, minus, first)
        return str(body.op("Concat", body.op("Unsqueeze", piece, first), early, axis=0))
    if form == "columns":
        late = body.op("Slice", state, body.constant(np.array([sizes[1]])), many, one)
        return str(body.op("Concat", late, piece, axis=1))
    if form == "constant":
        kind = next(each.type.tensor_type.elem_type for each in body.parameters if each.name == piece)
        numbers = np.arange(sizes[0] * sizes[1]).reshape(sizes) % 2
        return str(body.op("Identity", body.constant(numbers.astype(helper.tensor_dtype_to_np_dtype(kind)))))
    return str(body.op("Identity", piece))


def _as_rows(body: Scope, form: str, state: str) -> str:
    """A state as float [batch, width], or as a number that is added to one."""
    numbers = body.op("Cast", state, to=FLOAT)
    if form == "turned":
        return str(body.op("Transpose", numbers, perm=[1, 0]))
    if form in ("rows", "first in, first out", "newest first"):
        return str(body.op("ReduceSum", numbers, body.constant(np.array([0])), keepdims=0))
    if form == "columns":
        return str(body.op("ReduceSum", numbers, body.constant(np.array([1])), keepdims=1))
    return str(body.op("ReduceSum", numbers, keepdims=0)) if form == "flat" else str(numbers)


def _first(drawing: Drawing, name: str, shape: tuple[int, ...], dtype: Any) -> str:
    """An initial value: an input or a constant, of zeros or other numbers."""
    array = integers(drawing.rng, shape, dtype)
    array = np.zeros_like(array) if drawing.result.from_zeros else array
    if drawing.batch_name == "B" or drawing.chance(0.5):
        return drawing.given(name, array, _names(shape, drawing))
    return drawing.graph.constant(array)


# -- states that grow


def grown(drawing: Drawing) -> None:
    """A Loop with states that grow along one of their axes, from initial values with and without elements."""
    rng, graph = drawing.rng, drawing.graph
    batch, width = drawing.batch, drawing.width
    drawing.result.from_zeros = drawing.chance(0.4)
    dtypes = [TYPES[int(each)] for each in rng.integers(0, len(TYPES), int(rng.integers(1, 3)))]
    x = drawing.given("x", integers(rng, (12, batch, width), np.float32), ["T", drawing.batch_name, width], 0)
    shape = graph.op("Shape", x)
    length = graph.op("Gather", shape, graph.constant(np.array(0)))
    body = Scope("body")
    number = body.parameter("number", INT64, [])
    condition = body.parameter("condition", BOOL, [])
    piece = body.op("Gather", x, number)
    read, firsts, nexts = piece, [], []
    for n, dtype in enumerate(dtypes):
        axis = int(rng.integers(2))
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        dims: list[Any] = [None, drawing.batch_name, width] if axis == 0 else [drawing.batch_name, None, width]
        state = body.parameter(f"s{n}", kind, dims)
        firsts.append(_first_rows(drawing, f"first{n}", axis, dtype, shape))
        row = body.op("Unsqueeze", body.op("Cast", piece, to=kind), body.constant(np.array([axis])))
        parts = [state, row] if drawing.chance(0.7) else [row, state]
        if drawing.chance(0.2):
            parts.insert(1, row)
        nexts.append(body.op("Concat", *parts, axis=axis))
        seen = nexts[-1] if drawing.chance(0.5) else state
        total = body.op("ReduceSum", body.op("Cast", seen, to=FLOAT), body.constant(np.array([axis])), keepdims=0)
        read = body.op("Add", read, total)
    body.result(body.op("Identity", condition))
    for each in (*nexts, read):
        body.result(each)
    go = graph.constant(np.array(True))
    drawing.outputs += graph.op("Loop", length, go, *firsts, outputs=len(firsts) + 1, body=body.body())


def _first_rows(drawing: Drawing, name: str, axis: int, dtype: Any, shape: str) -> str:
    """An initial value: constant, given, or computed from the sizes of the input or from a row of numbers."""
    rng, graph = drawing.rng, drawing.graph
    rows = int(rng.integers(0, 3))
    sizes: list[Any] = [drawing.batch, drawing.width]
    dims: list[Any] = [drawing.batch_name, drawing.width]
    sizes.insert(axis, rows)
    dims.insert(axis, None)
    array = integers(rng, tuple(sizes), dtype)
    array = np.zeros_like(array) if drawing.result.from_zeros else array
    way = int(rng.integers(4))
    if way == 0 and drawing.batch_name != "B":
        return graph.constant(array)
    if way == 1:
        row = drawing.given(name, array.take([0], axis).squeeze(axis) if rows else np.zeros(
            (drawing.batch, drawing.width), dtype), [drawing.batch_name, drawing.width])
        return str(graph.op("Unsqueeze", row, graph.constant(np.array([axis]))))
    if way == 2:
        batch = graph.op("Slice", shape, graph.constant(np.array([1])), graph.constant(np.array([2])))
        parts = [batch, graph.constant(np.array([drawing.width]))]
        parts.insert(axis, graph.constant(np.array([rows])))
        value = helper.make_tensor("value", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [1], [0])
        if not drawing.result.from_zeros:
            value = helper.make_tensor("value", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [1], [1])
        return str(graph.op("ConstantOfShape", graph.op("Concat", *parts, axis=0), value=value))
    return drawing.given(name, array, dims)
