"""The operators of random bodies. Each piece appends nodes to a scope and returns a value, or None if nothing fits.

    @piece(3)                                   weight
    def binary(s: Scope) -> Val | None: ...

    @piece(3, of=is_float)                      a value that is drawn before
    def unary(s: Scope, val: Val) -> Val | None: ...

Operators whose result jumps on rounding (float to int casts, ties) are rare or have inputs without ties.
"""

from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import numpy as np

from .scope import Scope
from .values import BOOL, FLOAT, INT32, INT64, Dim, Shape, Val

Piece = Callable[[Scope], Val | None]
PIECES: list[tuple[Piece, int, int]] = []


def is_number(val: Val) -> bool:
    return val.dtype != BOOL


def is_float(val: Val) -> bool:
    return val.dtype == FLOAT


def piece(weight: int, since: int = 8, of: Callable[[Val], bool] | None = None) -> Callable[..., Any]:
    """Register a piece; it is drawn with a weight in models of opset `since` or newer. Its second parameter is a value
    for which `of` is true; nothing fits if there is none."""

    def register(function: Any) -> Any:
        def read(s: Scope) -> Val | None:
            val = s.pick(of)
            return None if val is None else function(s, val)

        PIECES.append((function if of is None else read, weight, since))
        return function

    return register


def random_op(s: Scope) -> Val | None:
    """Append one random operator; None after a few attempts."""
    known = [(function, weight) for function, weight, since in PIECES if since <= s.context.opset]
    functions, weights = zip(*known, strict=True)
    for _ in range(12):
        function = s.rng.choices(functions, weights)[0]
        made: Val | None = function(s)
        if made is not None:
            return made
    return None


# ----------------------------------------------------------------------------------------------------------- helpers


def any_size(shape: Shape) -> int:
    """An estimate of the number of elements, for bounds of sums."""
    size = 1
    for d in shape:
        size *= d if isinstance(d, int) else 6
    return size


def broadcast(a: Shape, b: Shape) -> Shape | None:
    """The common shape, or None unless it is certain."""
    result: list[Dim] = []
    for x, y in zip_longest(reversed(a), reversed(b), fillvalue=1):
        if x != y and 1 not in (x, y):
            return None
        result.append(y if x == 1 else x)
    return tuple(reversed(result))


def partner(s: Scope, val: Val, dtype: int | None = None) -> Val | None:
    """A second operand: a visible value that broadcasts, or a constant."""
    wanted = val.dtype if dtype is None else dtype
    if s.context.chance(0.25):
        static = [d if isinstance(d, int) and s.context.chance(0.7) else 1 for d in val.shape]
        return s.random_constant(wanted, static[s.rng.randint(0, len(static)) :])
    return s.pick(lambda v: v.dtype == wanted and broadcast(v.shape, val.shape) is not None)


def axis_of(s: Scope, val: Val, axis: int) -> int:
    """The axis, counted from either end."""
    return axis - val.rank if s.context.opset >= 11 and s.context.chance(0.3) else axis


def non_empty(s: Scope, val: Val) -> bool:
    return all(s.context.at_least(d, 1) for d in val.shape)


def reduce_(s: Scope, op: str, val: Val, axes: list[int], keepdims: int, mag: float) -> Val:
    """A reduction; its axes are an attribute or an input, by opset."""
    as_input = s.context.opset >= (13 if op == "ReduceSum" else 18)
    shape = [1 if i in axes else d for i, d in enumerate(val.shape)]
    if not keepdims:
        shape = [d for i, d in enumerate(val.shape) if i not in axes]
    # ONNX Runtime reduces an empty tensor incorrectly if axes are negative.
    named = [axis_of(s, val, a) for a in axes] if non_empty(s, val) else axes
    if as_input:
        return s.emit(op, [val, s.ints(*named)], val.dtype, tuple(shape), mag, keepdims=keepdims)
    return s.emit(op, [val], val.dtype, tuple(shape), mag, axes=named, keepdims=keepdims)


def squeeze(s: Scope, val: Val, axes: list[int]) -> Val:
    shape = tuple(d for i, d in enumerate(val.shape) if i not in axes)
    if s.context.opset >= 13:
        return s.emit("Squeeze", [val, s.ints(*axes)], val.dtype, shape, val.mag)
    return s.emit("Squeeze", [val], val.dtype, shape, val.mag, axes=axes)


def unsqueeze(s: Scope, val: Val, axis: int) -> Val:
    """`axis` is among the axes of the result."""
    shape = (*val.shape[:axis], 1, *val.shape[axis:])
    named = axis - len(shape) if s.context.opset >= 11 and s.context.chance(0.3) else axis
    if s.context.opset >= 13:
        return s.emit("Unsqueeze", [val, s.ints(named)], val.dtype, shape, val.mag)
    return s.emit("Unsqueeze", [val], val.dtype, shape, val.mag, axes=[named])


def cast(s: Scope, val: Val, dtype: int) -> Val:
    return val if val.dtype == dtype else s.emit("Cast", [val], dtype, val.shape, val.mag, to=dtype)


def compare(s: Scope, op: str, a: Val, b: Val, shape: Shape) -> Val:
    """Less or Greater; of integers since opset 9."""
    if s.context.opset < 9:
        a, b = cast(s, a, FLOAT), cast(s, b, FLOAT)
    return s.emit(op, [a, b], BOOL, shape)


def remainder(s: Scope, val: Val, divisor: int) -> Val:
    """An integer modulo a constant; before opset 10 with the sign of the dividend."""
    by = s.scalar(divisor, val.dtype)
    if s.context.opset >= 10:
        return s.emit("Mod", [val, by], val.dtype, val.shape, divisor)
    whole = s.emit("Div", [val, by], val.dtype, val.shape, val.mag)
    multiple = s.emit("Mul", [whole, by], val.dtype, val.shape, val.mag)
    return s.emit("Sub", [val, multiple], val.dtype, val.shape, divisor)


def cut(s: Scope, val: Val, axis: int, start: int, end: int, length: Dim) -> Val:
    """Slice along one axis, forward."""
    shape = (*val.shape[:axis], length, *val.shape[axis + 1 :])
    if s.context.opset < 10:
        return s.emit("Slice", [val], val.dtype, shape, val.mag, starts=[start], ends=[end], axes=[axis])
    bounds = [s.ints(start), s.ints(end), s.ints(axis_of(s, val, axis))]
    return s.emit("Slice", [val, *bounds], val.dtype, shape, val.mag)


def to_scalar(s: Scope, val: Val, dtype: int) -> Val:
    """A scalar that depends on all elements."""
    number = cast(s, val, INT64) if val.dtype == BOOL else val
    if number.rank:
        axes = list(range(number.rank))
        mean = number.dtype == FLOAT and non_empty(s, number)
        mag = number.mag if mean else number.mag * any_size(number.shape)
        number = reduce_(s, "ReduceMean" if mean else "ReduceSum", number, axes, 0, mag)
    if dtype == BOOL:
        threshold = s.scalar(s.rng.uniform(-0.5, 0.5) if number.dtype == FLOAT else 1, number.dtype)
        return compare(s, "Greater", number, threshold, number.shape)
    if number.dtype == FLOAT and dtype != FLOAT:
        # A scaled mean is rarely an integer, where rounding decides; scaling comes last, or it would saturate at 1.
        number = s.squash(number, 2.0)
        number = s.emit("Mul", [number, s.scalar(3.7)], FLOAT, number.shape, number.mag * 3.7)
    return cast(s, number, dtype)


# ------------------------------------------------------------------------------------------------------ elementwise


@piece(9, of=is_float)
def unary(s: Scope, val: Val) -> Val | None:
    op, mag = s.rng.choice(
        [("Neg", val.mag), ("Relu", val.mag), ("Tanh", 1.0), ("Sigmoid", 1.0), ("Abs", val.mag), ("Sin", 1.0),
         ("LeakyRelu", val.mag), ("Identity", val.mag), ("Softsign", 1.0)]
    )
    return s.emit(op, [val], FLOAT, val.shape, mag)


@piece(2)
def unary_integer(s: Scope) -> Val | None:
    val = s.pick(lambda v: v.dtype in (INT32, INT64))
    return val and s.emit(s.rng.choice(("Neg", "Abs", "Identity")), [val], val.dtype, val.shape, val.mag)


@piece(14)
def binary(s: Scope) -> Val | None:
    a = s.pick(is_number)
    b = partner(s, a) if a else None
    if a is None or b is None:
        return None
    op = s.rng.choice(("Add", "Add", "Sub", "Mul", "Mul", "Max", "Min"))
    if op in ("Max", "Min") and a.dtype != FLOAT and s.context.opset < 12:
        op = "Add"
    if s.context.chance(0.4):
        a, b = b, a
    shape = broadcast(a.shape, b.shape)
    assert shape is not None
    mag = {"Add": a.mag + b.mag, "Sub": a.mag + b.mag, "Mul": a.mag * b.mag}.get(op, max(a.mag, b.mag))
    return s.emit(op, [a, b], a.dtype, shape, mag)


@piece(2, of=is_number)
def safe_division(s: Scope, a: Val) -> Val | None:
    if a.dtype != FLOAT:
        return s.emit("Div", [a, s.scalar(s.rng.choice((2, 3, 4)), a.dtype)], a.dtype, a.shape, a.mag)
    b = partner(s, a)
    if b is None:
        return None
    divisor = s.emit("Add", [s.emit("Abs", [b], FLOAT, b.shape, b.mag), s.scalar(1.0)], FLOAT, b.shape, b.mag + 1)
    return s.emit("Div", [a, divisor], FLOAT, broadcast(a.shape, b.shape) or (), a.mag)


@piece(1, of=is_float)
def power(s: Scope, val: Val) -> Val | None:
    if s.context.chance(0.5):
        return s.emit("Pow", [val, s.scalar(2.0)], FLOAT, val.shape, val.mag**2)
    base = s.emit("Add", [s.emit("Abs", [val], FLOAT, val.shape, val.mag), s.scalar(0.5)], FLOAT, val.shape,
                  val.mag + 1)
    return s.emit("Pow", [base, s.scalar(s.rng.choice((0.5, 1.5, -0.5)))], FLOAT, val.shape, base.mag**1.5 + 2)


@piece(2, since=11, of=is_float)
def clip(s: Scope, val: Val) -> Val | None:
    low = s.scalar(-0.5) if s.context.chance(0.5) else None
    s.context.features["empty optional input"] += low is None
    high = s.scalar(0.75) if low is None or s.context.chance(0.6) else None
    return s.emit("Clip", [val, low, high] if high else [val, low], FLOAT, val.shape, val.mag)


@piece(3)
def comparison(s: Scope) -> Val | None:
    a = s.pick(is_number)
    b = partner(s, a) if a else None
    if a is None or b is None:
        return None
    ops = ["Less", "Greater"]
    ops += ["LessOrEqual", "GreaterOrEqual"] if s.context.opset >= 16 else []
    ops += ["Equal"] if a.dtype != FLOAT else []
    shape, op = broadcast(a.shape, b.shape) or (), s.rng.choice(ops)
    return s.emit(op, [a, b], BOOL, shape) if op == "Equal" else compare(s, op, a, b, shape)


@piece(2)
def logic(s: Scope) -> Val | None:
    a = s.pick(lambda v: v.dtype == BOOL)
    if a is None or s.context.chance(0.3):
        return a and s.emit("Not", [a], BOOL, a.shape)
    b = partner(s, a)
    return b and s.emit(s.rng.choice(("And", "Or", "Xor")), [a, b], BOOL, broadcast(a.shape, b.shape) or ())


@piece(4, since=9, of=is_number)
def where(s: Scope, a: Val) -> Val | None:
    condition, b = partner(s, a, BOOL), partner(s, a)
    if condition is None or b is None:
        return None
    shape = broadcast(broadcast(a.shape, b.shape) or (), condition.shape)
    if shape is None:
        return None
    return s.emit("Where", [condition, a, b], a.dtype, shape, max(a.mag, b.mag))


@piece(2, of=lambda v: v.dtype != FLOAT)
def type_change(s: Scope, val: Val) -> Val | None:
    kinds = [t for t in (FLOAT, FLOAT, INT64, INT32, BOOL) if t != val.dtype]
    return cast(s, val, s.rng.choice(kinds))


@piece(1, since=11, of=lambda v: v.dtype == FLOAT and v.rank > 0)
def running_sum(s: Scope, val: Val) -> Val | None:
    axis = s.rng.randrange(val.rank)
    at = s.constant(np.array(axis_of(s, val, axis), np.int64))
    options = {"reverse": s.rng.randint(0, 1), "exclusive": s.rng.randint(0, 1)}
    return s.emit("CumSum", [val, at], FLOAT, val.shape, val.mag * any_size((val.shape[axis],)), **options)


@piece(2, of=lambda v: is_float(v) and v.rank > 0)
def softmax(s: Scope, val: Val) -> Val | None:
    return s.emit("Softmax", [val], FLOAT, val.shape, 1.0, axis=axis_of(s, val, s.rng.randrange(val.rank)))


@piece(4)
def call_function(s: Scope) -> Val | None:
    """A model-local function of one or two operands of equal shape."""
    if not s.context.functions:
        return None
    a = s.pick(is_float)
    b = s.pick(lambda v: is_float(v) and a is not None and v.shape == a.shape)
    if a is None or b is None:
        return None
    function = s.rng.choice(s.context.functions)
    attributes = {name: s.rng.uniform(0.1, 0.9) for name in function.attribute}
    s.context.features["function call" + (" in body" if s.outer else "")] += 1
    return s.emit(function.name, [a, b], FLOAT, a.shape, 8.1, domain=function.domain, **attributes)


# ---------------------------------------------------------------------------------------------------------- algebra


@piece(4, of=lambda v: is_float(v) and v.rank > 0 and isinstance(v.shape[-1], int) and 0 < v.shape[-1] <= 8)
def matmul(s: Scope, val: Val) -> Val | None:
    # Two products in a row of inner size 1 do not compile on the CPU device, in bodies and outside.
    depth, width = val.shape[-1], s.rng.randint(2, 4)
    assert isinstance(depth, int)
    weights = s.random_constant(FLOAT, (depth, width))
    return s.emit("MatMul", [val, weights], FLOAT, (*val.shape[:-1], width), val.mag * depth)


@piece(2, of=lambda v: is_float(v) and v.rank == 2 and isinstance(v.shape[1], int) and 0 < v.shape[1] <= 8)
def gemm(s: Scope, val: Val) -> Val | None:
    depth, width, swapped = val.shape[1], s.rng.randint(2, 4), s.rng.randint(0, 1)
    assert isinstance(depth, int)
    operands = [val, s.random_constant(FLOAT, (width, depth) if swapped else (depth, width))]
    if s.context.opset < 11 or s.context.chance(0.6):
        operands.append(s.random_constant(FLOAT, (width,)))
    return s.emit("Gemm", operands, FLOAT, (val.shape[0], width), val.mag * depth + 1, transB=swapped, alpha=0.5)


@piece(4, of=lambda v: is_number(v) and v.rank > 0)
def reduction(s: Scope, val: Val) -> Val | None:
    op = s.rng.choice(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"))
    if not non_empty(s, val) or (op == "ReduceMean" and val.dtype != FLOAT):
        op = "ReduceSum"
    axes = sorted(s.rng.sample(range(val.rank), s.rng.randint(1, val.rank)))
    mag = val.mag * (any_size(tuple(val.shape[a] for a in axes)) if op == "ReduceSum" else 1)
    return reduce_(s, op, val, axes, s.rng.randint(0, 1), mag)


# ------------------------------------------------------------------------------------------------- wanted type, shape


def like(s: Scope, template: Val, limit: float | None = None) -> Val:
    """A value of the template's type and shape, made in this scope from values computed here."""
    other = s.pick(lambda v: v.name != template.name, local=0.9)
    if other is None:
        return s.emit("Identity", [template], template.dtype, template.shape, template.mag)
    fits = other.dtype == template.dtype and broadcast(other.shape, template.shape) == template.shape
    if fits and other.shape == template.shape and any(v is other for v in s.own) and s.context.chance(0.5):
        return s.squash(other, limit)
    operand = other if fits else to_scalar(s, other, template.dtype)
    op = "Xor" if template.dtype == BOOL else s.rng.choice(("Add", "Sub"))
    made = s.emit(op, [template, operand], template.dtype, template.shape, template.mag + operand.mag)
    return s.squash(made, limit)
