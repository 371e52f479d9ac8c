"""Measure inference on OpenVINO's CPU device: the IR of mo_loop and the IR of ovc for the same models.

    python tools/bench_inference.py                        every model below tests/models, and cells in loops
    python tools/bench_inference.py pytorch/lstm cell      those whose names contain one of these
    python tools/bench_inference.py --json                 one JSON document on stdout, progress on stderr

Both sides are compiled twice, and the four compiled models run in turn in one process. A row gives the median over all
rounds of our time divided by ovc's in the same round. The spread is the difference between the two of a side: this part
of a ratio may be noise. The targets are the geometric mean of all exported models (1.02), each of them (1.10 beyond its
spread), and cells written out in loops (1.9 times faster); the exit code is 1 if one is missed. Models that a side
refuses, or for which ovc's IR gives other numbers, are listed separately; a model that our IR does not run is a miss.

    python tools/bench_inference.py --folder out/real              the networks that tools/export_real.py writes
    python tools/bench_inference.py --folder out/real resnet50     those whose names contain one of these
    python tools/bench_inference.py --why resnet50-qdq_u8s8        what the runtime executes for both IRs, and how long

Networks of a folder run on two threads (--threads); a row has compile time, .bin, peak memory and differences from ONNX
Runtime, too. tools/real/targets.py has their targets: inference and compile time at most 1.05 of ovc's in each row, a
.bin that is not larger. With --results FILE each row is written to FILE when it is measured, and the rows in FILE are
not measured again; --markdown FILE writes the table as Markdown:

    python tools/bench_inference.py --folder out/real --results out/real/rows.jsonl --markdown out/real/rows.md
"""

import argparse
import json
import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.support.workers import Pool
from tests.models.sources.exporting.inputs import read_cases
from tests.models.sources.real_models.rows import matching
from tools.measuring import NO_TELEMETRY, OURS, PEER
from tools.real import pairs, records, targets
from tools.timing import Row, Task, exported

ROOT = Path(__file__).resolve().parents[1]
EXPORTED = ROOT / "out" / "real"
MEAN, EACH, FASTER = 1.02, 1.10, 1.9
LENGTH, INPUT, HIDDEN = 200, 64, 128

LSTM = """
gx = MatMul(xt, w)
gh = MatMul(h, r)
s = Add(gx, gh)
gates = Add(s, b)
ip, fp, gp, op = Split<axis=1>(gates, sizes)
i_ = Sigmoid(ip)
f = Sigmoid(fp)
g_ = Tanh(gp)
o = Sigmoid(op)
fc = Mul(f, c)
ig = Mul(i_, g_)
c2 = Add(fc, ig)
tc = Tanh(c2)
h2 = Mul(o, tc)
"""
GRU = """
gx = MatMul(xt, w)
gh = MatMul(h, r)
xb = Add(gx, b)
rx, zx, nx = Split<axis=1>(xb, sizes)
rh, zh, nh = Split<axis=1>(gh, sizes)
rp = Add(rx, rh)
zp = Add(zx, zh)
rr = Sigmoid(rp)
z = Sigmoid(zp)
rn = Mul(rr, nh)
np = Add(nx, rn)
n_ = Tanh(np)
d = Sub(h, n_)
zd = Mul(z, d)
h2 = Add(n_, zd)
"""
RNN = """
gx = MatMul(xt, w)
gh = MatMul(h, r)
s = Add(gx, gh)
sb = Add(s, b)
h2 = Tanh(sb)
"""
CELLS = {"cell/lstm": (LSTM, 4, ("h", "c")), "cell/gru": (GRU, 3, ("h",)), "cell/rnn": (RNN, 1, ("h",))}


# -- what is measured


def tasks(wanted: Sequence[str], rounds: int) -> Iterator[Task]:
    """The models whose names contain one of `wanted`, all if it is empty; each with its largest set of inputs."""
    for name, path, feeds in exported(wanted):
        yield Task(name, path.read_bytes(), feeds, rounds)
    for name in CELLS:
        if not wanted or any(each in name for each in wanted):
            yield cell_task(name, rounds)


def cell_task(name: str, rounds: int) -> Task:
    """A cell written out in a Loop, batch 1."""
    import numpy as np
    import onnx
    import onnx.parser
    from onnx import numpy_helper

    body, gates, states = CELLS[name]
    carried = ", ".join(f"float[1,{HIDDEN}] {state}" for state in states)
    text = f"""<ir_version: 9, opset_import: ["" : 18]>
    main (float[{LENGTH},1,{INPUT}] x, {carried.replace("] ", "] first_")})
      => (float[1,{HIDDEN}] last, float[{LENGTH},1,{HIDDEN}] all) {{
      n = Constant<value=int64 {{{LENGTH}}}>()
      go = Constant<value=bool {{1}}>()
      {"last" if len(states) == 1 else "last, last_c"}, all = Loop(n, go, {", ".join(f"first_{s}" for s in states)})
        <body = step (int64 i, bool g, {carried})
          => (bool g2, {carried.replace(" h", " h2").replace(" c", " c2")}, float[1,{HIDDEN}] y) {{
          g2 = Identity(g)
          xt = Gather<axis=0>(x, i)
          {body}
          y = Identity(h2)
        }}>
    }}"""
    model = onnx.parser.parse_model(text)
    rng = np.random.default_rng(0)

    def random(*shape: int) -> Any:
        return (rng.standard_normal(shape) * 0.1).astype(np.float32)

    weights = {"w": random(INPUT, gates * HIDDEN), "r": random(HIDDEN, gates * HIDDEN), "b": random(gates * HIDDEN)}
    weights["sizes"] = np.full(gates, HIDDEN, np.int64)
    model.graph.initializer.extend(numpy_helper.from_array(array, key) for key, array in weights.items())
    feeds = {"x": random(LENGTH, 1, INPUT), **{f"first_{state}": random(1, HIDDEN) for state in states}}
    return Task(name, model.SerializeToString(), feeds, rounds)


# -- the report


def judge(rows: Sequence[Row]) -> dict[str, Any]:
    """Compare the rows with the targets: sets `missed` of each, and returns the summary."""
    measured = [row for row in rows if not row.problem]
    exported = [row for row in measured if row.name not in CELLS]
    for row in measured:
        if row.name in CELLS and row.name != "cell/gru" and row.ratio * FASTER > 1:
            row.missed = f"less than {FASTER} times faster"
        elif row.name not in CELLS and row.ratio > EACH + row.spread:
            row.missed = f"above {EACH:.2f} and its spread"
    mean = math.exp(statistics.mean(math.log(row.ratio) for row in exported)) if exported else None
    missed = [row.name for row in measured if row.missed]
    missed += ["geometric mean"] if mean is not None and mean > MEAN else []
    missed += [row.name for row in rows if row.problem and (row.name in CELLS or row.problem.startswith(f"{OURS}:"))]
    return {"models": len(exported), "geometric_mean": mean, "target": MEAN, "missed": missed}


def table(rows: Sequence[Row], summary: Mapping[str, Any]) -> str:
    """The rows as aligned text; times in milliseconds."""
    width = max((len(row.name) for row in rows), default=5)
    lines = [f"{'model':{width}}  {'ours':>9}  {'ovc':>9}  {'ratio':>6}  {'spread':>6}"]
    for row in rows:
        if not row.problem:
            numbers = f"{1e3 * row.ours:9.3f}  {1e3 * row.peer:9.3f}  {row.ratio:6.3f}  {row.spread:6.3f}"
            lines.append(f"{row.name:{width}}  {numbers}  {row.missed}".rstrip())
    apart = [f"{row.name:{width}}  {row.problem}" for row in rows if row.problem]
    if apart:
        lines += ["", "not compared", *apart]
    if summary["geometric_mean"] is not None:
        lines += ["", f"geometric mean of {summary['models']} models {summary['geometric_mean']:.3f}, target {MEAN}"]
    lines.append(f"missed: {', '.join(summary['missed'])}" if summary["missed"] else "all targets are met")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure and report; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of names of models; default: all")
    parser.add_argument("--folder", type=Path, help="measure the networks of real size in this folder (out/real)")
    parser.add_argument("--why", metavar="MODEL", help="show what the runtime executes for one model of the folder")
    parser.add_argument("--rounds", type=int, default=101, help="number of runs of each model (101)")
    parser.add_argument("--seconds", type=float, default=20, help="limit of the timed part of a network (20)")
    parser.add_argument("--threads", type=int, default=2, help="threads that a network runs on (2)")
    parser.add_argument("--results", type=Path, help="add the rows of a folder to this file; measure those it lacks")
    parser.add_argument("--markdown", type=Path, help="write the rows of a folder to this file as Markdown")
    parser.add_argument("--limit", type=float, default=600, help="seconds for one model (600)")
    parser.add_argument("--json", action="store_true", help="write JSON to stdout")
    options = parser.parse_args(arguments)
    if options.why:
        return explain(options.folder or EXPORTED, options.why, options.threads)
    if options.folder:
        return measure_folder(options)
    rows: list[Row] = []
    with Pool("tools.timing:measure", jobs=1, limit=options.limit, env=NO_TELEMETRY) as pool:
        for outcome in pool.map(tasks(options.names, options.rounds)):
            side = outcome.stage if outcome.stage in (OURS, PEER) else "timing"
            row = outcome.value if outcome.ok else Row(outcome.task.name, f"{side}: {outcome.message}"[:120])
            rows.append(row)
            print(f"{row.name}: {row.problem or f'{row.ratio:.3f}'}", file=sys.stderr, flush=True)
    summary = judge(rows)
    if options.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], **summary}, indent=2))
    print(table(rows, summary), file=sys.stderr if options.json else sys.stdout)
    return int(bool(summary["missed"]))


def measure_folder(options: argparse.Namespace) -> int:
    """Measure the networks of a folder; 1 if a target is missed or nothing is there."""
    done = records.read(options.results) if options.results else {}
    chosen = [each.name for each in matching(options.names)]
    tasks = network_tasks(options.folder, options.names, options.seconds, options.threads)
    with Pool("tools.real.pairs:measure", jobs=1, limit=options.limit, env=NO_TELEMETRY) as pool:
        for outcome in pool.map(each for each in tasks if each.name not in done):
            row = outcome.value if outcome.ok else targets.failed(outcome.task, outcome.stage, outcome.message)
            done[row.name] = row
            if options.results:
                records.append(options.results, row)
            print(targets.line(row, 32), file=sys.stderr, flush=True)
    rows = [done[name] for name in chosen if name in done]
    if not rows:
        print(f"no network to measure in {options.folder}: tools/export_real.py makes them", file=sys.stderr)
        return 1
    summary = targets.judge(rows)
    if options.markdown:
        options.markdown.write_text(records.markdown(rows, summary), encoding="utf-8")
    if options.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], **asdict(summary)}, indent=2))
    print(targets.table(rows, summary), file=sys.stderr if options.json else sys.stdout)
    return int(bool(summary.missed))


def network_tasks(folder: Path, wanted: Sequence[str], seconds: float, threads: int) -> Iterator[pairs.Task]:
    """The rows of the table whose files are in a folder, and whose names contain one of `wanted`."""
    cases = read_cases(folder / "cases.toml") if (folder / "cases.toml").exists() else {}
    for entry in matching(wanted):
        model = folder / f"{entry.stem}.onnx"
        if model.exists() and entry.model in cases:
            feeds = cases[entry.model].sets[0]
            yield pairs.Task(entry.name, entry.group, model, feeds, entry.keeps_activations, seconds, threads)


def explain(folder: Path, name: str, threads: int) -> int:
    """Print what the runtime executes for one network of a folder."""
    from tools.real import nodes

    found = [task for task in network_tasks(folder, [name], 0, threads) if task.name == name]
    if not found:
        print(f"{folder} holds no network {name}: tools/export_real.py {name} makes it", file=sys.stderr)
        return 1
    print(nodes.explain(found[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
