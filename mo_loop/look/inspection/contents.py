"""The nodes of a Structure with the names and types of their tensors (`mo-loop inspect --nodes`), and its control flow.

    for row in node_rows(opened("model.onnx")):
        row.name, row.operator, row.inputs, row.outputs

The names of the main graph of an ONNX model are those at which a conversion can be cut.

The control flow of a model as a tree (`mo-loop inspect --graph`): plain records, with the fields of the JSON.

    Skeleton            version, file, format ("onnx", "ir" or "dump"), graph, functions
      Outline           the main graph, a body or a function: inputs, outputs, and its steps in the order of the data
        Run             plain nodes, with the number of each operator
        ControlNode     a Loop, Scan, TensorIterator, If, or another operator with bodies
          Entry         what one of its inputs or outputs is to its bodies
        FunctionCall    a call of a function of the model that has control flow

`kind` of a step is "nodes", "control" or "call". Ports are those of mo_loop/look/records/structure.py.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mo_loop.look.inspection.description import Branch, ControlFacts, SlicedFacts, StateFacts, below, unknown
from mo_loop.look.records.structure import (
    IR,
    ONNX,
    Item,
    Ref,
    ScopeRecord,
    Structure,
    TensorPort,
    result_port,
    tensor_name,
    tensor_port,
)
from mo_loop.look.records.trip_counts import condition, goes_on, slicing, trip_count

NODES_SCHEMA, NODES_VERSION = "mo-loop nodes", 1
"""The version of the JSON of nodes; increased when a field changes its meaning or is removed, not when one is added."""


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
    for each in (each for start in starts(structure, scope) for each in start.all(depth)):
        for item in each.items:
            if not item.is_constant if operator is None else item.operator == operator:
                inputs, outputs = list(map(tensor_name, item.inputs)), list(map(item.port, range(len(item.outputs))))
                yield NodeRow(each.text, item.name, item.operator, inputs, outputs)
        for end in each.results if operator in (None, result) else ():
            yield NodeRow(each.text, end.name, result, [tensor_name(end.ref)], [])


def starts(structure: Structure, scope: str | None) -> list[ScopeRecord]:
    """The main graph and the functions, or the bodies with a path: names of nodes can repeat. UsageError if there is
    none."""
    if scope is None:
        return [structure.main, *structure.functions.values()]
    found = [each for each in structure.scopes() if each.text == scope]
    if not found:
        raise unknown("scope", scope, [each.text for each in structure.scopes() if each.text])
    return found


SCHEMA, VERSION = "mo-loop graph", 1
"""The version of the JSON; increased when a field changes its meaning or is removed, not when one is added."""


@dataclass
class Run:
    """Nodes without bodies that follow each other. Constants are not counted."""

    kind: str = field(default="nodes", init=False)
    nodes: int
    operators: dict[str, int]


@dataclass
class FunctionCall:
    """A call of a function that has control flow. `function` is the operator, with the overload if there is one."""

    kind: str = field(default="call", init=False)
    name: str
    operator: str
    function: str


@dataclass
class Entry:
    """An input or output of a node with bodies.

    `kind` is "merged", "sliced", "invariant", "branched" or "captured" for an input, "final", "concatenated" or
    "selected" for an output; `value` is the tensor outside. `inner` has the name of the tensor inside, by body.
    Where the operator alone defines what its bodies get and return, the kinds are "input" and "output", which have no
    `inner`, and "parameter" and "result", whose `value` has no name.
    `back_edge` is the tensor that a merged input gets from the iteration before. Slices have an axis and a stride,
    which is negative from the end to the beginning; start, end and part_size are only in an IR or a dump.
    """

    kind: str
    value: TensorPort
    inner: dict[str, str] = field(default_factory=dict)
    back_edge: str | None = None
    slicing: dict[str, int] = field(default_factory=dict)


@dataclass
class ControlNode:
    """A node with bodies. `trip_count`, `condition` and `goes_on` are as in mo_loop/look/inspection/description.py;
    `iteration` is the name of the iteration number in the body."""

    kind: str = field(default="control", init=False)
    path: str
    name: str
    operator: str
    trip_count: str | None = None
    condition: str | None = None
    goes_on: str | None = None
    iteration: str | None = None
    inputs: list[Entry] = field(default_factory=list)
    outputs: list[Entry] = field(default_factory=list)
    bodies: "list[Outline]" = field(default_factory=list)


@dataclass
class Outline:
    """The main graph, a body or a function. `tag` is "model", "function", or the name of the body in its owner."""

    path: str
    tag: str
    nodes: int
    constants: int
    inputs: list[TensorPort]
    outputs: list[TensorPort]
    steps: list[Run | ControlNode | FunctionCall] = field(default_factory=list)

    def controls(self) -> Iterator[ControlNode]:
        yield from (step for step in self.steps if isinstance(step, ControlNode))

    def all(self) -> "Iterator[Outline]":
        """This one and those of the bodies below, outer before inner."""
        yield self
        for step in self.controls():
            for body in step.bodies:
                yield from body.all()


@dataclass
class Skeleton:
    """The control flow of one model.

    Of a scope that was chosen, `graph` is the first body with its path, and `functions` has further ones: names of
    nodes can repeat.
    """

    file: str
    format: str
    graph: Outline
    functions: list[Outline] = field(default_factory=list)

    def outlines(self) -> Iterator[Outline]:
        for each in (self.graph, *self.functions):
            yield from each.all()

    def as_json(self) -> dict[str, Any]:
        """The skeleton as plain data; the version comes first."""
        return {"schema": SCHEMA, "version": VERSION, **asdict(self)}


def skeleton(
    structure: Structure, scope: str | None = None, depth: int | None = None, operator: str | None = None
) -> Skeleton:
    """The control flow of a model.

    Args:
        scope: the path of a body or function: only these, and the bodies in them.
        depth: down to this number of levels of bodies; those of the last level are without their steps.
        operator: only the nodes of this operator, and the nodes with bodies around them.
    """
    calling = _with_control(structure)
    first, *more = [_outline(each, depth, operator, calling) for each in starts(structure, scope)]
    functions = [each for each in more if each.steps or operator is None]
    return Skeleton(structure.source, structure.kind.lower(), first, functions)


def _outline(scope: ScopeRecord, depth: int | None, operator: str | None, calling: set[str]) -> Outline:
    inputs, outputs = [each.port() for each in scope.parameters], list(map(result_port, scope.results))
    found = Outline(scope.text, scope.kind, len(scope.nodes), len(scope.constants), inputs, outputs)
    plain: Counter[str] = Counter()

    def end_run() -> None:
        if plain:
            operators = dict(sorted(plain.items(), key=lambda pair: (-pair[1], pair[0])))
            found.steps.append(Run(plain.total(), operators))
            plain.clear()

    for item in scope.nodes if depth is None or depth >= 0 else ():
        is_chosen = operator in (None, item.operator)
        if item.bodies or item.called in calling:
            end_run()
        if item.bodies:
            control = _control(item)
            more = None if depth is None else depth - 1
            control.bodies = [_outline(body, more, operator, calling) for body in item.bodies.values()]
            if is_chosen or any(body.steps for body in control.bodies):
                found.steps.append(control)
        elif is_chosen and item.called in calling:
            found.steps.append(FunctionCall(item.label, item.operator, item.called))
        elif is_chosen:
            plain[item.operator] += 1
    end_run()
    return found


def _control(item: Item) -> ControlNode:
    """A node with bodies, without these."""
    parameters = [each for body in item.bodies.values() for each in body.parameters]
    numbers = [each.port().name for each in parameters if each.feed and each.feed.kind == "iteration number"]
    return ControlNode(
        "/".join((*item.scope.path, item.label)), item.label, item.operator, trip_count(item), condition(item),
        goes_on(item), next(reversed(numbers), None), list(_inputs(item)), list(_outputs(item)),
    )


def _with_control(structure: Structure) -> set[str]:
    """The names of the functions that have control flow, or call one that has."""
    items = {name: [item for at in scope.all() for item in at.items] for name, scope in structure.functions.items()}
    found = {name for name, inner in items.items() if any(item.bodies for item in inner)}
    before = -1
    while before != len(found):
        before = len(found)
        found |= {name for name, inner in items.items() if any(item.called in found for item in inner)}
    return found


# -- inputs and outputs of a node with bodies


def _inputs(item: Item) -> Iterator[Entry]:
    """The inputs of the bodies. A value that reaches both branches of an If is one entry; of an operator whose
    connections only it defines, the inputs, and the parameters of the bodies."""
    branched: dict[Ref, Entry] = {}
    if item.direct is None:
        yield from (Entry("input", tensor_port(ref)) for ref in item.inputs if ref is not None)
    for tag, body in item.bodies.items():
        for parameter in body.parameters:
            feed, inner = parameter.feed, parameter.port().name
            if item.direct is None:
                yield Entry("parameter", TensorPort(""), {tag: inner})
            elif feed is None or feed.kind in ("iteration number", "condition"):
                continue
            elif len(item.bodies) > 1 and feed.source is not None:
                branched.setdefault(feed.source, Entry("branched", tensor_port(feed.source))).inner[tag] = inner
            else:
                back_edge = tensor_name(feed.next) if feed.kind == "merged" else None
                cut = slicing(feed.settings) if feed.kind == "sliced" else {}
                yield Entry(feed.kind, tensor_port(feed.source), {tag: inner}, back_edge, cut)
    yield from branched.values()
    yield from (Entry("captured", tensor_port(ref)) for ref in item.captures)


def _outputs(item: Item) -> Iterator[Entry]:
    """The outputs; of an operator whose connections only it defines after the results of the bodies."""
    if item.direct is None:
        for tag, body in item.bodies.items():
            yield from (Entry("result", TensorPort(""), {tag: tensor_name(each.ref)}) for each in body.results)
        yield from (Entry("output", item.port(place)) for place in range(len(item.outputs)))
        return
    for place, drain in enumerate(item.drains):
        value = item.port(place) if place < len(item.outputs) else TensorPort("")
        inner = {tag: tensor_name(ref) for tag, ref in drain.sources.items()}
        yield Entry(drain.kind, value, inner, None, slicing(drain.settings) if drain.kind == "concatenated" else {})


# -- the control flow of an inspection


def controls(
    structure: Structure, scope: str | None = None, depth: int | None = None, operator: str | None = None
) -> list[ControlFacts]:
    """The control flow of a model, with nested control flow inside; of an operator only its nodes. The arguments are
    those of `skeleton`."""
    if depth == 0:
        return []
    found = skeleton(structure, scope, None if depth is None else depth - 1)
    tops = [_facts(step, start, found.format) for start in (found.graph, *found.functions) for step in start.controls()]
    if operator is None:
        return tops
    return [replace(each, branches=[]) for each in below(tops) if each.operator == operator]


def _facts(step: ControlNode, outline: Outline, format_: str) -> ControlFacts:
    inner = {port.name: port for body in step.bodies for port in (*body.outputs, *body.inputs)}
    found = ControlFacts(step.path, step.operator, outline.path, step.trip_count, step.condition, step.goes_on)
    for entry in (*step.inputs, *step.outputs):
        name = next(iter(entry.inner.values()), "")
        if entry.kind == "merged":
            value = entry.value if entry.value.is_known else replace(inner[name], name=entry.value.name)
            found.states.append(StateFacts(name, value))
        elif entry.kind == "sliced":
            found.scan_inputs.append(_sliced(entry.value, entry))
        elif entry.kind == "concatenated":
            value = entry.value if format_ == IR.lower() else inner.get(name, TensorPort(""))
            found.scan_outputs.append(_sliced(value, entry))
    outer = ("captured", "invariant", "branched")
    found.captures = sorted({each.value.name for each in step.inputs if each.kind in outer})
    for body in step.bodies:
        children = [_facts(each, body, format_) for each in body.controls()]
        found.branches.append(Branch(body.tag, body.path, body.nodes, body.constants, children))
    return found


def _sliced(value: TensorPort, entry: Entry) -> SlicedFacts:
    return SlicedFacts(value.name, entry.slicing["axis"], entry.slicing["stride"] < 0, value)
