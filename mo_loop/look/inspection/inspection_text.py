"""The text of an inspection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mo_loop.look.inspection.description import Branch, ControlFacts, Inspection
from mo_loop.look.records.tensor_ports import TensorPort
from mo_loop.support.printable import counted, printable_record, sized
from mo_loop.support.shown_result import Style

LONGEST = 300
"""The number of characters of a name that the text shows; JSON has all of them."""

STATES = 8
"""The number of states, slices and captures of a loop in the text; JSON has all of them."""


def text_of(inspection: Inspection, style: Style) -> str:
    """The whole text."""
    return "\n".join(_Text(style).lines(printable_record(inspection, LONGEST)))


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
        nodes = sum(each.nodes for each in inspection.scopes)
        weights = _amount(inspection.elements, inspection.bytes)
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
        yield from self._section("states", _states(inspection), (), ("variable", "type", "initial", "read", "assigned"))
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
        ]  # fmt: skip
        for name, text in facts:
            if text:
                yield f"{indent}  {name:10} {text}"
        for branch in control.branches:
            yield from self._branch(branch, indent + "  ")

    def _branch(self, branch: Branch, indent: str) -> Iterator[str]:
        constants = f", {counted(branch.constants, 'constant')}" if branch.constants else ""
        yield f"{indent}{branch.name}: {counted(branch.nodes, 'node')}{constants}"
        for child in branch.children:
            yield from self._tree(child, indent + "  ")


def _states(inspection: Inspection) -> list[tuple[str, ...]]:
    return [
        (each.id, str(TensorPort("", each.type, each.shape)), str(each.initial),
         *map(_listed, (each.read, each.assigned)))
        for each in inspection.states
    ]


def _typed(port: TensorPort) -> str:
    return str(port) if port.is_known else ""


def _listed(texts: list[str]) -> str:
    more = f" and {len(texts) - STATES} more" if len(texts) > STATES else ""
    return ", ".join(each.strip() for each in texts[:STATES]) + more


def _amount(elements: int, size: int) -> str:
    return f"{counted(elements, 'element')} in constants ({sized(size)})" if elements else "no constants"
