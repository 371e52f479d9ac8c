"""The contents of a Structure in an inspection: operators with the constants that they read, scopes, control flow; and
its nodes with the names and types of their tensors (`mo-loop inspect --nodes`).

    for row in node_rows(opened("model.onnx")):
        row.name, row.operator, row.inputs, row.outputs

The names of the main graph of an ONNX model are those at which a conversion can be cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mo_loop.look.inspection.description import Branch, ControlFacts, Operator, ScopeSize, SlicedFacts, StateFacts
from mo_loop.look.records.structure import (
    IR,
    ONNX,
    Drain,
    Item,
    Ref,
    ScopeRecord,
    Structure,
    TensorPort,
    port_of,
    tensor_name,
    tensor_port,
)
from mo_loop.look.records.trip_counts import condition, goes_on, slicing, trip_count

SCHEMA, VERSION = "mo-loop nodes", 1
"""The version of the JSON of nodes; increased when a field changes its meaning or is removed, not when one is added."""


def operators(structure: Structure) -> list[Operator]:
    """All operators, the most frequent first; a constant counts once for each operator that reads it."""
    found: dict[str, Operator] = {}
    seen: set[tuple[str, int]] = set()
    for scope in structure.scopes():
        for name, refs in _computed(scope, structure.kind):
            operator = found.setdefault(name, Operator(name))
            operator.count += 1
            for item in map(_behind, refs):
                if item is not None and item.data is not None and (name, id(item)) not in seen:
                    seen.add((name, id(item)))
                    operator.elements += item.data.elements
                    operator.bytes += item.data.nbytes
    return sorted(found.values(), key=lambda each: (-each.count, each.name))


def scope_sizes(structure: Structure) -> list[ScopeSize]:
    """All graphs, outer before inner."""
    functions = set(structure.functions.values())
    return [
        _size(each, "function" if each in functions else each.tag or "model", structure.kind)
        for each in structure.scopes()
    ]


def _size(scope: ScopeRecord, kind: str, format_: str) -> ScopeSize:
    constants = scope.constants
    data = [item.data for item in constants if item.data is not None]
    counts = Counter(name for name, _ in _computed(scope, format_))
    return ScopeSize(
        scope.text, kind, len(scope.nodes), len(constants), sum(each.elements for each in data),
        sum(each.nbytes for each in data), dict(counts.most_common()),
    )  # fmt: skip


def _computed(scope: ScopeRecord, format_: str) -> Iterator[tuple[str, list[Ref | None]]]:
    """The operator and the inputs of the nodes or layers of the file; an IR has its outputs as layers."""
    for item in scope.items:
        if item.made_of is not None:
            yield item.operator, item.inputs
    if format_ == IR:
        for result in scope.results:
            yield "Result", [result.ref]


def _behind(ref: Ref | None) -> Item | None:
    """The producer of a value, looking through the Convert of a compressed constant."""
    if ref is not None and ref.item.operator == "Convert":
        ref = ref.item.input(0)
    return None if ref is None else ref.item


# -- control flow


def controls(scope: ScopeRecord, format_: str) -> list[ControlFacts]:
    """The control flow of a scope, with nested control flow inside."""
    return [_control(item, format_) for item in scope.items if item.bodies]


def _control(item: Item, format_: str) -> ControlFacts:
    found = ControlFacts("/".join((*item.scope.path, item.label)), item.operator, item.scope.text)
    found.trip_count, found.condition, found.goes_on = trip_count(item), condition(item), goes_on(item)
    captures = {tensor_name(ref) for ref in item.captures}
    for tag, body in item.bodies.items():
        children = controls(body, format_)
        found.branches.append(Branch(tag, body.text, len(body.nodes), len(body.constants), children))
        for parameter in body.parameters:
            feed = parameter.feed
            if feed is not None and feed.kind == "merged":
                inner = parameter.port()
                found.states.append(StateFacts(inner.name, _typed_as(tensor_port(feed.source), inner)))
            elif feed is not None and feed.kind == "sliced":
                found.scan_inputs.append(_sliced(tensor_port(feed.source), feed.settings))
            elif feed is not None and feed.kind == "invariant":
                captures.add(tensor_name(feed.source))
    for place, drain in enumerate(item.drains):
        if drain.kind == "concatenated":
            value = item.port(place) if format_ == IR else _inner(item, drain)
            found.scan_outputs.append(_sliced(value, drain.settings))
    found.captures = sorted(captures)
    return found


def _typed_as(port: TensorPort, other: TensorPort) -> TensorPort:
    """A value; with the type of another if its own is not known."""
    return port if port.is_known else TensorPort(port.name, other.type, other.shape)


def _inner(item: Item, drain: Drain) -> TensorPort:
    """The concatenated value, as the body declares it."""
    ((tag, ref),) = drain.sources.items()
    declared = (each for each in item.bodies[tag].results if each.ref == ref)
    return next((_typed_as(tensor_port(ref), port_of("", each.dtype, each.shape)) for each in declared), TensorPort(""))


def _sliced(value: TensorPort, settings: Mapping[str, str]) -> SlicedFacts:
    cut = slicing(settings)
    return SlicedFacts(value.name, cut["axis"], cut["stride"] < 0, value)


# -- nodes


@dataclass(slots=True)
class NodeRow:
    """A node, an input ("input", in an IR "Parameter"), a constant, or an output ("output", in an IR "Result").

    `inputs` are names of tensors, "" for an absent input. A tensor without a name has that of its node, with the number
    of the output where there are several.
    """

    scope: str
    name: str
    operator: str
    inputs: list[str]
    outputs: list[TensorPort]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def node_rows(
    structure: Structure, scope: str | None = None, depth: int | None = None, operator: str | None = None
) -> Iterator[NodeRow]:
    """The nodes of each graph, outer before inner, and producers before consumers.

    Args:
        scope: the path of a body or function: only its nodes and those of the bodies in it.
        depth: down to this number of levels of bodies.
        operator: only nodes of this operator. Constants are left out unless this names them.
    """
    result = "output" if structure.kind == ONNX else "Result"
    starts = [structure.main, *structure.functions.values()]
    for start in starts if scope is None else [each for each in structure.scopes() if each.text == scope]:
        for each in start.all(depth):
            yield from _of_scope(each, result, operator)


def _of_scope(scope: ScopeRecord, result: str, operator: str | None) -> Iterator[NodeRow]:
    path = scope.text
    for item in scope.items:
        if item.is_constant if operator is None else item.operator != operator:
            continue
        inputs = [tensor_name(ref) for ref in item.inputs]
        outputs = list(map(item.port, range(len(item.outputs))))
        yield NodeRow(path, item.name, item.operator, inputs, outputs)
    if operator in (None, result):
        for each in scope.results:
            yield NodeRow(path, each.name, result, [tensor_name(each.ref)], [])
