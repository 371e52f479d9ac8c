"""Mutation testing: small changes of the code, made by cosmic-ray one at a time, and whether a test notices each.

    python tools/mutants.py                         draw 300 mutants, run the tests that reach each, print a table
    python tools/mutants.py --count 60 --seed 2     fewer, others
    python tools/mutants.py --measure tests/unit    run these tests again to record the lines that they execute
    python tools/mutants.py --only 3f0a             mutants whose ids begin so, with the output of the tests

The first run measures which test executes which line, for which it runs all tests under coverage. Nothing is changed in
the tree: tests run on a copy below --work, which also holds what was measured and the results; a run continues where
the last one ended, unless --anew is given. Mutants that change nothing that can be observed are listed in
tools/equivalent_mutants.toml; a test may fail for them all the same. The exit code is 1 where fewer than 85% of the
others are killed.
"""

from __future__ import annotations

import argparse
import difflib
import json
import pickle
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from mutation.drawing import Mutant, draw
from mutation.reaching import Reach, measure
from mutation.running import Tree

ROOT = Path(__file__).resolve().parents[1]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
PACKAGES = ("transforms", "mo_loop/ops", "mo_loop/frontend/ops", "mo_loop/ir")
SUITES = ("tests/golden", "tests/unit", "tests/runtime", "tests/fuzz", "tests/cli", "tests/conformance")
TARGET = 0.85
BUDGET = 30.0
"""Seconds that the tests of one mutant take together when nothing is changed."""


def main() -> int:
    arguments = _arguments()
    work = arguments.work.resolve()
    tree = Tree(ROOT, work / "tree")
    reach = work / "reach"
    if arguments.measure or not reach.exists():
        print("measuring which lines the tests execute", file=sys.stderr)
        measure(tree, ("mo_loop",), _files(arguments.measure or SUITES), reach)
        if arguments.measure:
            return 0
    mutants = _drawn(work / "drawn.pickle", arguments)
    known = tomllib.loads(EQUIVALENT.read_text("utf-8"))
    results = work / "results.json"
    outcomes = {} if arguments.anew or not results.exists() else json.loads(results.read_text("utf-8"))
    measured = Reach(reach)
    for mutant in mutants:
        if mutant.id in outcomes and not arguments.only:
            continue
        status, test = ("equivalent", "") if mutant.id in known else _tried(tree, measured, mutant)
        outcomes[mutant.id] = {"status": status, "module": mutant.module, "line": mutant.line, "test": test}
        results.write_text(json.dumps(outcomes, indent=1), "utf-8")
        print(f"{status:<10} {mutant.id} {mutant.module}:{mutant.line} {test}", flush=True)
        if arguments.only:
            print(tree.place.with_suffix(".log").read_text("utf-8", "replace"))
    return _report(mutants, {each.id: outcomes[each.id]["status"] for each in mutants if each.id in outcomes})


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=300, help="how many mutants to draw (300)")
    parser.add_argument("--seed", type=int, default=14, help="of the draw (14)")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "mutants", help="a folder for what is kept")
    parser.add_argument("--measure", nargs="+", metavar="TESTS", help="only run these tests, to know what they execute")
    parser.add_argument("--only", metavar="ID", help="only mutants whose ids begin so")
    parser.add_argument("--anew", action="store_true", help="forget the results of the last run")
    return parser.parse_args()


def _files(places: Sequence[str]) -> list[str]:
    """The test files below some places, as paths from the root."""
    found = []
    for place in places:
        path = ROOT / place
        files = sorted(path.rglob("test_*.py")) if path.is_dir() else [path]
        found += [each.relative_to(ROOT).as_posix() for each in files]
    return found


def _drawn(cache: Path, arguments: argparse.Namespace) -> list[Mutant]:
    """The mutants; to draw them takes minutes, so they are kept."""
    wanted = (arguments.count, arguments.seed, {str(p): p.read_bytes() for name in PACKAGES for p in _modules(name)})
    if cache.exists():
        given, mutants = pickle.loads(cache.read_bytes())
        if given == wanted:
            return _named(mutants, arguments.only)
    print("drawing mutants", file=sys.stderr)
    mutants = draw(ROOT, PACKAGES, arguments.count, arguments.seed)
    cache.write_bytes(pickle.dumps((wanted, mutants)))
    return _named(mutants, arguments.only)


def _modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def _named(mutants: list[Mutant], only: str | None) -> list[Mutant]:
    return [each for each in mutants if each.id.startswith(only or "")]


def _tried(tree: Tree, reach: Reach, mutant: Mutant) -> tuple[str, str]:
    """How the tests end for a mutant, and which one noticed it."""
    code = (ROOT / mutant.module).read_text("utf-8")
    tests = reach.tests(mutant.module, mutant.line, code, BUDGET)
    if not tests:
        return "survived", "no test executes it"
    seconds = sum(reach.seconds[test] for test in tests)
    with tree.changed(mutant.module, mutant.applied(code)):
        outcome = tree.run(tests, limit=20 + 3 * seconds)
    if outcome.status == "unknown":
        if tree.run(tests, limit=20 + 3 * seconds).status == "unknown":
            raise SystemExit(f"{tests[0]} or another test is gone: measure the tests anew with --measure")
        return "killed", "the tests cannot be loaded"
    names = {"passed": "survived", "failed": "killed", "timeout": "timeout"}
    return names[outcome.status], outcome.test or f"{len(tests)} tests pass"


def _report(mutants: Sequence[Mutant], outcomes: dict[str, str]) -> int:
    """Print the survivors and the numbers; 1 where too many survive."""
    for mutant in mutants:
        if outcomes.get(mutant.id) == "survived":
            print(f"\n{mutant.id}")
            print(_difference(mutant))
    counts = Counter(outcomes.values())
    killed, tried = counts["killed"] + counts["timeout"], len(outcomes) - counts["equivalent"]
    print(f"\n{'drawn':<12}{len(mutants):>5}\n{'tried':<12}{len(outcomes):>5}")
    for name in ("killed", "timeout", "survived", "equivalent"):
        print(f"{name:<12}{counts[name]:>5}")
    share = killed / max(tried, 1)
    print(f"{share:.1%} of those that are not equivalent are killed, the target is {TARGET:.0%}")
    return int(share < TARGET)


def _difference(mutant: Mutant) -> str:
    code = (ROOT / mutant.module).read_text("utf-8")
    lines = [each.splitlines() for each in (code, mutant.applied(code))]
    return "\n".join(difflib.unified_diff(*lines, mutant.module, "mutant", lineterm="", n=1))


if __name__ == "__main__":
    sys.exit(main())
