"""The source of the trip count of a loop, as text in its port map.

    set_trip_counts(state)
    state.nodes[17]["port_map"]["trip_count"]       # "10", "at most 10, while less is true", "dimension 0 of x: N"
    # of a loop with several steps in each iteration "10, each of 16 steps", "n (Parameter) steps, 16 in each iteration"

Values are followed as in sources.py.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

from mo_loop.look.records.node_records import GraphState, Record
from mo_loop.look.records.sources import each_of, in_steps, origin
from mo_loop.look.records.structure import Feed, Ref
from mo_loop.ops.control import STEPS

ALWAYS = ("true", "1")

_STEPS = re.compile(rf'{STEPS}: {{value: "([0-9]{{1,9}})"}}')
"""The number of steps in the text of a rt_info."""


def set_trip_counts(state: GraphState) -> None:
    """Add the text to each Loop, TensorIterator and Scan. Their records are replaced: other states can hold them."""
    loops = [record for record in state.nodes.values() if "port_map" in record]
    if not loops:
        return
    sources = _Sources(state)
    for record in loops:
        text = _of_loop(record, sources) if record["op"] == "Loop" else _of_slices(record, sources)
        if text:
            state.nodes[record["id"]] = record | {"port_map": record["port_map"] | {"trip_count": text}}


class _Sources:
    """Follows values to their producers."""

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

    def of(self, source: Any) -> tuple[Record, int] | None:
        """The node and output that a value comes from; None if nothing gives it."""
        return self.behind(self.ref(source))

    def behind(self, ref: Ref | None) -> tuple[Record, int] | None:
        """The same of a value of a Structure."""
        found: Any = origin(ref)
        if found is None or (found.item.feed is not None and found.item.feed.source is None):
            return None  # the condition of an ONNX loop that is not given
        return found.item.record, found.output

    def ref(self, source: Any) -> Ref | None:
        """A value of a record as one of a Structure."""
        if source is None:
            return None
        node: Any = self._known.get(source[0])
        if node is None:
            node = self._known[source[0]] = _Node(self.nodes[source[0]], self)
        return Ref(node, source[1])


class _Node:
    """A record, with the attributes of an Item that `origin` reads."""

    def __init__(self, record: Record, sources: _Sources) -> None:
        self.record = record
        self.operator = record["op"]
        self._sources = sources

    @cached_property
    def inputs(self) -> list[Ref | None]:
        return [self._sources.ref(each) for each in self.record["inputs"]]

    @cached_property
    def feed(self) -> Feed | None:
        if self.record["id"] not in self._sources.feeds:
            return None
        owner, entry = self._sources.feeds[self.record["id"]]
        result = self._sources.nodes[entry["result"]]["inputs"] if entry["role"] == "Merged" else [None]
        kind = "invariant" if entry["role"] == "Branched" else entry["role"].lower()
        return Feed(kind, self._sources.ref(_input(owner, entry["port"])), self._sources.ref(result[0]))


def _input(record: Record, port: int) -> Any:
    """A value, None for an absent input."""
    return record["inputs"][port] if port < len(record["inputs"]) else None


def _of_loop(record: Record, sources: _Sources) -> str:
    count = in_steps(
        sources.ref(_input(record, 0)), _steps(record), lambda ref: _value(sources.behind(ref), sources),
        lambda ref: _number(sources.behind(ref)),
    )  # fmt: skip
    conditions = [sources.of(_input(record, 1))]
    last = record["port_map"].get("condition")
    if last is not None:
        conditions.append(sources.of(sources.nodes[last]["inputs"][0]))
    texts = [_value(each, sources) for each in conditions]
    if "false" in texts[:1] or "0" in texts[:1]:
        return "0: the execution condition is false"
    varying = [text for text in dict.fromkeys(texts) if text and text not in ALWAYS]
    if not varying:
        return count if count and not count.startswith("-") else "no limit"
    limit = f"at most {count}, " if count and not count.startswith("-") else ""
    return f"{limit}while {' and '.join(varying)} {'is' if len(varying) == 1 else 'are'} true"


def _value(source: tuple[Record, int] | None, sources: _Sources) -> str:
    """The value of a constant, a dimension that is read from a shape, else the producer."""
    if source is None:
        return ""
    record, port = source
    if "value" in record:
        return str(record["value"]).strip("[]")
    return _dimension(record, sources) or f"{_label(record, port)} ({record['op']})"


def _dimension(record: Record, sources: _Sources) -> str:
    """The text of Gather(ShapeOf(x), i); empty for another node."""
    if record["op"] != "Gather":
        return ""
    shape, index = (sources.of(_input(record, port)) for port in (0, 1))
    if shape is None or index is None or shape[0]["op"] not in ("ShapeOf", "Shape"):
        return ""
    axis, ref = str(index[0].get("value", "")).strip("[]"), _input(shape[0], 0)
    if ref is None or not axis.removeprefix("-").isdecimal() or shape[0].get("attributes", {}).get("start", "0") != "0":
        return ""
    return _slices({"axis": int(axis)}, sources.nodes[ref[0]], ref[1])


def _steps(record: Record) -> int:
    """The number of steps in each iteration."""
    found = _STEPS.search(record.get("info", ""))
    return int(found[1]) if found else 1


def _number(source: tuple[Record, int] | None) -> str:
    return "" if source is None else str(source[0].get("value", "")).strip("[]")


def _of_slices(record: Record, sources: _Sources) -> str:
    """The trip count of a TensorIterator or Scan: the number of slices of an input."""
    for entry in record["port_map"]["inputs"]:
        if entry["role"] == "Sliced":
            ref = _input(record, entry["port"])
            return "" if ref is None else each_of(_slices(entry, sources.nodes[ref[0]], ref[1]), _steps(record))
    return ""


def _slices(entry: Record, source: Record, port: int) -> str:
    axis = entry.get("axis", 0)
    where = f"dimension {axis} of {_label(source, port)}"
    dims = _dims(source["outputs"][port]["type"])
    if dims is None or not -len(dims) <= axis < len(dims):
        return where
    dim = dims[axis]
    step = max(abs(entry.get("stride") or 1), 1)
    if not dim.isdecimal():
        return f"{where}: {dim}" + (f", {step} at a time" if step > 1 else "")
    size = int(dim)
    start, end = (size + 1 + each if each < 0 else each for each in (entry.get("start", 0), entry.get("end", -1)))
    return f"{-(-abs(end - start) // step)} ({where})"


def _label(record: Record, port: int) -> str:
    """The name of a value: that of its node, else of its tensor."""
    names = record["outputs"][port]["names"] if port < len(record["outputs"]) else ()
    return str(record["name"] or next(iter(names), "") or f"{record['op']}#{record['id']}")


def _dims(type_: str) -> list[str] | None:
    """The dimensions in a type such as `f32[2,"N, M",4]`; None for an unknown rank or another type."""
    head, bracket, rest = type_.partition("[")
    if not bracket or not (head.isalnum() or head == "?") or rest == "...]":
        return None
    dims, quoted = [""], False
    for letter in rest[:-1]:
        quoted ^= letter == '"'
        if letter == "," and not quoted:
            dims.append("")
        else:
            dims[-1] += letter
    return [] if dims == [""] else dims
