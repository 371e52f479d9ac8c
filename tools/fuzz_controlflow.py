"""Convert random control-flow models with mo_loop and with openvino.convert_model, and compare the results.

    python tools/fuzz_controlflow.py --count 200 --seed 1 --jobs 2
    python tools/fuzz_controlflow.py --seed 1 --only 17 --keep failures
    python tools/fuzz_controlflow.py --count 2000 --seed 1 --features
    python tools/fuzz_controlflow.py --count 1000 --seed 1 --lists
    python tools/fuzz_controlflow.py --count 300 --seed 1 --widens --against mo_loop
    python tools/fuzz_controlflow.py --count 300 --seed 1 --recurs --against mo_loop
    python tools/fuzz_controlflow.py --count 400 --seed 1 --against mo_loop --runtime 2024.6.0
    python tools/fuzz_controlflow.py --count 400 --seed 1 --against mo_loop --runtime gpu --device GPU --warned
    python tools/fuzz_controlflow.py --count 300 --seed 1 --recurs --against mo_loop --without LOOPS
    python tools/fuzz_controlflow.py --count 2000 --seed 1 --docs docs/control-flow.md

Expected values come from ONNX Runtime in a child process, or with --without from the same model converted without some
passes. Models that it refuses
or that crash it are skipped and counted. The run fails if the first converter fails on any model, if it refuses too
many models for the reasons in `tests.fuzz.control_flow.oracle.REASONS`, or if too many models are skipped.
"""

import argparse
import json
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.api import check
from mo_loop.support.workers import Pool, TaskOutcome
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.pipelines import LOOPS
from tests.fuzz.control_flow.features import rare
from tests.fuzz.control_flow.page import page
from tests.running.samples import CONVERTERS, EXCUSED, FILLED, PASSED, WRONG, Sample, Verdict, settle
from tools.fuzzing import add_runs, configure, counted, fuzzer, groups, keep, numbers_of, parse, pattern, rates, tally

MEMORY = 6 << 30
MOST_EXCUSED = 0.01
MOST_SKIPPED = 0.03
WARNINGS = ("ML570", "ML571")
NOTES = ("ML572",)
"""The code of operations that are right in an IR for the GPU alone."""


def main(arguments: list[str] | None = None) -> int:
    """Run the fuzzer; 1 if it fails, else 0."""
    options = _options(arguments)
    converters = options.against.split(",")
    results: dict[str, list[tuple[str, Verdict]]] = {name: [] for name in converters}
    having: dict[str, dict[str, int]] = {}
    skipped: Counter[str] = Counter()
    features: Counter[str] = Counter()
    warned: dict[str, list[str]] = {}
    dropped = 0
    limits: dict[str, Any] = {"jobs": options.jobs, "limit": options.limit, "memory": MEMORY}
    with (
        Pool("tests.fuzz.control_flow.oracle:oracle", **limits) as oracle,
        Pool("tests.running.samples:judge", env=FILLED, **limits) as judge,
    ):
        tasks = [(options.seed, index, options.lists, options.widens, options.recurs) for index in numbers_of(options)]
        samples = _samples(oracle, tasks, skipped)
        samples = _configured(samples, options)
        for outcome in judge.map((name, sample) for sample in samples for name in converters):
            converter, sample = outcome.task
            verdict = settle(outcome, judge.call)
            results[converter].append((sample.name, verdict))
            if converter == converters[0]:
                features.update(sample.features.keys())
                having[sample.name] = sample.features
                dropped += sample.dropped_sets
                if options.warned:
                    warned[sample.name] = _warnings(sample, options)
            if verdict.bad and options.keep:
                keep(Path(options.keep, sample.name), sample, converter, verdict)
            if options.only is not None or options.verbose:
                print(f"{sample.name} {converter}: {verdict.result} {verdict.code} {verdict.message}", file=sys.stderr)
    _print(results, skipped, features, dropped, options.features)
    if options.warned:
        for kind, codes in (("warning", WARNINGS), ("note", NOTES)):
            shares = _shares(results[converters[0]], warned, codes)
            print(f"\nwith a {kind} of the device ({', '.join(codes)}): {shares}")
    if options.json:
        _write(Path(options.json), results, skipped, features, warned)
    if options.docs:
        table = {name: tally(verdicts, having) for name, verdicts in results.items()}
        Path(options.docs).write_text(page(table, features, len(having), options.seed), encoding="utf-8")
    return int(_fails([verdict for _, verdict in results[converters[0]]], skipped.total()))


def _warnings(sample: Sample, options: argparse.Namespace) -> list[str]:
    """The messages of `check` for the device of the runtime; of an IR for any device, also those on operations that are
    right in an IR for this one alone."""
    device = options.runtime.partition("-")[0].upper()
    codes = WARNINGS if options.device == device else WARNINGS + NOTES
    found = check(sample.model, **{**sample.arguments, "device": device}).diagnostics
    return [f"{each.code} {each.message}" for each in found if each.code in codes]


def _shares(verdicts: list[tuple[str, Verdict]], warned: dict[str, list[str]], codes: tuple[str, ...]) -> str:
    """How many of the models that are right, wrong, or end with an error have a message with one of these codes."""
    kinds = {PASSED: "right", WRONG: "wrong"}
    having = {name for name, texts in warned.items() if any(text.startswith(codes) for text in texts)}
    found = {kind: [name for name, verdict in verdicts if kinds.get(verdict.result, "error") == kind]
             for kind in ("right", "wrong", "error")}
    return ", ".join(f"{len(having.intersection(names))} of {len(names)} {kind}" for kind, names in found.items())


def _fails(verdicts: list[Verdict], skipped: int) -> bool:
    excused = sum(verdict.result == EXCUSED for verdict in verdicts)
    total = len(verdicts) + skipped
    return (
        any(verdict.bad for verdict in verdicts)
        or excused > MOST_EXCUSED * len(verdicts)
        or skipped > max(MOST_SKIPPED * total, 1)
    )


def _samples(oracle: Pool, tasks: list[tuple[int, int, bool, bool, bool]], skipped: Counter[str]) -> Iterator[Sample]:
    lock = threading.Lock()
    for outcome in oracle.map(iter(tasks)):
        reason = _reason(outcome)
        if reason is None:
            yield outcome.value
            continue
        with lock:
            skipped[pattern(reason)] += 1


def _configured(samples: Iterator[Sample], options: argparse.Namespace) -> Iterator[Sample]:
    """The samples with passes disabled, for the target, to be run by the interpreter of the options."""
    passes = _names(options.disable)
    without = tuple(each.__name__ for each in LOOPS) if options.without == "LOOPS" else _names(options.without)
    for sample in samples:
        configure(sample, options)
        sample.without = without
        if options.target:
            sample.arguments["target"] = options.target
        if passes:
            sample.arguments["config"] = config = PassConfig()
            config.disable(*passes)
        yield sample


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


def _reason(outcome: TaskOutcome) -> str | None:
    """Why a model is skipped, or None."""
    if not outcome.ok:
        return f"{outcome.status} at {outcome.stage}: {outcome.message}"
    return outcome.value if isinstance(outcome.value, str) else None


def _print(
    results: dict[str, list[tuple[str, Verdict]]],
    skipped: Counter[str],
    features: Counter[str],
    dropped: int,
    with_features: bool,
) -> None:
    models = max((len(verdicts) for verdicts in results.values()), default=0)
    print(f"{models} models, {skipped.total()} skipped by ONNX Runtime, {dropped} single input sets dropped\n")
    print(rates({name: [verdict for _, verdict in verdicts] for name, verdicts in results.items()}))
    for name, verdicts in results.items():
        print(f"\n{name}, failures by message\n{groups(sorted(verdicts, key=lambda pair: _order(pair[0])))}")
    unclear = [
        f"{name} {case}" for name, verdicts in results.items() for case, v in verdicts if v.message and not v.bad
    ]
    if unclear:
        print(f"\ncrashed in a used process, passed in a fresh one: {' '.join(unclear)}")
    print(f"\nskipped\n{counted(skipped)}")
    if with_features:
        print(f"\nfeatures (models that have them)\n{counted(features, len(features))}")
        few = ", ".join(f"{name} {100 * share:.1f} %" for name, share in rare(features, models).items())
        print(f"\nfeatures in too few models: {few or 'none'}")


def _order(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split("-") if part.isdigit())


def _write(
    target: Path,
    results: dict[str, list[tuple[str, Verdict]]],
    skipped: Counter[str],
    features: Counter[str],
    warned: dict[str, list[str]],
) -> None:
    content = {
        "results": {
            name: [{"case": case, **asdict(verdict)} for case, verdict in sorted(verdicts, key=lambda p: _order(p[0]))]
            for name, verdicts in results.items()
        },
        "skipped": dict(skipped),
        "features": dict(sorted(features.items())),
        **({"warnings": warned} if warned else {}),
    }
    target.write_text(json.dumps(content, indent=1), encoding="utf-8")


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = fuzzer(__doc__, "model", 200)
    parser.add_argument("--lists", action="store_true", help="models that consist mostly of lists of tensors")
    text = "models with states that their first type does not hold: other ranks, too few rows"
    parser.add_argument("--widens", action="store_true", help=text)
    text = "models of recurrences over sequences of up to 40 steps, of which some end early"
    parser.add_argument("--recurs", action="store_true", help=text)
    parser.add_argument("--against", default="mo_loop,ovc", help="converters: " + ", ".join(CONVERTERS))
    parser.add_argument("--keep", metavar="DIR", help="save failing models with inputs and expected values")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for one model and converter")
    parser.add_argument("--disable", metavar="PASSES", default="", help="passes of mo_loop to disable")
    text = "compare with the IR of conversion without these passes of mo_loop; LOOPS: those for loops"
    parser.add_argument("--without", metavar="PASSES", default="", help=text)
    parser.add_argument("--target", metavar="RELEASE", help="convert for this OpenVINO release, or range of releases")
    parser.add_argument("--json", metavar="FILE", help="write all results")
    parser.add_argument("--docs", metavar="FILE", help="write the page on control flow with the results of this run")
    text = "count the models of which `check` for the device of --runtime warns"
    parser.add_argument("--warned", action="store_true", help=text)
    parser.add_argument("--features", action="store_true", help="count the models that have each feature")
    add_runs(parser)
    return parse(parser, arguments, "against", CONVERTERS, "converter")


if __name__ == "__main__":
    sys.exit(main())
