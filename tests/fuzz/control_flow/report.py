"""Tables of a fuzzing or conformance run as plain text, and the files of what failed."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from mo_loop.printable import aligned
from tests.running.samples import CLASSES, PASSED, Sample, Verdict


def pattern(message: str) -> str:
    """The message without names, numbers and paths, so that similar failures are counted together."""
    text = re.sub(r"\S*[/\\]\S+", "<path>", message)
    text = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`", "<name>", text)
    text = re.sub(r"\b[A-Za-z_]*_\d+\b|\b[vcoxin]\d+\b", "<name>", text)
    text = re.sub(r"[\[({][-\d,.\s?]*[\])}]", "<shape>", text)
    return re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "#", text)[:180]


def rates(results: Mapping[str, Sequence[Verdict]]) -> str:
    """One column per converter, one line per class."""
    rows = [("", *results)]
    for kind in CLASSES:
        counts = [(sum(v.result == kind for v in found), len(found)) for found in results.values()]
        rows.append((kind, *(f"{count}  {100 * count / max(total, 1):5.1f} %" for count, total in counts)))
    return aligned(rows, right=range(1, len(rows[0])))


def tally(verdicts: Sequence[tuple[str, Verdict]],
          having: Mapping[str, Mapping[str, int]]) -> dict[str, tuple[int, int]]:
    """For each feature, the share of the models with it that pass with the converter, and their number."""
    passed: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for name, verdict in verdicts:
        total.update(having[name].keys())
        if verdict.result == PASSED:
            passed.update(having[name].keys())
    return {feature: (passed[feature], count) for feature, count in total.items()}


def parts_of(verdict: Verdict) -> list[str]:
    """The patterns of a message; a message with codes has one per part."""
    if not verdict.code:
        return [pattern(verdict.message)]
    found = []
    for part in verdict.message.split(" | "):
        code = re.match(r"(\w+: )?(ML-?\w+): ", part)
        found.append(f"{code[2]} {pattern(part[code.end() :])}" if code else f"{verdict.code} {pattern(part)}")
    return list(dict.fromkeys(found))


def groups(failures: Iterable[tuple[str, Verdict]], most: int = 25, names: int = 6) -> str:
    """Failures by class and message pattern, the most frequent first, with example cases.

    A failure of several parts counts for each of them.
    """
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, verdict in failures:
        for part in parts_of(verdict) if verdict.bad else ():
            found[verdict.result, part].append(name)
    lines = []
    for (kind, text), cases in sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))[:most]:
        shown = " ".join(cases[:names]) + (" ..." if len(cases) > names else "")
        lines.append(f"{len(cases):5}  {kind:15}{text}\n{'':22}{shown}")
    return "\n".join(lines)


def counted(counter: Counter[str], most: int = 12) -> str:
    return "\n".join(f"{count:5}  {text}" for text, count in counter.most_common(most))


def keep(home: Path, sample: Sample, converter: str, verdict: Verdict, facts: str = "") -> None:
    """Save a model, its input sets, the expected values and the failure; `facts` are its first lines."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "model.onnx").write_bytes(sample.model)
    for number, (feeds, expected) in enumerate(zip(sample.feeds, sample.expected, strict=True)):
        np.savez(home / f"inputs_{number}.npz", **feeds)
        np.savez(home / f"expected_{number}.npz", **dict(expected))
    text = f"{facts}{verdict.result} {verdict.code}\n{verdict.message}\norder of input sets: {sample.order}\n"
    (home / f"{converter}.txt").write_text(text, encoding="utf-8")
