"""Inspection and its parts: plain records, the same for ONNX and IR, with the fields of the JSON.

    version     2; increased when a field changes its meaning or is removed, not when one is added
    the fields of Inspection, below them those of Port, Operator, ScopeSize, Function, ExternalFile, Control, Variable

Sizes are in bytes; the shape of a Port is a list of numbers, names of symbols and "?", null for an unknown rank.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from mo_loop.errors import UsageError
from mo_loop.look.records.structure import Shape, TensorPort
from mo_loop.printable import PLAIN, ShownResult, Style, counted, did_you_mean, first_few, printable_record, sized
from mo_loop.target import ANY

SCHEMA, VERSION = "mo-loop inspect", 2
"""The name of the JSON schema, and its version."""

LONGEST = 300
"""The number of characters of a name that the text shows; JSON has all of them."""

STATES = 8
"""The number of states, slices and captures of a loop in the text; JSON has all of them."""


@dataclass
class Operator:
    """An operator, its number of nodes in all scopes, and the sizes of the constants that these nodes read."""

    name: str
    count: int = 0
    elements: int = 0
    bytes: int = 0


@dataclass
class ScopeSize:
    """One graph: the main graph, a body or a function. `nodes` counts no constants, inputs and outputs; `operators` all
    that is in the file. Constants are those defined in it."""

    path: str
    kind: str
    nodes: int = 0
    constants: int = 0
    elements: int = 0
    bytes: int = 0
    operators: dict[str, int] = field(default_factory=dict)


@dataclass
class StateFacts:
    """A state that a loop carries from one iteration to the next: its name in the body, and the initial value."""

    name: str
    initial: TensorPort


@dataclass
class SlicedFacts:
    """A sliced input or a concatenated output and its axis. `backward`: from the end to the beginning."""

    name: str
    axis: int | None
    backward: bool
    value: TensorPort


@dataclass
class Branch:
    """A body, and the control flow in it."""

    name: str
    path: str
    nodes: int
    constants: int
    children: "list[ControlFacts]" = field(default_factory=list)


@dataclass
class ControlFacts:
    """A Loop, Scan, If, TensorIterator, or another operator with bodies.

    `trip_count` is the source of the number of iterations: "constant 10", "input n", "computed (Size)", "none",
    "dimension 12 of x". `condition` is the source of the condition before the first iteration, or of an If; `goes_on`
    that of the condition which the body returns, "always" if it never ends the loop.
    """

    path: str
    operator: str
    scope: str
    trip_count: str | None = None
    condition: str | None = None
    goes_on: str | None = None
    states: list[StateFacts] = field(default_factory=list)
    scan_inputs: list[SlicedFacts] = field(default_factory=list)
    scan_outputs: list[SlicedFacts] = field(default_factory=list)
    captures: list[str] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)


@dataclass
class Function:
    """A function of the model and the number of its calls."""

    name: str
    nodes: int
    calls: int
    inputs: list[str]
    outputs: list[str]


@dataclass
class ExternalFile:
    """A file with weights. `size` is None if the file is missing; `needed` is the end of the last tensor in it."""

    path: str
    tensors: int
    needed: int
    size: int | None


@dataclass
class Initial:
    """The value of a variable before it is assigned. `kind` is "constant", "computed", or "none": the device has one.

    `value` is that of all elements: "zeros", or a number; empty if they differ or are computed.
    """

    kind: str
    value: str = ""
    type: str = "?"
    shape: Shape = None

    def __str__(self) -> str:
        if self.kind == "none":
            return "none"
        is_static = self.shape is not None and all(isinstance(dim, int) for dim in self.shape)
        if self.value and (self.kind == "constant" or is_static):
            return self.value
        what = f"{self.value} of computed shape" if self.value else self.kind
        return f"{what} {TensorPort('', self.type, self.shape)}"


@dataclass
class VariableFacts:
    """A state that the runtime keeps between inferences. `read` and `assigned` are paths of layers."""

    id: str
    type: str
    shape: Shape
    initial: Initial
    read: list[str]
    assigned: list[str]


@dataclass(repr=False)
class Inspection(ShownResult):
    """One model. `format` is "onnx" or "ir", `file_bytes` the size of the file without external data."""

    file: str
    format: str
    file_bytes: int
    name: str
    ir_version: int
    producer: str = ""
    opsets: dict[str, int] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    inputs: list[TensorPort] = field(default_factory=list)
    outputs: list[TensorPort] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    scopes: list[ScopeSize] = field(default_factory=list)
    control: list[ControlFacts] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    external: list[ExternalFile] = field(default_factory=list)
    states: list[VariableFacts] = field(default_factory=list)
    """The variables of an IR; an ONNX model has none."""
    sizes: dict[str, str] = field(default_factory=dict)
    """The name of each input of an IR -> what its sizes may be, as the pass WriteSizes describes it."""

    @property
    def elements(self) -> int:
        return sum(each.elements for each in self.scopes)

    @property
    def bytes(self) -> int:
        """The size of all constants."""
        return sum(each.bytes for each in self.scopes)

    @property
    def count(self) -> str:
        """The numbers of nodes and scopes, as text."""
        return f"{counted(sum(each.nodes for each in self.scopes), 'node')} in {counted(len(self.scopes), 'scope')}"

    def lines(self, style: Style = PLAIN) -> Iterator[str]:
        return _lines(printable_record(self, LONGEST), style)

    def _brief(self) -> str:
        return f"{self.file}: {self.count}"

    def to_dict(self) -> dict[str, Any]:
        """The inspection as plain data; the name of the schema and its version come first."""
        return {"schema": SCHEMA, "version": VERSION, **asdict(self), "elements": self.elements, "bytes": self.bytes}


def below(control: list[ControlFacts]) -> Iterator[ControlFacts]:
    """The given control flow and all that is nested in it, outer before inner."""
    for each in control:
        yield each
        for branch in each.branches:
            yield from below(branch.children)


def unknown(what: str, name: str, known: list[str]) -> UsageError:
    """The error for a name that the model does not have."""
    return UsageError(f"the model has no {what} {name!r}", hint=did_you_mean(name, known))


# -- text


def _lines(found: Inspection, style: Style) -> Iterator[str]:
    kind = "ONNX" if found.format == "onnx" else "OpenVINO IR"
    by = f", made by {found.producer}" if found.producer else ""
    title = style.paint(found.file, bold=True)
    yield f"{title}: {kind} version {found.ir_version}, {sized(found.file_bytes)}{by}"
    if found.name:
        yield f"name       {found.name}"
    opsets = [f"{name or 'unnamed'} {version}" for name, version in found.opsets.items()]
    yield f"opsets     {', '.join(opsets)}"
    if target := found.metadata.get("converter.target"):
        yield f"target     OpenVINO {target}, device {found.metadata.get('conversion_parameters.device', ANY)}"
    elements = f"{counted(found.elements, 'element')} in constants ({sized(found.bytes)})"
    yield f"contents   {found.count}, {elements if found.elements else 'no constants'}"

    def section(
        title: str, rows: Iterable[tuple[str, ...]], right: tuple[int, ...] = (), heads: tuple[str, ...] = ()
    ) -> Iterator[str]:
        if cells := list(rows):
            yield style.paint(title, bold=True)
            yield style.table([heads, *cells] if heads else cells, right, indent="  ", heads=bool(heads))

    sizes = {name: f"may be [{text}]" for name, text in found.sizes.items() if text}
    yield from section("inputs", ((each.name, str(each), sizes.get(each.name, "")) for each in found.inputs))
    yield from section("outputs", ((each.name, str(each)) for each in found.outputs))
    yield from section("operators", (
        (each.name, str(each.count), sized(each.bytes) if each.bytes else "") for each in found.operators
    ), (1, 2), ("operator", "nodes", "constants"))
    yield from section("scopes", (
        (each.path or "(main)", each.kind, str(each.nodes), str(each.elements), sized(each.bytes))
        for each in found.scopes
    ), (2, 3, 4), ("path", "kind", "nodes", "elements", "constants"))
    if found.control:
        yield style.paint("control flow", bold=True)
        yield from (line for each in found.control for line in _tree(each, "  ", style))
    yield from section("states", (
        (each.id, str(TensorPort("", each.type, each.shape)), str(each.initial), _listed(each.read),
         _listed(each.assigned))
        for each in found.states
    ), (), ("variable", "type", "initial", "read", "assigned"))
    yield from section("functions", (
        (each.name, counted(each.nodes, "node"), counted(each.calls, "call"), f"({', '.join(each.inputs)})")
        for each in found.functions
    ), (1, 2))
    yield from section("weights in", (
        (each.path, counted(each.tensors, "tensor"), "missing, or refused" if each.size is None else sized(each.size))
        for each in found.external
    ), (1, 2))
    yield from section("metadata", ((key, " ".join(value.split())[:100]) for key, value in found.metadata.items()))


def _tree(control: ControlFacts, indent: str, style: Style) -> Iterator[str]:
    yield f"{indent}{style.paint(control.operator, fg='cyan')} {control.path}"

    def cut(each: SlicedFacts, type_: str = "") -> str:
        return f"{each.name}{type_} axis {each.axis}{' backwards' * each.backward}"

    facts = [
        ("trip count", control.trip_count), ("condition", control.condition), ("continues", control.goes_on),
        ("states", _listed([f"{each.name} {_typed(each.initial)}" for each in control.states])),
        ("slices", _listed([cut(each, f" {_typed(each.value)}") for each in control.scan_inputs])),
        ("joins", _listed(list(map(cut, control.scan_outputs)))), ("captures", _listed(control.captures)),
    ]
    yield from (f"{indent}  {name:10} {text}" for name, text in facts if text)
    for branch in control.branches:
        constants = f", {counted(branch.constants, 'constant')}" if branch.constants else ""
        yield f"{indent}  {branch.name}: {counted(branch.nodes, 'node')}{constants}"
        yield from (line for child in branch.children for line in _tree(child, indent + "    ", style))


def _typed(port: TensorPort) -> str:
    return str(port) if port.is_known else ""


def _listed(texts: list[str]) -> str:
    return first_few([each.strip() for each in texts], STATES)
