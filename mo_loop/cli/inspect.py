"""mo-loop inspect."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from mo_loop.cli.error_output import reported
from mo_loop.cli.file_checks import named, opened
from mo_loop.cli.model_options import allow_external_option, limit_option
from mo_loop.cli.output import counted, painted, show, show_lines, sized, table
from mo_loop.conversion_limits import Limits, limited
from mo_loop.errors import UsageError
from mo_loop.support.printable import printable_record

if TYPE_CHECKING:
    from mo_loop.look.inspection.description import Branch, ControlFacts, Inspection
    from mo_loop.look.records.tensor_ports import TensorPort

LONGEST = 300
"""The number of characters of a name that the text shows; JSON has all of them."""

STATES = 8
"""The number of states, slices and captures of a loop in the text; JSON has all of them."""


@click.command()
@click.argument("model", type=click.Path(), metavar="MODEL")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="The format of the output.",
)  # fmt: skip
@click.option(
    "--depth", type=click.IntRange(min=0), metavar="N",
    help="Show control flow and scopes down to N levels of bodies; 0 shows only the main graph.",
)  # fmt: skip
@click.option("--scope", metavar="PATH", help="Show only this body or function and the bodies in it.")
@click.option("--operator", metavar="NAME", help="Show only this operator: its number of nodes, and its scopes.")
@click.option("--graph", is_flag=True, help="Show the control flow as a tree, with the nodes before, in and after it.")
@click.option("--nodes", is_flag=True, help="List the nodes with the names, types and shapes of their tensors.")
@allow_external_option()
@limit_option("the command")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def command(
    model: str,
    form: str,
    depth: int | None,
    scope: str | None,
    operator: str | None,
    graph: bool,
    nodes: bool,
    allow_external: tuple[str, ...],
    limit: tuple[str, ...],
    debug: bool,
) -> None:
    """Show the contents of MODEL: an ONNX file, convertible or not, or the .xml of an IR (- is standard input).

    The output has inputs, outputs, operators with their counts, sizes of constants by operator and by scope, and each
    Loop, Scan, If and TensorIterator: the source of its trip count and its condition, its states, slices and captures.
    Of an IR it also has the states that the runtime keeps between inferences, with their initial values. Weights are
    not read.

    \b
    mo-loop inspect model.onnx
    mo-loop inspect model.xml --depth 1
    mo-loop inspect model.onnx --scope loop/body
    mo-loop inspect model.onnx --operator MatMul
    mo-loop inspect model.onnx --format json

    The bytes of an operator are those of the constants that it reads. A constant that several operators read counts
    for each of them; in the list of scopes it counts only where it is defined.

    \b
    mo-loop inspect model.onnx --graph
    mo-loop inspect model.onnx --nodes --operator Loop
    mo-loop inspect model.xml --nodes --scope loop/body

    With --graph and --nodes, MODEL can also be a .json or .txt file that convert --dump wrote. --graph shows each
    node with bodies: trip count, condition, what its inputs and outputs are to the bodies, and the bodies. --nodes
    prints a line for each node; constants are listed only if --operator names them. Types that an ONNX model does not
    declare are those that ONNX's shape inference finds. --input and --output of convert accept the names of an ONNX
    model in the columns "inputs" and "outputs" of lines whose scope is "(main)", and those in the column "name",
    which mean the first output of the node, unless a tensor or another node has the same name.
    """
    with reported(debug), limited(Limits.parse(limit)):
        if graph and nodes:
            raise UsageError("--graph and --nodes cannot be combined", hint="give one of them")
        if graph or nodes:
            from mo_loop.cli.graph_inspection import graph_lines, node_lines

            with opened(model) as path:
                lines = graph_lines if graph else node_lines
                show_lines(lines(path, model, form, depth, scope, operator, allow_external))
            return
        from mo_loop.look.inspection.read import inspect

        with opened(model) as path:
            found = _chosen(inspect(path, allow_external=allow_external), depth, scope, operator)
        found = replace(found, file=named(model))
        if form == "json":
            text = json.dumps(found.as_json(), indent=1, ensure_ascii=False, default=str)
        else:
            text = "\n".join(_text(printable_record(found, LONGEST)))
    show(text)


# -- selection by --depth, --scope and --operator


def _chosen(inspection: Inspection, depth: int | None, scope: str | None, operator: str | None) -> Inspection:
    if scope is not None:
        inspection = _below(inspection, scope)
    if depth is not None:
        control = [_cut(each, depth) for each in inspection.control] if depth else []
        kept = {branch.path for each in _every(control) for branch in each.branches}
        tops = {each.path for each in inspection.scopes if each.kind in ("model", "function")} | {scope}
        inspection = replace(
            inspection, control=control, scopes=[each for each in inspection.scopes if each.path in kept | tops]
        )
    if operator is not None:
        inspection = _only(inspection, operator)
    return inspection


def _below(inspection: Inspection, path: str) -> Inspection:
    from mo_loop.look.inspection.description import Operator, unknown

    scopes = [each for each in inspection.scopes if each.path == path or each.path.startswith(f"{path}/")]
    if not any(each.path == path for each in scopes):
        raise unknown("scope", path, [each.path for each in inspection.scopes if each.path])
    control = [each for each in _every(inspection.control) if each.scope == path]
    counts: dict[str, int] = {}
    for each in scopes:
        for name, count in each.operators.items():
            counts[name] = counts.get(name, 0) + count
    # Only the whole model has the constants that each operator reads.
    operators = [Operator(name, count) for name, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]
    return replace(inspection, scopes=scopes, control=control, operators=operators)


def _only(inspection: Inspection, name: str) -> Inspection:
    from mo_loop.look.inspection.description import unknown

    operators = [each for each in inspection.operators if each.name == name]
    if not operators:
        raise unknown("operator", name, [each.name for each in inspection.operators])
    scopes = [
        replace(each, operators={name: each.operators[name]}) for each in inspection.scopes if name in each.operators
    ]
    control = [replace(each, branches=[]) for each in _every(inspection.control) if each.operator == name]
    return replace(inspection, operators=operators, scopes=scopes, control=control)


def _every(control: list[ControlFacts]) -> Iterator[ControlFacts]:
    from mo_loop.look.inspection.description import below

    return below(control)


def _cut(control: ControlFacts, depth: int) -> ControlFacts:
    """A control-flow node with `depth` levels of bodies; the last level is without nodes."""
    branches = [
        replace(each, children=[_cut(child, depth - 1) for child in each.children] if depth > 1 else [])
        for each in control.branches
    ]
    return replace(control, branches=branches)


# -- text


def _text(inspection: Inspection) -> Iterator[str]:
    kind = "ONNX" if inspection.format == "onnx" else "OpenVINO IR"
    by = f", made by {inspection.producer}" if inspection.producer else ""
    size = sized(inspection.file_bytes)
    yield f"{painted(inspection.file, bold=True)}: {kind} version {inspection.ir_version}, {size}{by}"
    if inspection.name:
        yield f"name       {inspection.name}"
    opsets = [f"{name or 'unnamed'} {version}" for name, version in inspection.opsets.items()]
    yield f"opsets     {', '.join(opsets)}"
    nodes = sum(each.nodes for each in inspection.scopes)
    weights = _amount(inspection.elements, inspection.bytes)
    yield f"contents   {counted(nodes, 'node')} in {counted(len(inspection.scopes), 'scope')}, {weights}"
    for title, ports in (("inputs", inspection.inputs), ("outputs", inspection.outputs)):
        yield from _section(title, [(port.name, str(port)) for port in ports])
    operators = [(each.name, str(each.count), sized(each.bytes) if each.bytes else "") for each in inspection.operators]
    yield from _section("operators", operators, (1, 2), ("operator", "nodes", "constants"))
    scopes = [
        (each.path or "(main)", each.kind, str(each.nodes), str(each.elements), sized(each.bytes))
        for each in inspection.scopes
    ]
    yield from _section("scopes", scopes, (2, 3, 4), ("path", "kind", "nodes", "elements", "constants"))
    if inspection.control:
        yield painted("control flow", bold=True)
        for each in inspection.control:
            yield from _tree(each, "  ")
    yield from _section("states", _states(inspection), (), ("variable", "type", "initial", "read", "assigned"))
    functions = [
        (each.name, counted(each.nodes, "node"), counted(each.calls, "call"), f"({', '.join(each.inputs)})")
        for each in inspection.functions
    ]
    yield from _section("functions", functions, (1, 2))
    files = [
        (each.path, counted(each.tensors, "tensor"), "missing, or refused" if each.size is None else sized(each.size))
        for each in inspection.external
    ]
    yield from _section("weights in", files, (1, 2))
    metadata = [(key, " ".join(value.split())[:100]) for key, value in inspection.metadata.items()]
    yield from _section("metadata", metadata)


def _states(inspection: Inspection) -> list[tuple[str, ...]]:
    from mo_loop.look.records.tensor_ports import TensorPort

    return [
        (each.id, str(TensorPort("", each.type, each.shape)), str(each.initial),
         *map(_listed, (each.read, each.assigned)))
        for each in inspection.states
    ]


def _section(
    title: str, rows: Sequence[tuple[str, ...]], right: tuple[int, ...] = (), heads: tuple[str, ...] = ()
) -> Iterator[str]:
    if rows:
        yield painted(title, bold=True)
        yield table([heads, *rows] if heads else rows, right, indent="  ", heads=bool(heads))


def _tree(control: ControlFacts, indent: str) -> Iterator[str]:
    yield f"{indent}{painted(control.operator, fg='cyan')} {control.path}"
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
        yield from _branch(branch, indent + "  ")


def _branch(branch: Branch, indent: str) -> Iterator[str]:
    constants = f", {counted(branch.constants, 'constant')}" if branch.constants else ""
    yield f"{indent}{branch.name}: {counted(branch.nodes, 'node')}{constants}"
    for child in branch.children:
        yield from _tree(child, indent + "  ")


def _typed(port: TensorPort) -> str:
    return str(port) if port.is_known else ""


def _listed(texts: list[str]) -> str:
    more = f" and {len(texts) - STATES} more" if len(texts) > STATES else ""
    return ", ".join(each.strip() for each in texts[:STATES]) + more


def _amount(elements: int, size: int) -> str:
    return f"{counted(elements, 'element')} in constants ({sized(size)})" if elements else "no constants"
