"""Convert random configurations of single ONNX operators with mo_loop or openvino.convert_model, and compare results.

    python tools/fuzz_ops.py --count 1000 --seed 1 -j 2
    python tools/fuzz_ops.py --family reduction,linear --count 200
    python tools/fuzz_ops.py --operator Resize --opset 19 --count 50 --keep failures
    python tools/fuzz_ops.py --count 500 --against ovc
    python tools/fuzz_ops.py --count 500 --runtime 2024.6.0
    python tools/fuzz_ops.py --family quantization.quantization --count 350 --quantization exact

Attributes, shapes, element types, constants and run-time inputs, static, symbolic and computed dimensions are drawn
for every operator in turn, at the opsets that ONNX Runtime supports. Expected values come from ONNX Runtime without
optimisation, for several sets of inputs per model. A configuration without a kernel is drawn again, one that ONNX
Runtime calls invalid is skipped; at most a share of MOST_SKIPPED may be. "not readable" and "not compilable" count the
files that OpenVINO refuses to read, or to compile. The run fails if a configuration does not pass
and tests/fuzz/operators/known.py has no reason for it, or if a reason there no longer holds.
"""

import argparse
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.printable import aligned
from mo_loop.support.workers import Pool
from tests.fuzz.operators.known import KNOWN, known
from tests.fuzz.operators.table import FAMILIES, operators_of
from tests.fuzz.operators.trial import Trial
from tests.running.samples import (
    BUG,
    CRASH,
    FAILED,
    FILLED,
    HANG,
    NOT_COMPILABLE,
    NOT_READABLE,
    PASSED,
    REFUSED,
    WRONG,
    Verdict,
    settle,
)
from tools.fuzzing import (
    add_common,
    add_quantization,
    add_runs,
    configure,
    counted,
    groups,
    keep,
    parse,
    pattern,
    require_known,
)
from tools.measuring import NO_TELEMETRY

MEMORY = 6 << 30
MOST_SKIPPED = 0.04
MET_ALWAYS, MET_AT_TIMES = 4, 100
"""If this many configurations meet the condition of a known failure and none fails, the failure is out of date."""
COLUMNS = (PASSED, REFUSED, WRONG, NOT_READABLE, NOT_COMPILABLE, FAILED, BUG, CRASH, HANG)
Row = tuple[Trial, Verdict]


def main(arguments: list[str] | None = None) -> int:
    """Run the fuzzer; 1 if it fails, else 0."""
    options = _options(arguments)
    print(f"seed {options.seed}", flush=True)
    tasks = _tasks(options)
    arguments = {"quantization": options.quantization}
    rows, skipped = run(tasks, options.against, options.jobs, options.limit, options, arguments)
    tried = len(rows) + len(skipped)
    print(_tables(rows, skipped))
    failing = unexplained(rows)
    print(f"\n{options.against}, failures by message")
    print(groups([(trial.name, _with_operator(trial, verdict)) for trial, verdict in failing], 80))
    stale = _print_known(rows)
    reasons = Counter(f"{trial.op}: {pattern(trial.skipped)}" for trial in skipped)
    redrawn = Counter(f"{trial.op}: {pattern(reason)}" for trial, _ in rows for reason in trial.redrawn)
    print(f"\nskipped ({len(skipped)} of {tried})\n{counted(reasons, 20)}")
    print(f"\ndrawn anew for want of a kernel ({redrawn.total()})\n{counted(redrawn, 8)}")
    ours = options.against == "mo_loop"
    return int(bool(failing) or len(skipped) > max(MOST_SKIPPED * tried, 2) or (ours and bool(stale)))


def unexplained(rows: Sequence[Row]) -> list[Row]:
    """The configurations that do not pass and have no entry in the table of known failures."""
    return [(trial, verdict) for trial, verdict in rows if verdict.bad and known(trial.facts, verdict.result) is None]


def _with_operator(trial: Trial, verdict: Verdict) -> Verdict:
    return replace(verdict, message=f"{trial.op}: {verdict.code} {verdict.message}", code="")


def run(
    tasks: Sequence[Any], converter: str, jobs: int, limit: float, options: Any = None,
    arguments: Mapping[str, Any] | None = None,
) -> tuple[list[Row], list[Trial]]:
    """The verdicts of the tasks that ONNX Runtime runs, and the tasks that it does not.

    `arguments` are those of mo_loop's convert_model.
    """
    rows: list[Row] = []
    skipped: list[Trial] = []
    limits: dict[str, Any] = {"jobs": jobs, "limit": limit, "memory": MEMORY}
    with (
        Pool("tests.fuzz.operators.trial:oracle", **limits) as oracle,
        Pool("tests.running.samples:judge", env=NO_TELEMETRY | FILLED, **limits) as judge,
    ):
        trials: dict[str, Trial] = {}
        samples = _samples(oracle, tasks, trials, skipped, options, arguments or {})
        for outcome in judge.map((converter, sample) for sample in samples):
            trial = trials.pop(outcome.task[1].name)
            verdict = settle(outcome, judge.call)
            rows.append((trial, verdict))
            if options is None:
                continue
            if verdict.bad and options.keep:
                home = Path(options.keep, trial.name.replace("/", "_"))
                keep(home, outcome.task[1], converter, verdict, f"{trial.facts}\n")
            if options.verbose or (options.only is not None):
                print(f"{trial.name} {trial.facts}: {verdict.result} {verdict.code} {verdict.message}", file=sys.stderr)
    rows.sort(key=lambda row: row[0].name)
    return rows, skipped


def _samples(
    oracle: Pool, tasks: Sequence[Any], trials: dict[str, Trial], skipped: list[Trial], options: Any,
    arguments: Mapping[str, Any],
) -> Iterator[Any]:
    for outcome in oracle.map(tasks):
        seed, index, op, _ = outcome.task
        if not outcome.ok:
            reason = f"{outcome.status} at {outcome.stage}: {outcome.message}"
            skipped.append(Trial(f"{op}/{seed}/{index}", op, skipped=reason))
            continue
        trial: Trial = outcome.value
        if trial.sample is None:
            skipped.append(trial)
            continue
        trials[trial.name] = trial
        trial.sample.arguments = dict(arguments)
        if options is not None:
            configure(trial.sample, options)
        yield trial.sample


def tasks_of(operators: Sequence[str], seed: int, count: int, opset: int | None = None) -> list[Any]:
    """Configurations of the operators in turn, in an order that depends on the seed."""
    order = sorted(operators)
    random.Random(seed).shuffle(order)
    return [(seed, index // len(order), order[index % len(order)], opset) for index in range(count)]


def _tasks(options: argparse.Namespace) -> list[Any]:
    families = options.family.split(",") if options.family else FAMILIES
    operators = (
        options.operator.split(",") if options.operator else [op for each in families for op in operators_of(each)]
    )
    if options.only is not None:
        return [(options.seed, options.only, op, options.opset) for op in operators]
    return tasks_of(operators, options.seed, options.count, options.opset)


def _tables(rows: Sequence[Row], skipped: Sequence[Trial]) -> str:
    """One line per family, and one for every operator that does not always pass."""
    family_of = _families()
    families: dict[str, Counter[str]] = defaultdict(Counter)
    operators: dict[str, Counter[str]] = defaultdict(Counter)
    for trial, verdict in rows:
        for counter in (families[family_of[trial.op]], operators[trial.op], families["all"]):
            counter[verdict.result] += 1
            counter["explained"] += verdict.bad and known(trial.facts, verdict.result) is not None
    for trial in skipped:
        for counter in (families[family_of[trial.op]], operators[trial.op], families["all"]):
            counter["skipped"] += 1
    head = ("", "count", *COLUMNS, "explained", "skipped", "passed")
    order = [family for family in (*FAMILIES, "all") if family in families]
    rows = [head, *(_cells(family, families[family]) for family in order), ("",) * len(head)]
    rows += [_cells(op, counter) for op, counter in sorted(operators.items()) if counter[PASSED] < _judged(counter)]
    return aligned(rows, right=range(1, len(head)))


def _families() -> dict[str, str]:
    """The operators that have a description, with their families."""
    return {op: family for family in FAMILIES for op in operators_of(family)}


def _judged(counter: Counter[str]) -> int:
    return sum(counter[name] for name in COLUMNS)


def _cells(name: str, counter: Counter[str]) -> tuple[str, ...]:
    total = _judged(counter)
    counts = (str(counter[each]) for each in (*COLUMNS, "explained", "skipped"))
    return name, str(total), *counts, f"{100 * counter[PASSED] / max(total, 1):.1f} %"


def _print_known(rows: Sequence[Row]) -> list[Any]:
    """Print how often each known failure occurred; returns those whose configurations all pass."""
    stale = []
    lines = []
    for each in KNOWN:
        met = [verdict for trial, verdict in rows if trial.facts is not None and each.applies(trial.facts)]
        failing = sum(verdict.result in each.results for verdict in met)
        lines.append(f"{failing:5} of {len(met):4}  {each.operators}, {each.condition}: {each.reason}")
        if len(met) >= (MET_ALWAYS if each.always else MET_AT_TIMES) and not failing:
            stale.append(each)
    print("\nexplained failures\n" + "\n".join(lines))
    for each in stale:
        print(f"no longer holds: {each.operators}, {each.condition}")
    return stale


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="number of configurations")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--family", help="families, separated by commas: " + ", ".join(FAMILIES))
    parser.add_argument("--operator", help="operators, separated by commas")
    parser.add_argument("--opset", type=int, help="this opset only")
    parser.add_argument(
        "--only", type=int, metavar="INDEX", help="one configuration only, by the last part of its name"
    )
    parser.add_argument("--against", default="mo_loop", help="the converter: mo_loop or ovc")
    parser.add_argument("--keep", metavar="DIR", help="save failing models with inputs and expected values")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one configuration")
    add_common(parser, "configuration")
    add_runs(parser)
    add_quantization(parser)
    options = parse(parser, arguments, "against", ("mo_loop", "ovc"), "converter")
    if options.family:
        require_known(parser, options.family, FAMILIES, "family")
    if options.operator:
        require_known(parser, options.operator, _families(), "operator")
    return options


if __name__ == "__main__":
    sys.exit(main())
