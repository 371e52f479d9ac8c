"""Inspection and its parts: plain records, the same for ONNX and IR, with the fields of the JSON.

    version     2; increased when a field changes its meaning or is removed, not when one is added
    the fields of Inspection, below them those of Port, Operator, ScopeSize, Function, ExternalFile, Control, Variable

Sizes are in bytes; the shape of a Port is a list of numbers, names of symbols and "?", null for an unknown rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from mo_loop.errors import UsageError
from mo_loop.look.records.tensor_ports import Shape, TensorPort
from mo_loop.support.printable import counted
from mo_loop.support.shown_result import PLAIN, ShownResult, Style

SCHEMA, VERSION = "mo-loop inspect", 2
"""The name of the JSON schema, and its version."""

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
        from mo_loop.look.inspection.inspection_text import text_of

        return text_of(self, style)

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
    from difflib import get_close_matches

    close = get_close_matches(name, known, 1, 0.5)
    return UsageError(f"the model has no {what} {name!r}", hint=f"did you mean {close[0]!r}?" if close else "")
