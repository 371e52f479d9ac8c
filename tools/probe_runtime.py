"""Which of the known errors an OpenVINO release has, by running their probes.

    python tools/probe_runtime.py                       # the installed release
    python tools/probe_runtime.py --runtime 2024.6.0    # another one, which `make runtimes` has installed
    python tools/probe_runtime.py --runtime gpu         # the gaps of the device that `make gpu` has made; arm
    python tools/probe_runtime.py --every               # all that `make runtimes ARGS=--every` has installed
    python tools/probe_runtime.py --only zero-trips     # the gaps whose ids begin so
    python tools/probe_runtime.py --rules               # also the probes with all rules, and without the rule

Every probe (tests/runtime/probes) runs in a worker process of its own; a crash, and a probe that takes longer than its
limit, count as the error. The exit code is 1 if

- the table has something else for a release (for a release that is not in the table: about the newest one);
- with --rules: a probe is wrong with all rules;
- with --rules and --every: no release shows that a rule is needed, because its probe is right without it on each.

The last line has the rules that no release of the run needs: they can be removed when the older releases are no
longer targets.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.target import ARM, CPU, GPU, MEASURED, Gap
from tests.runtime.probing import Probe, Verdict, limits, probes, rules, run, shows
from tools.gap_table import GAPS
from tools.runtimes import EVERY, interpreter, release_of

DEVICES = {"gpu": GPU, "arm": ARM}
"""The device whose gaps the probes show in an environment."""


@dataclass(frozen=True)
class Finding:
    """A probe on a release, under a limit of the instructions or none: as it is written, with all rules, and without
    its own; the last two only if asked for."""

    gap: Gap
    release: str
    limit: str
    plain: Verdict
    avoided: Verdict | None = None
    without: Verdict | None = None

    @property
    def shown(self) -> str:
        return f"{self.gap.id}{self.limit and f' with {self.limit}'}"

    @property
    def expected(self) -> bool | None:
        """Whether the table says that the probe shows the error; None if the limit alone may change the result."""
        return shows(self.gap, probes()[self.gap.id], self.release, self.limit)


def main(arguments: list[str] | None = None) -> int:
    """Run the probes; 1 if the table and a release disagree, or a rule has another effect than the table states."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtime", metavar="RELEASE", help="an OpenVINO release that `make runtimes` has installed")
    parser.add_argument("--every", action="store_true", help="all releases that are installed")
    parser.add_argument("--only", default="", metavar="START", help="the gaps whose ids begin so")
    parser.add_argument("--rules", action="store_true", help="also run the probes with and without the rules")
    options = parser.parse_args(arguments)
    here = installed("openvino").partition("-")[0]
    try:
        pythons: dict[str, str | None] = {each: interpreter(each) for each in _releases(options.every, options.runtime)}
    except FileNotFoundError as error:
        parser.error(str(error))
    on = DEVICES.get((options.runtime or "").partition("-")[0], CPU)
    gaps = [gap for gap in GAPS if gap.device == on and gap.id.startswith(options.only)]
    findings = [
        finding
        for release, python in (pythons or {here: None}).items()
        for finding in _probed(gaps, release_of(release), python, options.rules)
    ]
    problems = [*_differences(findings), *_failures(findings)]
    problems += _needless(findings) if options.every else []
    print("\n".join(problems or ["as the table says"]))
    print("rules that none of these releases needs, as far as probes show: " + (", ".join(_idle(findings)) or "none"))
    return int(bool(problems))


def _releases(every: bool, runtime: str | None) -> Sequence[str]:
    if every:
        return EVERY
    return (runtime,) if runtime else ()


def _probed(gaps: Sequence[Gap], release: str, python: str | None, with_rules: bool) -> Iterator[Finding]:
    known = probes()
    print(f"OpenVINO {release}{'' if release in MEASURED else f', which is not in the table: as {MEASURED[-1]}'}")
    for gap in gaps:
        if gap.id not in known:
            print(f"  {gap.id}: no probe")
            continue
        for limit in limits(gap):
            finding = _tried(gap, known[gap.id], release, python, limit, with_rules)
            for text, verdict in (
                (finding.shown, finding.plain), ("  with the rules", finding.avoided),
                (f"  without {gap.rule}", finding.without),
            ):
                if verdict is not None:
                    print(f"  {text}: {verdict.result}{verdict.message and f' ({verdict.message[:120]})'}", flush=True)
            yield finding


def _tried(gap: Gap, probe: Probe, release: str, python: str | None, limit: str, with_rules: bool) -> Finding:
    plain = run(probe, probe.as_written(), limit, python=python, fresh=True)
    if not with_rules or not gap.rule or gap.rule == "last check":
        return Finding(gap, release, limit, plain)
    avoided = run(probe, probe.avoided(to=gap.converted_for), limit, python=python, fresh=True)
    if gap.rule not in rules() or probe.onnx or plain.is_right:
        return Finding(gap, release, limit, plain, avoided)
    without = run(probe, probe.avoided(gap.rule, *probe.skips, to=gap.converted_for), limit, python=python, fresh=True)
    return Finding(gap, release, limit, plain, avoided, without)


# -- what is reported


def _differences(findings: Sequence[Finding]) -> Iterator[str]:
    """Where a release has an error that the table does not give it, or the reverse."""
    for each in findings:
        if each.expected is each.plain.is_right:
            said, found = ("no", "yes") if not each.plain.is_right else ("yes", "no")
            yield f"{each.shown}: on {each.release} the table says {said}, and the probe {found}"


def _failures(findings: Sequence[Finding]) -> Iterator[str]:
    for each in findings:
        if each.expected is not None and each.avoided is not None and not each.avoided.is_right:
            yield f"{each.shown}: wrong on {each.release} with the rules, too"


def _needless(findings: Sequence[Finding]) -> Iterator[str]:
    """Gaps whose probe is right without the rule wherever it was tried."""
    tried = [each for each in findings if each.without is not None]
    shown = {each.gap.id for each in tried if each.without is not None and not each.without.is_right}
    for gap in dict.fromkeys(each.gap for each in tried):
        if gap.id not in shown:
            yield f"{gap.id}: right without {gap.rule} on every release"


def _idle(findings: Sequence[Finding]) -> list[str]:
    """Rules without a probe that shows the error."""
    shown = {each.gap.rule for each in findings if not each.plain.is_right}
    return [rule for rule in dict.fromkeys(each.gap.rule for each in findings) if rule and rule not in shown]


if __name__ == "__main__":
    sys.exit(main())
