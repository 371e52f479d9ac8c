"""mo-loop inspect."""

from dataclasses import replace

import click

from mo_loop.cli.conversion_options import named, opened, reading_options
from mo_loop.cli.flag_options import GroupedCommand, format_option, message_options, option
from mo_loop.cli.output import ReportFile, formatted, give, reported
from mo_loop.conversion_limits import Limits, limited
from mo_loop.errors import UsageError
from mo_loop.support.flags import FILES


@click.command(cls=GroupedCommand)
@click.argument("model", type=click.Path(), metavar="MODEL")
@format_option("text", "json")
@option(
    "--depth", group=FILES, type=click.IntRange(min=0), metavar="N",
    help="Show control flow and scopes down to N levels of bodies; 0 shows only the main graph.",
)
@option("--scope", group=FILES, metavar="PATH", help="Show only this body or function and the bodies in it.")
@option("--operator", group=FILES, metavar="NAME", help="Show only this operator: its number of nodes, and its scopes.")
@option(
    "--graph", group=FILES, is_flag=True,
    help="Show the control flow as a tree, with the nodes before, in and after it.",
)
@option("--nodes", group=FILES, is_flag=True, help="List the nodes with the names, types and shapes of their tensors.")
@reading_options
@message_options()
def command(
    model: str, form: str, report_file: ReportFile | None, depth: int | None, scope: str | None, operator: str | None,
    graph: bool, nodes: bool, allow_external: tuple[str, ...], limit: tuple[str, ...], quiet: bool, debug: bool,
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

    With --graph and --nodes, MODEL can also be a .json or .txt file that convert --dump wrote. --graph shows each node
    with bodies: trip count, condition, the roles of its inputs and outputs in the bodies, and the bodies. --nodes
    prints a line for each node; constants are listed only if --operator names them. Types that an ONNX model does not
    declare are those that ONNX's shape inference finds. --input and --output of convert accept the names of an ONNX
    model in the columns "inputs" and "outputs" of lines whose scope is "(main)", and those in the column "name", which
    mean the first output of the node, unless a tensor or another node has the same name.
    """
    is_json = form == "json" and not quiet
    with reported(debug, as_json=is_json, writes=False, report_file=report_file), limited(Limits.parse(limit)):
        if graph and nodes:
            raise UsageError("--graph and --nodes cannot be combined", hint="give one of them")
        if graph or nodes:
            from mo_loop.cli.graph_inspection import graph_lines, node_lines, structure_with

            with opened(model) as path:
                structure, chosen = structure_with(scope, operator, path, allow_external), (scope, depth, operator)
                lines = graph_lines if graph else node_lines
                give(lambda wanted: lines(structure, model, wanted, *chosen), form, report_file, quiet=quiet)
            return
        from mo_loop.look.inspection.read import inspect_part

        with opened(model) as path:
            found = inspect_part(path, allow_external, depth=depth, scope=scope, operator=operator)
        found = replace(found, file=named(model))
        give(lambda wanted: formatted(found, wanted), form, report_file, quiet=quiet)
