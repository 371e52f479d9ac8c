"""The source of the trip count of a loop, as text: "constant 10", "input n", "computed (Less)", "7 (dimension 0 of x)".

A loop whose iterations have several steps shows the number of its steps, "input n steps, 16 at a time", or that of its
iterations, "constant 10 iterations, 16 steps at a time".

The page shows a text in the port map, which also has the conditions:

    set_trip_counts(state)
    state.nodes[17]["port_map"]["trip_count"]       # "10", "at most 10, while less is true", "dimension 0 of x: N"
    # of a loop with several steps in each iteration "n (Parameter) steps, 16 at a time"

A value is followed through operators that do not change it, and out of a body to the outer value of its parameter.
"""

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from mo_loop.look.records.node_records import GraphState, Record
from mo_loop.look.records.structure import Feed, Item, Ref, TensorPort, port_of, shown_dims, split, tensor_port
from mo_loop.ops.control import STEPS, slice_count

_STEPS = re.compile(rf'{STEPS}: {{value: "([0-9]{{1,9}})"}}')
"""The number of steps in the text of a rt_info."""

_TRANSPARENT = frozenset(("Identity", "Cast", "Convert", "Squeeze", "Unsqueeze", "Reshape"))
"""Operators that return their first input, possibly in another shape or type."""

_COPIES = frozenset(("Maximum", "LogicalOr"))
"""Operators that return their input if both inputs are the same."""

_SMALL = 4
"""The largest number of elements of a constant that is shown with its values."""

# -- values


def origin(ref: Ref | None, *, inside: bool = False) -> Ref | None:
    """The value that is handed on; in a cycle any of it. With `inside` the last one in its scope."""
    seen: set[int] = set()
    while ref is not None and id(ref.item) not in seen:
        seen.add(id(ref.item))
        item = ref.item
        if _hands_on(item):
            ref = item.inputs[0]
        elif not inside and item.feed is not None and item.feed.source is not None and _never_changes(item):
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
    at = origin(feed.next, inside=True)
    return at is not None and at.item is parameter


def _in_steps(
    count: Ref | None, steps: int, source: Callable[[Ref | None], str], number: Callable[[Ref | None], str]
) -> str:
    """The source of the number of steps of a Loop with `steps` in each iteration, where (n + steps - 1) / steps counts
    the iterations; else the text of the trip count. `source` returns the text of a value, `number` that of a constant.
    """

    def operand(ref: Ref | None, operator: str, constant: str) -> Ref | None:
        """The value that `operator` combines with a constant; None for another value."""
        at = origin(ref)
        if at is None or at.item.operator != operator or len(at.item.inputs) != 2:
            return None
        left, right = at.item.inputs
        return left if number(right) == constant else right if number(left) == constant else None

    total = operand(operand(count, "Divide", str(steps)), "Add", str(steps - 1))
    if steps < 2 or total is None:
        return _each_of(source(count), steps)
    return f"{source(operand(total, 'Maximum', '0') or total)} steps, {steps} at a time"


def _each_of(text: str, steps: int) -> str:
    """The text of a number of iterations that have several steps. A negative number means no limit."""
    limits = text and not text.removeprefix("constant ").startswith("-")
    return f"{text} iterations, {steps} steps at a time" if steps > 1 and limits else text


def slicing(settings: Mapping[str, str]) -> dict[str, int]:
    """The slices of an input or output; ONNX gives a direction instead of a stride, a Loop of ONNX neither."""
    found = {key: settings.get(key) for key in ("axis", "start", "end", "stride", "part_size")}
    if found["stride"] is None:
        backward = settings.get("direction") == "reverse"
        found |= {"axis": found["axis"] or "0", "stride": "-1" if backward else "1"}
    return {key: int(value) for key, value in found.items() if value is not None}


def _slices(value: TensorPort, settings: Mapping[str, int], unknown: Callable[[str, str], str]) -> str:
    """The number of slices, as text; `unknown` returns that for a dimension with a symbol or "?" as its size."""
    axis, stride, shape = settings["axis"], settings["stride"], value.shape
    text = f"dimension {axis} of {value.name}"
    size = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    if isinstance(size, int):
        start, end = (0, -1) if stride > 0 else (-1, 0)
        start, end = settings.get("start", start), settings.get("end", end)
        return f"{slice_count(size, start, end, stride, settings.get('part_size', 1))} ({text})"
    known = text if size is None else unknown(text, size)
    return known if abs(stride) == 1 else f"{known}, {abs(stride)} at a time"


# -- of the items of a structure


def trip_count(owner: Item) -> str | None:
    """The source of the number of iterations; None of an If, and of an operator that is not known."""
    if owner.direct is None or owner.operator == "If":
        return None
    told = owner.info.get(f"{STEPS}/value", "")
    steps = int(told) if told.isascii() and told.isdecimal() and len(told) < 10 else 1
    if owner.is_loop:
        return _in_steps(owner.input(0), steps, source_of, _constant_text)
    feeds = [each.feed for body in owner.bodies.values() for each in body.parameters]
    sliced = next((feed for feed in feeds if feed is not None and feed.kind == "sliced"), None)
    if sliced is None:
        return "none"

    def unknown(text: str, size: str) -> str:
        return text if size == "?" else f"{size} ({text})"

    return _each_of(_slices(tensor_port(sliced.source), slicing(sliced.settings), unknown), steps)


def _constant_text(ref: Ref | None) -> str:
    """The value of a small constant."""
    at = origin(ref)
    data = None if at is None else at.item.data
    if data is None or data.text:
        text = "" if data is None else data.text.strip("[]")
        return {"true": "1", "false": "0"}.get(text, text) if len(text) <= 20 else ""
    values = data.array(_SMALL)
    if values is None or values.dtype.kind == "O":
        return ""
    return ", ".join(str(int(each) if values.dtype.kind in "biu" else each) for each in values)


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
        return f"constant {_constant_text(ref)}".rstrip()
    if item.feed is not None:
        owner = "" if item.scope.owner is None else item.scope.owner.label
        numbered = item.feed.kind in ("iteration number", "condition")
        return f"{item.feed.kind if numbered else tensor_port(ref).name} of {owner}"
    if item.operator in ("input", "Parameter") and not item.inputs:
        is_model = item.scope.owner is None and not item.scope.path
        return f"{'input' if is_model else 'argument'} {tensor_port(ref).name}"
    return f"undefined {item.name}" if item.operator == "undefined" else f"computed ({item.operator})"


# -- of the records of a state


def set_trip_counts(state: GraphState) -> None:
    """Add the text to each Loop, TensorIterator and Scan. Their records are replaced: other states can hold them."""
    loops = [record for record in state.nodes.values() if "port_map" in record]
    records = _Records(state if loops else GraphState())
    for record in loops:
        text = records.loop(record) if record["op"] == "Loop" else records.slices(record)
        if text:
            state.nodes[record["id"]] = record | {"port_map": record["port_map"] | {"trip_count": text}}


class _Node:
    """A record, with the attributes of an Item that `origin` reads."""

    def __init__(self, record: Record, records: "_Records") -> None:
        self.record = record
        self.operator = record["op"]
        self._records = records

    @cached_property
    def inputs(self) -> list[Ref | None]:
        return [self._records.ref(each) for each in self.record["inputs"]]

    @cached_property
    def feed(self) -> Feed | None:
        if self.record["id"] not in self._records.feeds:
            return None
        owner, entry = self._records.feeds[self.record["id"]]
        result = self._records.nodes[entry["result"]]["inputs"] if entry["role"] == "Merged" else [None]
        kind = "invariant" if entry["role"] == "Branched" else entry["role"].lower()
        return Feed(kind, self._records.ref(_input(owner, entry["port"])), self._records.ref(result[0]))


class _Records:
    """Follows the values of records to their producers."""

    def __init__(self, state: GraphState) -> None:
        self.nodes = state.nodes
        self.feeds: dict[int, tuple[Record, Record]] = {}
        """A parameter of a body -> the owner and its entry."""
        self._known: dict[int, _Node] = {}
        for record in state.nodes.values():
            for entry in record.get("port_map", {}).get("inputs", ()):
                for key in ("parameter", "then", "else_"):
                    if entry.get(key) is not None:
                        self.feeds[entry[key]] = record, entry

    def ref(self, source: Any) -> Ref | None:
        """A value of a record as one of a Structure."""
        if source is None:
            return None
        if source[0] not in self._known:
            self._known[source[0]] = _Node(self.nodes[source[0]], self)
        node: Any = self._known[source[0]]
        return Ref(node, source[1])

    def loop(self, record: Record) -> str:
        """The trip count of a Loop and its conditions."""
        count = _in_steps(self.ref(_input(record, 0)), _steps(record), self._source, self._number)
        conditions = [self._source(self.ref(_input(record, 1)))]
        last = record["port_map"].get("condition")
        if last is not None:
            conditions.append(self._source(self.ref(self.nodes[last]["inputs"][0])))
        if conditions[0] in ("false", "0"):
            return "0: the execution condition is false"
        varying = [text for text in dict.fromkeys(conditions) if text not in ("", "true", "1")]
        is_limited = count and not count.startswith("-")
        if not varying:
            return count if is_limited else "no limit"
        limit = f"at most {count}, " if is_limited else ""
        return f"{limit}while {' and '.join(varying)} {'is' if len(varying) == 1 else 'are'} true"

    def slices(self, record: Record) -> str:
        """The trip count of a TensorIterator or Scan: the number of slices of an input."""
        for entry in record["port_map"]["inputs"]:
            if entry["role"] == "Sliced":
                source = _input(record, entry["port"])
                return "" if source is None else _each_of(self._size(entry, source), _steps(record))
        return ""

    def _producer(self, ref: Ref | None) -> tuple[Record, int] | None:
        """The node and output that a value comes from; None if nothing gives it."""
        found: Any = origin(ref)
        if found is None or (found.item.feed is not None and found.item.feed.source is None):
            return None  # the condition of an ONNX loop that is not given
        return found.item.record, found.output

    def _number(self, ref: Ref | None) -> str:
        found = self._producer(ref)
        return "" if found is None else str(found[0].get("value", "")).strip("[]")

    def _source(self, ref: Ref | None) -> str:
        """The value of a constant, a dimension that is read from a shape, else the producer."""
        found = self._producer(ref)
        if found is None:
            return ""
        record, port = found
        if "value" in record:
            return str(record["value"]).strip("[]")
        return self._dimension(record) or f"{_label(record, port)} ({record['op']})"

    def _dimension(self, record: Record) -> str:
        """The text of Gather(ShapeOf(x), i); empty for another node."""
        shape = self._producer(self.ref(_input(record, 0))) if record["op"] == "Gather" else None
        if shape is None or shape[0]["op"] not in ("ShapeOf", "Shape"):
            return ""
        axis, source = self._number(self.ref(_input(record, 1))), _input(shape[0], 0)
        is_known = axis.removeprefix("-").isdecimal() and shape[0].get("attributes", {}).get("start", "0") == "0"
        return "" if source is None or not is_known else self._size({"axis": int(axis)}, source)

    def _size(self, slicing: Record, source: Any) -> str:
        record, port = self.nodes[source[0]], source[1]
        value = port_of(_label(record, port), *split(record["outputs"][port]["type"]))
        settings = {"axis": 0, "stride": 1} | slicing
        return _slices(value, settings, lambda text, size: f"{text}: {shown_dims([size])[1:-1]}")


def _input(record: Record, port: int) -> Any:
    """A value, None for an absent input."""
    return record["inputs"][port] if port < len(record["inputs"]) else None


def _steps(record: Record) -> int:
    """The number of steps in each iteration."""
    found = _STEPS.search(record.get("info", ""))
    return int(found[1]) if found else 1


def _label(record: Record, port: int) -> str:
    """The name of a value: that of its node, else of its tensor."""
    names = record["outputs"][port]["names"] if port < len(record["outputs"]) else ()
    return str(record["name"] or next(iter(names), "") or f"{record['op']}#{record['id']}")
