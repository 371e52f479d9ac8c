"""Sources of trip counts and conditions in a Structure, as text: "constant 10", "input n", "computed (Less)".

A value is followed through operators that hand it on, and out of a body to what feeds its parameter.
"""

from __future__ import annotations

from mo_loop.look.differences.data import Data
from mo_loop.look.differences.structure import Item, Ref
from mo_loop.look.inspection.ports_of_structure import is_constant, tensor_name

_TRANSPARENT = frozenset(("Identity", "Cast", "Convert", "Squeeze", "Unsqueeze", "Reshape"))
"""Operators that return their first input, possibly in another shape or type."""

_COPIES = frozenset(("Maximum", "LogicalOr"))
"""Operators that return their input if both inputs are the same."""

_SMALL = 4
"""The largest number of elements of a constant that is shown with its values."""


def source_of(ref: Ref | None) -> str:
    """What decides a value."""
    ref = _origin(ref)
    if ref is None:
        return "none"
    item = ref.item
    if is_constant(item):
        return f"constant {'' if item.data is None else _values(item.data)}".rstrip()
    if item.feed is not None:
        owner = "" if item.scope.owner is None else item.scope.owner.label
        numbered = item.feed.kind in ("iteration number", "condition")
        return f"{item.feed.kind if numbered else tensor_name(ref)} of {owner}"
    if item.operator in ("input", "Parameter") and not item.inputs:
        is_model = item.scope.owner is None and not item.scope.path
        return f"{'input' if is_model else 'argument'} {tensor_name(ref)}"
    return f"undefined {item.name}" if item.operator == "undefined" else f"computed ({item.operator})"


def continues(owner: Item) -> str | None:
    """The source of the condition that the body of a Loop returns; "always" if it never ends the loop."""
    if owner.condition is None:
        return None
    at = _origin(owner.condition)
    if at is not None and at.item.feed is not None and at.item.feed.kind == "condition":
        return "always"  # the condition that a body receives is true
    source = source_of(owner.condition)
    return {"constant 1": "always", "constant 0": "never"}.get(source, source)


def _origin(ref: Ref | None) -> Ref | None:
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
    if data.tensor is None:
        text = data.text.strip("[]")
        return {"true": "1", "false": "0"}.get(text, text) if len(text) <= 20 else ""
    if data.tensor.size > _SMALL or data.tensor.dtype.bits == 0:
        return ""
    values = data.tensor.array().ravel()
    return ", ".join(str(int(each) if values.dtype.kind in "biu" else each) for each in values)
