"""Measure the command line and `ovc` in the same run and on the same files, as whole subprocesses.

    python tools/bench.py                    every bench
    python tools/bench.py chain-30k help     these two
    python tools/bench.py fusions flat       two that start no command
    python tools/bench.py --json             one JSON document on stdout, progress on stderr

A row compares the best wall time of both sides, because noise only adds time. The rows `weights-...` compare the extra
time of a conversion over that of a tiny model with `cp` of the same bytes, and the peak memory; they run only if named.
The rows `batch-...` convert a folder of small models: two workers against one, and against a shell loop over ovc, of
which a few models are measured and the rest is scaled.
Runs alternate, so that load of the machine affects both. The ratio of the best times is compared with the row's
target; the exit code is 1 if one is missed.
The rows `fusions`, `matchers`, `flat` and `inference` time functions of the library against a loop written by hand,
one matcher, small graphs, and ovc's whole conversion of `chain-100k`, whose measurement is used if that row ran before.
They are in tools/bench_functions.py, which runs in a process for each.
The rows `dump-...` compare a conversion that writes a dump (text, JSON and the page) with the same one without it.
Models are written by a subprocess, so that this process stays small: the peak memory of a child is never counted below
that of the process that starts it.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FUNCTIONS = Path(__file__).with_name("bench_functions.py")
TIMEOUT = 900  # seconds for one run


@dataclass(frozen=True)
class Bench:
    """What both sides do: `--help` when there is no model, otherwise a conversion of a chain of `nodes` nodes; or, with
    `gigabytes` of weights, a conversion against a copy of the file. Without commands it is functions that are timed:
    both sides are those of that name in bench_functions.py, or with `nodes` the peer is ovc's conversion of them. With
    `models` it is a batch of so many; the peer is one worker, or ovc on `looped` of them. `dumped` is the kind of model
    (a key of DUMPED) that is converted with a dump; the peer is the conversion without it."""

    name: str
    what: str
    nodes: int | None
    target: float
    repetitions: int
    gigabytes: float = 0.0
    external: bool = False
    peak_mib: float = float("inf")
    commands: bool = True
    models: int = 0
    looped: int = 0
    dumped: str = ""


@dataclass
class Side:
    """One side's command, and what its runs took; of functions, how many units of work that was."""

    command: list[str]
    seconds: list[float] = field(default_factory=list)
    peak_mib: float = 0.0
    units: int = 1

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


BENCHES = (
    Bench("chain-30k", "convert a chain of 30,000 nodes", 30_000, target=1 / 3, repetitions=3),
    Bench("chain-100k", "convert a chain of 100,000 nodes", 99_999, target=1 / 3, repetitions=1),
    Bench("tiny", "convert a model of 3 nodes", 3, target=1.5, repetitions=7),
    Bench("help", "print the help text", None, target=1.0, repetitions=7),
    Bench("fusions", "25,000 fusions of three nodes, against a loop", None, 2.5, 4, commands=False),
    Bench("matchers", "40 matchers without a match, against one", None, 2.0, 7, commands=False),
    Bench("flat", "the pipeline a node, of 100,000 against 3,000", None, 1.3, 3, commands=False),
    Bench("inference", "infer 100,000 nodes, against ovc's conversion", 99_999, 0.05, 3, commands=False),
    Bench("batch-workers", "500 models on two workers, against one", None, 1 / 1.8, 3, models=500),
    Bench("batch-ovc", "500 models, against a shell loop over ovc", None, 0.1, 2, models=500, looped=20),
    Bench("dump-3k", "dump a chain of 3,000 nodes, against its conversion", 3_000, 2.0, 5, dumped="chain"),
    Bench("dump-30k", "dump a chain of 30,000 nodes, against its conversion", 30_000, 2.0, 3, dumped="chain"),
    Bench("dump-layers", "dump 64 layers of a transformer, against its conversion", 64, 2.0, 5, dumped="layers"),
    Bench("dump-loops", "dump 40 nested loops, against their conversion", 40, 2.0, 5, dumped="loops"),
)
ON_DEMAND = (
    Bench("weights-1g", "1 GB of embedded weights", 3, 2.0, 3, gigabytes=1, peak_mib=250),
    Bench("weights-4g", "4 GB of external weights", 3, 2.0, 2, gigabytes=4, external=True, peak_mib=250),
)


def write_chain(nodes: int, path: Path) -> None:
    """A chain of MatMul, Add, Relu over small constants, all different, so that nothing is stored once for many."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    layers = nodes // 3
    chain: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    value = "x"
    for index in range(layers):
        share = np.float32((index + 1) / (layers + 1))
        weights.append(numpy_helper.from_array(np.eye(4, dtype=np.float32) * share, f"weight_{index}"))
        weights.append(numpy_helper.from_array(np.full(4, share, np.float32), f"bias_{index}"))
        chain.append(helper.make_node("MatMul", [value, f"weight_{index}"], [f"product_{index}"], f"matmul_{index}"))
        chain.append(helper.make_node("Add", [f"product_{index}", f"bias_{index}"], [f"sum_{index}"], f"add_{index}"))
        chain.append(helper.make_node("Relu", [f"sum_{index}"], [f"relu_{index}"], f"relu_{index}"))
        value = f"relu_{index}"
    graph = helper.make_graph(
        chain,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, ["N", 4])],
        weights,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


def write_layers(count: int, path: Path) -> None:
    """Layers of a transformer, as exporters write them: normalisation, attention and GELU of many small nodes."""
    size = 8
    matrix = ",".join(f"{0.1 * (place % 5) - 0.2:.2}" for place in range(size * size))
    constants = (
        f"float[{size},{size}] w = {{{matrix}}}, float[{size}] g = {{{','.join(['1.5'] * size)}}}, "
        "float two = {2}, float eps = {0.00001}, float root = {2.828}, float half = {0.5}, float one = {1}, "
        "float sq = {1.4142}, int64[1] last = {-1}"
    )
    text, x = [], "x"
    for n in range(count):
        text.append(f"""
        mean{n} = ReduceMean ({x}, last) cent{n} = Sub ({x}, mean{n}) pow{n} = Pow (cent{n}, two)
        var{n} = ReduceMean (pow{n}, last) vare{n} = Add (var{n}, eps) std{n} = Sqrt (vare{n})
        norm{n} = Div (cent{n}, std{n}) scaled{n} = Mul (norm{n}, g)
        q{n} = MatMul (scaled{n}, w) k{n} = MatMul (scaled{n}, w) v{n} = MatMul (scaled{n}, w)
        kt{n} = Transpose <perm = [0, 2, 1]> (k{n}) dots{n} = MatMul (q{n}, kt{n}) scores{n} = Div (dots{n}, root)
        weights{n} = Softmax <axis = -1> (scores{n}) mixed{n} = MatMul (weights{n}, v{n}) res{n} = Add ({x}, mixed{n})
        up{n} = MatMul (res{n}, w) ratio{n} = Div (up{n}, sq) erf{n} = Erf (ratio{n}) plus{n} = Add (erf{n}, one)
        act{n} = Mul (up{n}, plus{n}) gelu{n} = Mul (act{n}, half) down{n} = MatMul (gelu{n}, w)
        shape{n} = Shape (down{n}) same{n} = Reshape (down{n}, shape{n}) y{n} = Add (res{n}, same{n})""")
        x = f"y{n}"
    write_text(f"main (float[B,S,{size}] x) => (float[B,S,{size}] {x}) <{constants}> {{{''.join(text)} }}", path)


def write_loops(count: int, path: Path) -> None:
    """Loops with an If that has a loop, one behind the other."""
    text, x = [], "x"
    for n in range(count):
        text.append(f"""
        y{n} = Loop (n, "", {x}) <body = outer{n} (int64 i{n}, bool c{n}, float[2,3] s{n}) =>
          (bool d{n}, float[2,3] t{n}) {{
          d{n} = Identity (c{n}) sum{n} = ReduceSum <keepdims = 0> (s{n}) is{n} = Less (sum{n}, limit)
          t{n} = If (is{n}) <
            then_branch = yes{n} () => (float[2,3] p{n}) {{
              p{n} = Loop (m, "", s{n}) <body = inner{n} (int64 j{n}, bool e{n}, float[2,3] u{n}) =>
                (bool f{n}, float[2,3] w{n}) {{ f{n} = Identity (e{n}) a{n} = Add (u{n}, x) w{n} = Tanh (a{n}) }}> }},
            else_branch = no{n} () => (float[2,3] q{n}) {{ q{n} = Neg (s{n}) }}> }}>""")
        x = f"y{n}"
    inputs = "float[2,3] x, int64 n, int64 m"
    write_text(f"main ({inputs}) => (float[2,3] {x}) <float limit = {{3}}> {{{''.join(text)} }}", path)


def write_text(text: str, path: Path) -> None:
    """The model of a text in ONNX's syntax."""
    import onnx

    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 18]>\n{text}'), path)


DUMPED = {"chain": write_chain, "layers": write_layers, "loops": write_loops}
"""What writes a model of each kind, of a number of nodes, layers or loops."""


def write_models(count: int, folder: Path) -> None:
    """Chains of 90 to 282 nodes."""
    folder.mkdir()
    for number in range(count):
        write_chain(90 + 12 * (number % 17), folder / f"{number:04}.onnx")


def write_weights(gigabytes: float, external: bool, path: Path) -> None:
    """A chain of MatMuls over random matrices of 64 MiB, embedded or in one file beside the model."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    count = max(1, round(gigabytes * 1e9 / 2**26))
    nodes = [helper.make_node("MatMul", [f"y{i}", f"w{i}"], [f"y{i + 1}"]) for i in range(count)]
    weights = [numpy_helper.from_array(rng.standard_normal((4096, 4096), np.float32), f"w{i}") for i in range(count)]
    graph = helper.make_graph(
        nodes,
        "weights",
        [helper.make_tensor_value_info("y0", TensorProto.FLOAT, [1, 4096])],
        [helper.make_tensor_value_info(f"y{count}", TensorProto.FLOAT, [1, 4096])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, path, save_as_external_data=external, location=f"{path.name}.data" if external else None)


def script(name: str, module: str) -> list[str]:
    """The console script next to this interpreter, as a user runs it; if there is none, the module."""
    found = shutil.which(name, path=sysconfig.get_path("scripts"))
    return [found] if found else [sys.executable, "-m", module]


def sides(bench: Bench, folder: Path) -> dict[str, Side]:
    """The commands of both sides for one bench; the model is written first."""
    ours, peer = script("mo-loop", "mo_loop"), script("ovc", "openvino.tools.ovc")
    if bench.models:
        return batch_sides(bench, folder, ours, peer)
    if bench.nodes is None:
        return {"mo-loop": Side([*ours, "--help"]), "ovc": Side([*peer, "--help"])}
    model = folder / f"{bench.name}.onnx"
    kind = bench.dumped or "chain"
    subprocess.run([sys.executable, __file__, "--write", kind, str(bench.nodes), str(model)], check=True)
    if bench.dumped:
        convert = [*ours, "convert", str(model), "--quiet", "-o"]
        steps = ["--dump", str(folder / "out" / "steps"), "--dump-format", "text,json"]
        return {
            "mo-loop": Side([*convert, str(folder / "out" / "dumped.xml"), *steps]),
            "no dump": Side([*convert, str(folder / "out" / "plain.xml")]),
        }
    if bench.gigabytes:
        heavy = folder / f"{bench.name}-heavy.onnx"
        what = [str(bench.gigabytes), str(int(bench.external)), str(heavy)]
        subprocess.run([sys.executable, __file__, "--write-weights", *what], check=True)
        data = heavy.with_name(f"{heavy.name}.data") if bench.external else heavy
        return {
            "mo-loop": Side([*ours, "convert", str(heavy), "-o", str(folder / "out" / "heavy.xml")]),
            "cp": Side(["cp", str(data), str(folder / "out" / "copy")]),
            "tiny": Side([*ours, "convert", str(model), "-o", str(folder / "out" / "tiny.xml")]),
        }
    to_ours, to_peer = folder / f"{bench.name}-ours.xml", folder / f"{bench.name}-ovc.xml"
    return {
        "mo-loop": Side([*ours, "convert", str(model), "-o", str(to_ours)]),
        "ovc": Side([*peer, str(model), "--output_model", str(to_peer), "--compress_to_fp16=False"]),
    }


def batch_sides(bench: Bench, folder: Path, ours: list[str], peer: list[str]) -> dict[str, Side]:
    """The commands of two workers and of their peer."""
    models = folder / "models"
    subprocess.run([sys.executable, __file__, "--write-models", str(bench.models), str(models)], check=True)
    batch = [*ours, "batch", str(models), "--force", "--quiet", "-o"]
    two = Side([*batch, str(folder / "two"), "-j", "2"], units=bench.models)
    if not bench.looped:
        return {"mo-loop": two, "one worker": Side([*batch, str(folder / "one"), "-j", "1"], units=bench.models)}
    names = [str(path) for path in sorted(models.iterdir())[:: bench.models // bench.looped]]
    convert = f"{shlex.join(peer)} --compress_to_fp16=False"
    loop = f'for model; do {convert} "$model" --output_model "$model.xml" || exit; done'
    return {"mo-loop": two, "ovc": Side(["sh", "-c", loop, "sh", *names], units=len(names))}


def run_once(side: Side, folder: Path) -> str:
    """One run of one side: wall time from start to exit, and the peak resident memory the kernel reports for it.

    Returns what the command printed.
    """
    environment = {**os.environ, "CI": "true", "PYTHONPATH": str(ROOT)}  # CI: ovc sends no usage events
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # both sides run as installed, with bytecode
    with open(folder / "output.txt", "w+b") as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            side.command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=folder, env=environment
        )
        status, peak = wait(process, TIMEOUT)
        took = time.perf_counter() - started
        if status != 0:
            output.seek(0)
            tail = output.read().decode(errors="replace")[-2000:]
            raise SystemExit(f"{' '.join(side.command)}: exit code {status}\n{tail}")
        output.seek(0)
        printed = output.read().decode(errors="replace")
    side.seconds.append(took)
    side.peak_mib = max(side.peak_mib, peak)
    return printed


def wait(process: subprocess.Popen[bytes], timeout: float) -> tuple[int, float]:
    """Exit code and peak memory in MiB of a child (0 where the platform reports none); kills it at the timeout."""
    killer = threading.Timer(timeout, process.kill)
    killer.start()
    try:
        if not hasattr(os, "wait4"):
            return process.wait(), 0.0
        _, status, usage = os.wait4(process.pid, 0)
    finally:
        killer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    kib = usage.ru_maxrss / 1024 if sys.platform == "darwin" else usage.ru_maxrss
    return process.returncode, kib / 1024


def measure(
    bench: Bench, repetitions: int, say: Callable[[str], None], measured: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """The runs of both sides as one row. `measured` are the rows so far."""
    with tempfile.TemporaryDirectory() as scratch:
        if bench.commands:
            pair = run_commands(bench, repetitions, Path(scratch), say)
        else:
            pair = run_functions(bench, repetitions, Path(scratch), say, measured)
    return row(bench, repetitions, pair)


def run_commands(bench: Bench, repetitions: int, folder: Path, say: Callable[[str], None]) -> dict[str, Side]:
    """Alternate the commands of both sides."""
    pair = sides(bench, folder)
    for repetition in range(repetitions):
        order = list(pair) if repetition % 2 == 0 else list(reversed(pair))
        for name in order:
            if bench.gigabytes or bench.dumped:  # overwriting files that are not yet on the disk takes longer
                shutil.rmtree(folder / "out", ignore_errors=True)
                (folder / "out").mkdir()
            run_once(pair[name], folder)
            say(f"{bench.name} {repetition + 1}/{repetitions} {name}: {pair[name].seconds[-1]:.3f} s")
    return pair


def run_functions(
    bench: Bench, repetitions: int, folder: Path, say: Callable[[str], None], measured: Sequence[dict[str, Any]]
) -> dict[str, Side]:
    """The measurements of bench_functions.py, with ovc's conversion if that is the peer."""
    command = [sys.executable, str(FUNCTIONS), bench.name, str(repetitions)]
    pair: dict[str, Side] = {}
    if bench.nodes is not None:
        commands = sides(bench, folder)
        command.append(str(folder / f"{bench.name}.onnx"))
        known = [each["ovc"]["best_s"] for each in measured if each["bench"] == "chain-100k"]
        pair["ovc"] = Side([], known) if known else commands["ovc"]
        if not known:
            run_once(pair["ovc"], folder)
    ours = Side(command)
    found = json.loads(run_once(ours, folder))
    for name, seconds in found["seconds"].items():
        pair[name] = Side(command, seconds, ours.peak_mib, found["units"][name])
        say(f"{bench.name} {repetitions}/{repetitions} {name}: {min(seconds):.3f} s")
    return {"mo-loop": pair.pop("mo-loop"), **pair}


def row(bench: Bench, repetitions: int, pair: dict[str, Side]) -> dict[str, Any]:
    """Ours first, then the peer; a third side is what both sides of `weights-...` cost without weights."""
    ours, peer, *tiny = pair.values()
    base = tiny[0].best if tiny else 0.0
    per_unit = peer.units / ours.units
    ratio = max(ours.best - base, 0.0) / peer.best * per_unit
    return {
        "bench": bench.name,
        "what": bench.what,
        "peer": list(pair)[1],
        "repetitions": repetitions,
        **{
            name: {
                "best_s": round(side.best, 4),
                "median_s": round(side.median, 4),
                "peak_mib": round(side.peak_mib, 1),
            }
            for name, side in pair.items()
        },
        "ratio": round(ratio, 4),
        "median_ratio": round(max(ours.median - base, 0.0) / peer.median * per_unit, 4),
        "target": round(bench.target, 4),
        "met": ratio <= bench.target and ours.peak_mib <= bench.peak_mib,
    }


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    """The rows as a table."""
    from rich.console import Console
    from rich.table import Table

    title = "mo-loop against a peer: best (median) seconds, peak memory, ratio of the best"
    table = Table(title=title, title_justify="left")
    table.add_column("bench")
    for column in ("mo-loop", "MiB", "peer", "seconds", "MiB", "target", "got", ""):
        table.add_column(column, justify="right")
    for row in rows:
        cells: list[str] = []
        for name in ("mo-loop", row["peer"]):
            side = row[name]
            cells += [name] if name == row["peer"] else []
            cells += [f"{side['best_s']:.3f} ({side['median_s']:.3f})", f"{side['peak_mib']:.0f}"]
        verdict = "[green]met[/green]" if row["met"] else "[bold red]missed[/bold red]"
        table.add_row(row["bench"], *cells, f"<= {row['target']:.2f}", f"{row['ratio']:.2f}", verdict)
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)  # a log has no width of its own; 80 columns would break the table
    console.print(table)


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen benches; 0 when every target is met, else 1."""
    known = {bench.name: bench for bench in (*BENCHES, *ON_DEMAND)}
    parser = argparse.ArgumentParser(description="Measure mo-loop against ovc.")
    names = f"which ones: {', '.join(known)} (default: those without weights)"
    parser.add_argument("benches", nargs="*", metavar="BENCH", help=names)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--repetitions", type=int, metavar="N", help="runs of each side, instead of the bench's own")
    parser.add_argument("--write-chain", nargs=2, metavar=("NODES", "PATH"), help="only write the model of a bench")
    parser.add_argument("--write", nargs=3, metavar=("KIND", "COUNT", "PATH"), help=argparse.SUPPRESS)
    parser.add_argument("--write-models", nargs=2, metavar=("COUNT", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--write-weights", nargs=3, metavar=("GB", "EXTERNAL", "PATH"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.write_chain:
        write_chain(int(options.write_chain[0]), Path(options.write_chain[1]))
        return 0
    if options.write:
        kind, count, path = options.write
        DUMPED[kind](int(count), Path(path))
        return 0
    if options.write_models:
        write_models(int(options.write_models[0]), Path(options.write_models[1]))
        return 0
    if options.write_weights:
        gigabytes, external, path = options.write_weights
        write_weights(float(gigabytes), bool(int(external)), Path(path))
        return 0
    unknown = [name for name in options.benches if name not in known]
    if unknown:
        parser.error(f"no such bench: {', '.join(unknown)} (there are: {', '.join(known)})")
    if options.repetitions is not None and options.repetitions < 1:
        parser.error("--repetitions needs at least 1")

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    chosen = [known[name] for name in options.benches] or list(BENCHES)
    rows: list[dict[str, Any]] = []
    for bench in chosen:
        rows.append(measure(bench, options.repetitions or bench.repetitions, say, rows))
    if options.json:
        print(json.dumps({"benches": rows, "met": all(row["met"] for row in rows)}, indent=2))
    else:
        print_table(rows)
    return 0 if all(row["met"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
