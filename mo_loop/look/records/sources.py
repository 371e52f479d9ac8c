"""The source of the trip count of a loop, as text: "constant 10", "input n", "computed (Less)", "7 (dimension 0 of x)".

A loop whose iterations have several steps shows the number of its steps, "input n steps, 16 in each iteration", or what
an iteration is: "constant 10, each of 16 steps".

A value is followed through operators that do not change it, and out of a body to the outer value of its parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mo_loop.look.records.data import Data
from mo_loop.look.records.structure import Item, Ref
from mo_loop.look.records.tensor_ports import TensorPort, tensor_name, tensor_port
from mo_loop.ops.control import STEPS, slice_count

Told = Callable[[Ref | None], str]

_TRANSPARENT = frozenset(("Identity", "Cast", "Convert", "Squeeze", "Unsqueeze", "Reshape"))
"""Operators that return their first input, possibly in another shape or type."""

_COPIES = frozenset(("Maximum", "LogicalOr"))
"""Operators that return their input if both inputs are the same."""

_SMALL = 4
"""The largest number of elements of a constant that is shown with its values."""


def trip_count(owner: Item) -> str | None:
    """The source of the number of iterations; None of an If, and of an operator that is not known."""
    if owner.direct is None or owner.operator == "If":
        return None
    told = owner.info.get(f"{STEPS}/value", "")
    steps = int(told) if told.isascii() and told.isdecimal() and len(told) < 10 else 1
    if owner.is_loop:
        return in_steps(owner.input(0), steps, source_of, _number)
    feeds = [each.feed for body in owner.bodies.values() for each in body.parameters]
    sliced = next((feed for feed in feeds if feed is not None and feed.kind == "sliced"), None)
    return "none" if sliced is None else each_of(slices(tensor_port(sliced.source), slicing(sliced.settings)), steps)


def in_steps(count: Ref | None, steps: int, told: Told, number: Told) -> str:
    """The source of the number of steps of a Loop with `steps` in each iteration, where (n + steps - 1) / steps counts
    the iterations; else the text of the trip count. `told` returns the text of a value, `number` that of a constant."""
    total = _operand(_operand(count, "Divide", str(steps), number), "Add", str(steps - 1), number)
    if steps < 2 or total is None:
        return each_of(told(count), steps)
    return f"{told(_operand(total, 'Maximum', '0', number) or total)} steps, {steps} in each iteration"


def each_of(text: str, steps: int) -> str:
    """The text of a number of iterations that have several steps. A negative number means no limit."""
    limits = text and not text.removeprefix("constant ").startswith("-")
    return f"{text}, each of {steps} steps" if steps > 1 and limits else text


def _operand(ref: Ref | None, operator: str, constant: str, number: Told) -> Ref | None:
    """The value that `operator` combines with a constant; None for another value."""
    at = origin(ref)
    if at is None or at.item.operator != operator or len(at.item.inputs) != 2:
        return None
    left, right = at.item.inputs
    return left if number(right) == constant else right if number(left) == constant else None


def _number(ref: Ref | None) -> str:
    """The value of a small constant."""
    at = origin(ref)
    return "" if at is None or at.item.data is None else _values(at.item.data)


def condition(owner: Item) -> str | None:
    """The source of the condition before the first iteration, or of an If."""
    if owner.is_loop or owner.operator == "If":
        return source_of(owner.input(1 if owner.is_loop else 0))
    return None


def goes_on(owner: Item) -> str | None:
    """The source of the condition that the body of a Loop returns; "always" if it never ends the loop."""
    if not owner.is_loop:
        return None
    at = origin(owner.condition)
    if at is not None and at.item.feed is not None and at.item.feed.kind == "condition":
        return "always"  # the condition that a body receives is true
    source = source_of(owner.condition)
    return {"constant 1": "always", "constant 0": "never"}.get(source, source)


def source_of(ref: Ref | None) -> str:
    """The source of a value, as text."""
    ref = origin(ref)
    if ref is None:
        return "none"
    item = ref.item
    if item.is_constant:
        return f"constant {'' if item.data is None else _values(item.data)}".rstrip()
    if item.feed is not None:
        owner = "" if item.scope.owner is None else item.scope.owner.label
        numbered = item.feed.kind in ("iteration number", "condition")
        return f"{item.feed.kind if numbered else tensor_name(ref)} of {owner}"
    if item.operator in ("input", "Parameter") and not item.inputs:
        is_model = item.scope.owner is None and not item.scope.path
        return f"{'input' if is_model else 'argument'} {tensor_name(ref)}"
    return f"undefined {item.name}" if item.operator == "undefined" else f"computed ({item.operator})"


def origin(ref: Ref | None) -> Ref | None:
    """The value that is handed on; in a cycle any of it."""
    seen: set[int] = set()
    while ref is not None and id(ref.item) not in seen:
        seen.add(id(ref.item))
        item = ref.item
        if _hands_on(item):
            ref = item.inputs[0]
        elif item.feed is not None and item.feed.source is not None and _never_changes(item):
            ref = item.feed.source
        else:
            break
    return ref


def slicing(settings: Mapping[str, str]) -> dict[str, int]:
    """The slices of an input or output; ONNX gives a direction instead of a stride, a Loop of ONNX neither."""
    found = {key: settings.get(key) for key in ("axis", "start", "end", "stride", "part_size")}
    if found["stride"] is None:
        backward = settings.get("direction") == "reverse"
        found |= {"axis": found["axis"] or "0", "stride": "-1" if backward else "1"}
    return {key: int(value) for key, value in found.items() if value is not None}


def slices(value: TensorPort, settings: Mapping[str, int]) -> str:
    """The number of slices, as text; it names the dimension if its size is not known."""
    axis, shape = settings["axis"], value.shape
    text = f"dimension {axis} of {value.name}"
    size = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    stride = settings["stride"]
    if isinstance(size, int):
        start, end = (0, -1) if stride > 0 else (-1, 0)
        start, end = settings.get("start", start), settings.get("end", end)
        return f"{slice_count(size, start, end, stride, settings.get('part_size', 1))} ({text})"
    known = f"{size} ({text})" if size not in (None, "?") else text
    return known if abs(stride) == 1 else f"{known}, {abs(stride)} at a time"


def _hands_on(item: Item) -> bool:
    if item.operator in _TRANSPARENT:
        return bool(item.inputs)
    return item.operator in _COPIES and len(item.inputs) == 2 and item.inputs[0] == item.inputs[1] is not None


def _never_changes(parameter: Item) -> bool:
    """Whether a parameter has the same value in all iterations: an invariant, or a state that returns itself."""
    feed = parameter.feed
    if feed is None or feed.kind != "merged":
        return feed is not None and feed.kind == "invariant"
    at, seen = feed.next, set()
    while at is not None and id(at.item) not in seen and _hands_on(at.item):
        seen.add(id(at.item))
        at = at.item.inputs[0]
    return at is not None and at.item is parameter


def _values(data: Data) -> str:
    """The values of a small constant."""
    if data.text:
        text = data.text.strip("[]")
        return {"true": "1", "false": "0"}.get(text, text) if len(text) <= 20 else ""
    values = data.array(_SMALL)
    if values is None or values.dtype.kind == "O":
        return ""
    return ", ".join(str(int(each) if values.dtype.kind in "biu" else each) for each in values)
