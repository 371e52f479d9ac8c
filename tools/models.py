"""Report which architectures convert, the time compared with ovc, and the difference of the results from ONNX Runtime.

    python tools/models.py                          every folder of tests/models, and the light models of onnx
    python tools/models.py transformers light       these two
    python tools/models.py out/transformers         a folder with a cases.toml of its own

Prints Markdown. A time is the best of some conversions from file to file in one process, both sides in turn. `largest
difference` is over all outputs of all sets of inputs of a model, run on OpenVINO's CPU device in f32. Where there is
none, a word says why: refused (by the converter), not compiled, fails, wrong (a shape, a type, or a number beyond the
tolerance of mo_loop.compare), crash or hang (of the process). The exit code is 1 if mo-loop has such a word.
"""

import argparse
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.support.workers import Pool
from tests.models.sources.exporting.inputs import read_cases
from tools.measuring import NO_TELEMETRY, OURS, PEER, Row, Side, Task

MODELS = Path(__file__).resolve().parents[1] / "tests" / "models"
LIGHT = "light"
INTRO = """\
# Models

Small exported models with random weights, converted by mo_loop and by ovc, run, and compared with ONNX Runtime.
`python tools/models.py` measures them. A time is the best of some conversions from file to file in one process, both
sides alternating. The largest difference is over all outputs of all sets of inputs, run on OpenVINO's CPU device in
f32. A word instead of a number gives the reason: refused (by the converter), not compiled, fails, wrong (a shape, a
type, or a number beyond the tolerance of `mo-loop verify`), crash or hang (of the process).
"""
LIGHT_NOTE = """\
All weights of these models are equal, and values grow to 1e10. So values that should be equal differ by rounding, and
a final softmax can enlarge this difference. `wrong` is therefore not meaningful here."""
CONTROL_FLOW = ("Loop", "Scan", "If")


def tasks(folder: str, repetitions: int) -> Iterator[Task]:
    """The models of a folder: a name below tests/models, a path, or the light models of the onnx package."""
    if folder == LIGHT:
        from tests.conformance.cases import collect

        for entry in collect(["real"]):
            yield Task(entry.name.removeprefix("test_"), entry.sample.model, entry.sample.feeds, repetitions)
        return
    path = MODELS / folder if (MODELS / folder).is_dir() else Path(folder)
    for name, listed in read_cases(path / "cases.toml").items():
        yield Task(name, (path / f"{name}.onnx").read_bytes(), listed.sets, repetitions)


def settled(pool: Pool, task: Task) -> Row:
    """The row of a task. A side that ends the process twice is omitted from the next try; its word is crash or hang.

    Twice, because native code that corrupts memory may crash the process in a later task.
    """
    outcome = pool.call(task)
    if not outcome.ok:
        outcome = pool.call(task)
    if outcome.ok:
        row: Row = outcome.value
        return row
    guilty = outcome.stage
    if outcome.status == "error" or guilty not in task.sides:
        raise RuntimeError(f"{task.name}: {outcome.message}\n{outcome.detail}")
    row = settled(pool, replace(task, sides=tuple(side for side in task.sides if side != guilty)))
    row.sides[guilty] = Side(problem="hang" if outcome.status == "timeout" else outcome.status, reason=outcome.message)
    return row


def line(row: Row) -> str:
    """A row in Markdown."""
    ours, peer = row.sides[OURS], row.sides[PEER]
    flow = ", ".join(f"{row.nodes[op]} {op}" for op in CONTROL_FLOW if row.nodes[op])
    ratio = f"{peer.seconds / ours.seconds:.1f}" if peer.seconds and ours.seconds else ""
    cells = [f"`{row.name}`", row.opset, row.nodes.total(), flow, _time(ours), _time(peer), ratio]
    return "| " + " | ".join(map(str, [*cells, _result(ours), _result(peer)])) + " |"


def _time(side: Side) -> str:
    return "" if side.seconds is None else f"{1000 * side.seconds:.1f}"


def _result(side: Side) -> str:
    return side.problem or f"{side.difference:.1e}"


HEAD = """\
| model | opset | nodes | control flow | mo-loop, ms | ovc, ms | ovc : mo-loop | largest difference | of ovc |
|---|--:|--:|---|--:|--:|--:|--:|--:|"""


def summary(rows: Sequence[Row]) -> str:
    """The number of right results on each side, and the times of the models that both convert."""
    right = {side: sum(not row.sides[side].problem for row in rows) for side in (OURS, PEER)}
    both = [row for row in rows if row.sides[OURS].seconds and row.sides[PEER].seconds]
    times = {side: sum(row.sides[side].seconds or 0 for row in both) for side in (OURS, PEER)}
    return (
        f"Right: mo-loop {right[OURS]}, ovc {right[PEER]} of {len(rows)}. Time of the {len(both)} that both convert: "
        f"mo-loop {times[OURS]:.2f} s, ovc {times[PEER]:.2f} s."
    )


def main(arguments: list[str] | None = None) -> int:
    """Measure the models of the chosen folders; 0 if all results of mo-loop are right, else 1."""
    known = sorted(path.parent.name for path in MODELS.glob("*/cases.toml"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", help=f"paths, or some of: {', '.join(known)}, {LIGHT}")
    parser.add_argument("--repetitions", type=int, default=3, help="number of conversions of each model on each side")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one model")
    parser.add_argument("--reasons", action="store_true", help="print the failures of both sides on stderr")
    options = parser.parse_args(arguments)

    every: list[Row] = []
    packages = ", ".join(f"{name} {version(name)}" for name in ("mo_loop", "openvino", "onnx", "onnxruntime"))
    print(INTRO)
    print(f"Python {platform.python_version()}, {packages}; best of {options.repetitions}.")
    with Pool("tools.measuring:measure", limit=options.limit, env=NO_TELEMETRY) as pool:
        for folder in options.folders or [*known, LIGHT]:
            print(f"\n### {Path(folder).name}\n\n{HEAD}")
            rows = []
            for task in tasks(folder, options.repetitions):
                rows.append(settled(pool, task))
                print(line(rows[-1]), flush=True)
                for name, side in rows[-1].sides.items() if options.reasons else ():
                    if side.problem:
                        print(f"{task.name}, {name}: {side.problem}: {side.reason}", file=sys.stderr)
            print(f"\n{summary(rows)}" + (f"\n\n{LIGHT_NOTE}" if folder == LIGHT else ""))
            every += rows
    return int(any(row.sides[OURS].problem for row in every))


if __name__ == "__main__":
    sys.exit(main())
