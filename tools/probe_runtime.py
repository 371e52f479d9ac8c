"""Which errors of transforms/runtime/gaps.py an OpenVINO release has, by running their probes.

    python tools/probe_runtime.py                       # the installed release
    python tools/probe_runtime.py --runtime 2024.6.0    # another one, which `make runtimes` has installed
    python tools/probe_runtime.py --only zero-trips     # the gaps whose ids begin so
    python tools/probe_runtime.py --rules               # also the probes with all rules, and without the rule

Every probe (tests/runtime/probes) runs in a worker process of its own; a crash, and a probe that takes longer than its
limit, count as the error. The exit code is 1 if the table says something else about this release, or if a probe is
wrong with all rules. With --rules, a rule is needed if a probe is wrong without it.
"""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.runtime.probing import Probe, Verdict, probes, rules, run
from tools.runtimes import interpreter
from transforms.runtime.gaps import GAPS, Gap


def main(arguments: list[str] | None = None) -> int:
    """Run the probes; 1 if the table and the release disagree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtime", metavar="RELEASE", help="an OpenVINO release that `make runtimes` has installed")
    parser.add_argument("--only", default="", metavar="START", help="the gaps whose ids begin so")
    parser.add_argument("--rules", action="store_true", help="also run the probes with and without the rules")
    options = parser.parse_args(arguments)
    try:
        python = interpreter(options.runtime) if options.runtime else None
    except FileNotFoundError as error:
        parser.error(str(error))
    release = options.runtime or installed("openvino").partition("-")[0]
    known = probes()
    found: dict[str, bool] = {}
    problems: list[str] = []
    print(f"OpenVINO {release}")
    for gap in (gap for gap in GAPS if gap.id.startswith(options.only)):
        if gap.id not in known:
            print(f"  {gap.id}: no probe")
            continue
        probe = known[gap.id]
        verdict = run(probe, probe.as_written(), python=python, fresh=True)
        found[gap.id] = not verdict.is_right
        print(f"  {gap.id}: {_shown(verdict)}", flush=True)
        if found[gap.id] != gap.is_in(release):
            problems.append(f"{gap.id}: the table says {'yes' if gap.is_in(release) else 'no'}, the probe the opposite")
        if options.rules and gap.rule:
            problems += _tried_rules(gap, probe, python)
    _print_idle_rules(found)
    for problem in problems:
        print(problem)
    return int(bool(problems))


def _tried_rules(gap: Gap, probe: Probe, python: str | None) -> list[str]:
    """Run the probe with all rules, and without its own; returns what is wrong."""
    if gap.rule == "last check":
        return []
    with_rules = run(probe, probe.avoided(), python=python, fresh=True)
    print(f"    with the rules: {_shown(with_rules)}", flush=True)
    if gap.rule in rules() and not probe.onnx:
        without = run(probe, probe.avoided(gap.rule, *probe.skips), python=python, fresh=True)
        print(f"    without {gap.rule}: {_shown(without)}", flush=True)
    return [] if with_rules.is_right else [f"{gap.id}: wrong with the rules, too"]


def _print_idle_rules(found: dict[str, bool]) -> None:
    """Rules of which no probe shows the error on this release."""
    by_rule: dict[str, list[bool]] = {}
    for gap in GAPS:
        if gap.rule and gap.id in found:
            by_rule.setdefault(gap.rule, []).append(found[gap.id])
    idle = [rule for rule, shown in by_rule.items() if not any(shown)]
    print(f"{sum(found.values())} of {len(found)} probes show their error")
    print("rules that this release does not need, as far as probes show: " + (", ".join(idle) or "none"))


def _shown(verdict: Verdict) -> str:
    return verdict.result + (f" ({verdict.message[:120]})" if verdict.message else "")


if __name__ == "__main__":
    sys.exit(main())
