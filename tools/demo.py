"""Convert a small model with control flow and compare the results of OpenVINO and ONNX Runtime.

The model is a Loop that runs two states side by side: a vector under power iteration (`w = A v / |A v|`) and an integer
under the Collatz rule, chosen by an If whose branches capture the integer. It ends at the trip count or when the
integer reaches 1, whichever comes first, and returns the Rayleigh quotient and the integer of every step. It contains
the features that loop conversions often get wrong: a trip count known only at run time (zero included), an early exit,
two states, captured tensors, nested control flow and outputs that grow by one slice each step.

Exit code: 0 when every output agrees within the tolerance, 1 when one does not.
"""

import argparse
import os
import shlex
import shutil
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import mo_loop
from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.execution.runtime import run_ir
from mo_loop.compare.results.array_comparison import ArrayComparison
from mo_loop.compare.results.array_comparison import compare as compare_arrays
from mo_loop.frontend.onnx_graphs import body_protos
from tests.running.samples import expected_values

MODEL = """
<ir_version: 9, opset_import: ["": 18]>
walk (int64 trips, float[N, N] matrix, float[N] start, int64 seed)
    => (float[N] vector, int64 last, float[K] quotients, int64[K] trace)
<int64 one = {1}, int64 two = {2}, int64 three = {3}>
{
    go = Greater (seed, one)
    vector, last, quotients, trace = Loop (trips, go, start, seed) <body = step
        (int64 i, bool on, float[N] v, int64 n) => (bool again, float[N] w, int64 next, float quotient, int64 seen)
        {
            product = MatMul (matrix, v)
            length = ReduceL2 <keepdims = 0> (product)
            w = Div (product, length)
            weighted = Mul (v, product)
            quotient = ReduceSum <keepdims = 0> (weighted)
            half = Div (n, two)
            twice = Mul (half, two)
            even = Equal (twice, n)
            next = If (even) <
                then_branch = halve () => (int64 halved) { halved = Div (n, two) },
                else_branch = grow () => (int64 grown) { tripled = Mul (n, three)  grown = Add (tripled, one) }>
            seen = Identity (n)
            again = Greater (next, one)
        }>
}
"""

TRIPS = (0, 1, 5, 50, 1000)  # the integer 27 takes 111 steps to reach 1, so the last one ends early
SEED = 27
SIZE = 4
TOLERANCE = 1e-5  # relative to the larger of 1 and the largest expected magnitude; integers must agree exactly

NEXT = """\
Next, with a model of your own:

    {command} check model.onnx                  # lists errors, warnings and notes of the conversion
    {command} convert model.onnx -o model.xml
    {command} verify model.onnx model.xml       # compares with ONNX Runtime

docs/tutorials/first-model.md explains them; `make demo ARGS="--keep out"` keeps this model and its IR."""

CONTROL_FLOW_OPS = {"Loop", "Scan", "If"}
CONTROL_FLOW_LAYERS = {"Loop", "TensorIterator", "If"}


@dataclass(frozen=True)
class Layer:
    """One control-flow layer of an IR file, with the sizes of its port maps."""

    name: str
    kind: str
    inputs: int
    outputs: int
    back_edges: int
    depth: int


def build_model() -> onnx.ModelProto:
    """The demonstration model, with every node named by its operator and first output."""
    model = onnx.parser.parse_model(MODEL)
    for node, _ in control_flow_nodes(model.graph, every=True):
        node.name = f"{node.op_type}_{node.output[0]}"
    onnx.checker.check_model(model)
    return model


def control_flow_nodes(
    graph: onnx.GraphProto, depth: int = 0, *, every: bool = False
) -> Iterator[tuple[onnx.NodeProto, int]]:
    """Loop, Scan and If nodes (or `every` node) with the depth of nesting, outer ones first."""
    for node in graph.node:
        if every or node.op_type in CONTROL_FLOW_OPS:
            yield node, depth
        for body in body_protos(node):
            yield from control_flow_nodes(body, depth + 1, every=every)


def control_flow_layers(net: ET.Element, depth: int = 0) -> Iterator[Layer]:
    """Loop, TensorIterator and If layers of an IR document, outer ones first."""
    for layer in net.iterfind("layers/layer"):
        kind = layer.get("type", "")
        if kind not in CONTROL_FLOW_LAYERS:
            continue
        port_maps = [child for child in layer if child.tag.endswith("port_map")]
        yield Layer(
            name=layer.get("name", ""),
            kind=f"{kind}-{layer.get('version', 'opset?').removeprefix('opset')}",
            inputs=sum(len(port_map.findall("input")) for port_map in port_maps),
            outputs=sum(len(port_map.findall("output")) for port_map in port_maps),
            back_edges=len(layer.findall("back_edges/edge")),
            depth=depth,
        )
        for body in layer:
            if body.tag.endswith("body"):
                yield from control_flow_layers(body, depth + 1)


def conversion_table(model: onnx.ModelProto, xml: Path) -> Table:
    """Pairs of ONNX nodes and layers: by name if the names agree, else by order; the rest has no partner.

    A loop that may not run is in an If that the converter adds.
    """
    layers = list(control_flow_layers(ET.parse(xml).getroot()))
    table = Table(title="What was converted", title_justify="left")
    for column in ("ONNX node", "IR layer", "name in the IR"):
        table.add_column(column)
    for column in ("inputs", "outputs", "back edges"):
        table.add_column(column, justify="right")
    for node, depth in control_flow_nodes(model.graph):
        alike = [each for each in layers if each.kind.startswith(node.op_type) and each.depth >= depth]
        partner = next((layer for layer in layers if layer.name == node.name), None) or next(iter(alike), None)
        label = f"{'  ' * depth}{node.op_type} [dim]{node.name}[/dim]"
        if partner is None:
            table.add_row(label, "(written out as plain layers)")
            continue
        layers.remove(partner)
        add_layer(table, label, partner)
    for layer in layers:
        add_layer(table, "[dim](added by the converter)[/dim]", layer)
    return table


def add_layer(table: Table, label: str, layer: Layer) -> None:
    """One row of the conversion table."""
    sizes = (layer.inputs, layer.outputs, layer.back_edges)
    table.add_row(label, f"{'  ' * layer.depth}{layer.kind}", layer.name, *map(str, sizes))


def sample(trips: int) -> dict[str, np.ndarray]:
    """Inputs for one run: a fixed symmetric matrix with a clear largest eigenvalue, a fixed start."""
    rng = np.random.default_rng(7)
    noise = rng.standard_normal((SIZE, SIZE)).astype(np.float32)
    matrix = np.diag(np.arange(1, SIZE + 1, dtype=np.float32)) + 0.1 * (noise + noise.T)
    return {
        "trips": np.array(trips, np.int64),
        "matrix": matrix.astype(np.float32),
        "start": np.full(SIZE, 0.5, np.float32),
        "seed": np.array(SEED, np.int64),
    }


def compare(model: onnx.ModelProto, xml: Path, trips: tuple[int, ...]) -> tuple[Table, bool]:
    """Run both sides on the same inputs, with one compiled model and one session for all trip counts."""
    sets = [sample(count) for count in trips]
    expected = isolated(expected_values, model.SerializeToString(), sets).values
    found = isolated(run_ir, xml, sets)

    table = Table(title="Largest difference, OpenVINO against ONNX Runtime", title_justify="left")
    table.add_column("trip count", justify="right")
    table.add_column("steps run", justify="right")
    for output in model.graph.output:
        table.add_column(output.name, justify="right")
    agree = True
    for count, wanted, actual in zip(trips, expected, found, strict=True):
        results = [close(name, array, dict(actual)[name]) for name, array in wanted]
        agree = agree and all(results)
        worst = [(f"{each.largest_abs:.1e}" if each else f"[bold red]{each.message}[/bold red]") for each in results]
        table.add_row(str(count), str(len(dict(wanted)["trace"])), *worst)
    return table, agree


def close(name: str, expected: np.ndarray, actual: np.ndarray) -> ArrayComparison:
    """Whether floats differ by less than the tolerance, relative to the largest of them, and integers are equal."""
    return compare_arrays(expected, actual, name, rtol=0, atol=TOLERANCE * max(1.0, np.abs(expected).max(initial=0)))


def command() -> str:
    """How to call mo-loop of this environment from any folder: its path, if the PATH does not lead to it."""
    script = Path(sys.executable).absolute().with_name("mo-loop")
    return "mo-loop" if shutil.which("mo-loop") == os.fspath(script) else shlex.quote(os.fspath(script))


def main(arguments: list[str] | None = None) -> int:
    """Convert, read back, compare, print."""
    parser = argparse.ArgumentParser(description="Convert a small model with a loop and compare the results.")
    parser.add_argument("--trips", type=int, nargs="+", default=TRIPS, metavar="N", help="trip counts to run")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the model and its IR in this folder")
    options = parser.parse_args(arguments)
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)  # a log file has no width; 80 columns would break the tables

    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        model = build_model()
        onnx.save(model, folder / "walk.onnx")
        xml = folder / "walk.xml"

        started = time.perf_counter()
        mo_loop.save_model(mo_loop.convert_model(folder / "walk.onnx"), xml, compress_to_fp16=False)
        took = 1000 * (time.perf_counter() - started)
        console.print(f"walk.onnx -> walk.xml, walk.bin in {took:.0f} ms\n")
        console.print(conversion_table(model, xml))
        console.print()
        table, agree = compare(model, xml, tuple(options.trips))
        console.print(table)

    if agree:
        console.print(f"[green]Every output agrees[/green] (floats within {TOLERANCE:g}, integers exactly).\n")
        console.print(NEXT.format(command=command()), highlight=False, soft_wrap=True)  # commands stay on one line
        return 0
    console.print(f"[bold red]An output differs[/bold red] beyond {TOLERANCE:g} for floats, or at all for integers.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
