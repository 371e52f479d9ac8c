"""Inspection and its parts: plain records, the same for ONNX and IR, with the fields of the JSON.

    version     2; increased when a field changes its meaning or is removed, not when one is added
    the fields of Inspection, below them those of Port, Operator, ScopeSize, Function, ExternalFile, Control, Variable

Sizes are in bytes; the shape of a Port is a list of numbers, names of symbols and "?", null for an unknown rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    children: list[ControlFacts] = field(default_factory=list)


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

    def text(self, style: Style = PLAIN) -> str:
        """The text that `mo-loop inspect` prints."""
        return "\n".join(_Text(style).lines(printable_record(self, LONGEST)))

    def _brief(self) -> str:
        nodes = sum(each.nodes for each in self.scopes)
        return f"{self.file}: {counted(nodes, 'node')} in {counted(len(self.scopes), 'scope')}"

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


class _Text:
    def __init__(self, style: Style) -> None:
        self._style = style

    def lines(self, inspection: Inspection) -> Iterator[str]:
        kind = "ONNX" if inspection.format == "onnx" else "OpenVINO IR"
        by = f", made by {inspection.producer}" if inspection.producer else ""
        size = sized(inspection.file_bytes)
        yield f"{self._style.paint(inspection.file, bold=True)}: {kind} version {inspection.ir_version}, {size}{by}"
        if inspection.name:
            yield f"name       {inspection.name}"
        opsets = [f"{name or 'unnamed'} {version}" for name, version in inspection.opsets.items()]
        yield f"opsets     {', '.join(opsets)}"
        if target := inspection.metadata.get("converter.target"):
            yield f"target     OpenVINO {target}, device {inspection.metadata.get('conversion_parameters.device', ANY)}"
        nodes = sum(each.nodes for each in inspection.scopes)
        elements = f"{counted(inspection.elements, 'element')} in constants ({sized(inspection.bytes)})"
        weights = elements if inspection.elements else "no constants"
        yield f"contents   {counted(nodes, 'node')} in {counted(len(inspection.scopes), 'scope')}, {weights}"
        sizes = {name: f"may be [{text}]" for name, text in inspection.sizes.items() if text}
        inputs = [(each.name, str(each), sizes.get(each.name, "")) for each in inspection.inputs]
        yield from self._section("inputs", inputs)
        yield from self._section("outputs", [(each.name, str(each)) for each in inspection.outputs])
        operators = [
            (each.name, str(each.count), sized(each.bytes) if each.bytes else "") for each in inspection.operators
        ]
        yield from self._section("operators", operators, (1, 2), ("operator", "nodes", "constants"))
        scopes = [
            (each.path or "(main)", each.kind, str(each.nodes), str(each.elements), sized(each.bytes))
            for each in inspection.scopes
        ]
        yield from self._section("scopes", scopes, (2, 3, 4), ("path", "kind", "nodes", "elements", "constants"))
        if inspection.control:
            yield self._style.paint("control flow", bold=True)
            for each in inspection.control:
                yield from self._tree(each, "  ")
        states = [
            (each.id, str(TensorPort("", each.type, each.shape)), str(each.initial), _listed(each.read),
             _listed(each.assigned))
            for each in inspection.states
        ]
        yield from self._section("states", states, (), ("variable", "type", "initial", "read", "assigned"))
        functions = [
            (each.name, counted(each.nodes, "node"), counted(each.calls, "call"), f"({', '.join(each.inputs)})")
            for each in inspection.functions
        ]
        yield from self._section("functions", functions, (1, 2))
        files = [
            (each.path, counted(each.tensors, "tensor"),
             "missing, or refused" if each.size is None else sized(each.size))
            for each in inspection.external
        ]
        yield from self._section("weights in", files, (1, 2))
        metadata = [(key, " ".join(value.split())[:100]) for key, value in inspection.metadata.items()]
        yield from self._section("metadata", metadata)

    def _section(
        self, title: str, rows: Sequence[tuple[str, ...]], right: tuple[int, ...] = (), heads: tuple[str, ...] = ()
    ) -> Iterator[str]:
        if rows:
            yield self._style.paint(title, bold=True)
            yield self._style.table([heads, *rows] if heads else rows, right, indent="  ", heads=bool(heads))

    def _tree(self, control: ControlFacts, indent: str) -> Iterator[str]:
        yield f"{indent}{self._style.paint(control.operator, fg='cyan')} {control.path}"
        facts = [
            ("trip count", control.trip_count), ("condition", control.condition), ("continues", control.goes_on),
            ("states", _listed([f"{each.name} {_typed(each.initial)}" for each in control.states])),
            ("slices", _listed([f"{each.name} {_typed(each.value)} axis {each.axis}{' backwards' * each.backward}"
                                for each in control.scan_inputs])),
            ("joins", _listed([f"{each.name} axis {each.axis}{' backwards' * each.backward}"
                               for each in control.scan_outputs])),
            ("captures", _listed(control.captures)),
        ]
        for name, text in facts:
            if text:
                yield f"{indent}  {name:10} {text}"
        for branch in control.branches:
            constants = f", {counted(branch.constants, 'constant')}" if branch.constants else ""
            yield f"{indent}  {branch.name}: {counted(branch.nodes, 'node')}{constants}"
            for child in branch.children:
                yield from self._tree(child, indent + "    ")


def _typed(port: TensorPort) -> str:
    return str(port) if port.is_known else ""


def _listed(texts: list[str]) -> str:
    return first_few([each.strip() for each in texts], STATES)
