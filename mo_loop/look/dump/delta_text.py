"""The text of the changes of a pass: statements by scope, in the notation of mo_loop.text.

    # what EliminateGather changed: 0 nodes added, 2 removed, 1 changed
    # before: 000_loaded
    - %g = Gather(%x, [0], 1) {batch_dims: 0} : f32[2,1]
    ~ %y = ReLU(%x) : f32[2,1] names "y"
      was %y = ReLU(%g) : f32[2,1] names "y"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mo_loop.look.dump.labels import Labels
from mo_loop.look.records.node_records import GraphState, Record
from mo_loop.text.scanner import quoted

INLINE = 40
"""Characters up to which the value of a constant without a name replaces its label."""

NUMBERS = ("axis", "start", "end", "stride", "part_size", "declared")
"""The numbers of an entry of a port map besides its nodes; their defaults follow."""

_DEFAULTS = {"start": 0, "end": -1, "stride": 1, "part_size": 1, "declared": []}


def delta_text(
    before: GraphState, after: GraphState, change: Record, labels: Labels, defaults: Mapping[str, Mapping[str, str]],
    name: str, previous: str,
) -> str:  # fmt: skip
    """The changes of the pass `name`; `defaults` are the attributes of the operations that are left out."""
    old, new = _Statements(before, labels, defaults), _Statements(after, labels, defaults)
    counts = len(change["added"]), len(change["removed"]), len(change["changed"])
    lines = [f"# what {name} changed: {counts[0]} nodes added, {counts[1]} removed, {counts[2]} changed"]
    lines += [f"# before: {previous}"] if previous else []
    added = {record["id"] for record in change["added"]}
    by_scope: dict[str, list[str]] = {}
    for number in change["removed"]:
        by_scope.setdefault(before.nodes[number]["scope"], []).append(f"- {old.of(number)}")
    for record in (*change["changed"], *change["added"]):
        number, shown = record["id"], by_scope.setdefault(record["scope"], [])
        statement = new.of(number)
        shown.append(f"{'+' if number in added else '~'} {statement}")
        former = statement if number in added else old.of(number)
        if former != statement:
            shown.append(f"  was {former}")
    for scope in change["scopes"]:
        by_scope.setdefault(scope["id"], [])[:0] = new.ends(scope["id"], old)
    for scope in sorted(by_scope, key=lambda scope: (scope.count("/"), scope)):
        lines += [*_title(scope, before, after), *by_scope[scope]]
    return "".join(f"{line}\n" for line in lines)


def state_text(state: GraphState, labels: Labels, defaults: Mapping[str, Mapping[str, str]]) -> str:
    """All statements of a part of a graph."""
    statements = _Statements(state, labels, defaults)
    lines: list[str] = []
    for scope in state.scopes:
        lines += _title(scope, state, state)
        lines += [f"  {statements.of(number)}" for number, each in state.nodes.items() if each["scope"] == scope]
    return "".join(f"{line}\n" for line in lines)


def _title(scope: str, before: GraphState, after: GraphState) -> Iterator[str]:
    if not scope:
        return
    state = after if scope in after.scopes else before
    found = state.scopes[scope]
    owner = state.nodes[found["owner"]]
    yield f"{found['tag']} {quoted(found['name'])} of {owner['op']} {quoted(owner['name'])} ({scope})"


class _Statements:
    """The statements of one state."""

    def __init__(self, state: GraphState, labels: Labels, defaults: Mapping[str, Mapping[str, str]]) -> None:
        self._state = state
        self._labels = labels
        self._defaults = defaults

    def of(self, number: int) -> str:
        record = self._state.nodes[number]
        outputs = ", ".join(f"%{self._label(number, port)}" for port in range(len(record["outputs"])))
        left = f"{outputs} = {record['op']}" if outputs else record["op"]
        if "value" in record:
            left += f" {record.get('content', record['value'])}"
        elif record["op"] != "Parameter":
            left += f"({', '.join(map(self._input, record['inputs']))})"
        usual = self._defaults.get(record["op"], {})
        return left + end_of(record, usual, [f"{key}: {shown}" for key, shown in self._port_map(record)])

    def ends(self, scope: str, old: _Statements) -> Iterator[str]:
        """The differences of the order of the parameters and results, and of the information about the graph, from
        `old`."""
        for key in ("parameters", "results", "info"):
            shown, before = self._about(scope, key), old._about(scope, key)
            if before is not None and shown != before:
                yield f"~ {key}: {shown}"
                yield f"  was {key}: {before}"

    def _about(self, scope: str, key: str) -> str | None:
        found = self._state.scopes.get(scope)
        if found is None:
            return None
        return str(found.get(key, "")) if key == "info" else ", ".join(map(self._end, found[key]))

    def _label(self, number: int, port: int) -> str:
        record = self._state.nodes[number]
        label = self._labels.of(number, record["name"])
        return label if len(record["outputs"]) == 1 else f"{label}.{port}"

    def _input(self, source: Any) -> str:
        if source is None:
            return "_"
        record = self._state.nodes[source[0]]
        if "value" in record and not record["name"] and len(record["value"]) <= INLINE:
            return str(record["value"])
        return f"%{self._label(*source)}"

    def _port_map(self, record: Record) -> Iterator[tuple[str, str]]:
        ports = record.get("port_map", {})
        for key in ("iteration", "condition"):
            if key in ports:
                yield key, self._end(ports[key])
        for key in ("inputs", "outputs"):
            if ports.get(key):
                yield f"{key[:-1]}_map", f"[{', '.join(map(self._entry, ports[key]))}]"

    def _entry(self, entry: Record) -> str:
        parts = [self._end(entry[key]) for key in ("parameter", "result", "then", "else_") if key in entry]
        parts += [f"{key}: {entry[key]}" for key in NUMBERS if key in entry and entry[key] != _DEFAULTS.get(key)]
        return f"{entry['role']}({', '.join(parts)})"

    def _end(self, number: int | None) -> str:
        """A Parameter, or a Result by the label of the value that it reads."""
        if number is None:
            return "_"
        record = self._state.nodes[number]
        return f"%{self._label(number, 0)}" if record["outputs"] else f"@{self._label(*record['inputs'][0])}"


def end_of(record: Record, usual: Mapping[str, str], ports: Sequence[str] = ()) -> str:
    """Attributes that are not as `usual`, types, names and additional info, as in the texts of whole graphs."""
    outputs, name = record["outputs"], record["name"]
    attributes = [*ports]
    for key, shown in record.get("attributes", {}).items():
        if usual.get(key) != shown:
            attributes.append(f"{key}: {shown}")
    text = f" {{{', '.join(attributes)}}}" if attributes else ""
    if outputs:
        text += f" : {', '.join([output['type'] for output in outputs])}"
    if name:
        text += f" {quoted(name)}"
    lists = [record["names"]] if "names" in record else [output["names"] for output in outputs]
    while lists and not lists[-1]:
        lists.pop()
    if lists:
        text += f" names {', '.join([' '.join(map(quoted, each)) if each else '_' for each in lists])}"
    return text + (f" info {record['info']}" if "info" in record else "")
