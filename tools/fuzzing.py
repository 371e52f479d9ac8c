"""The options, tables and files of failures that the tools for many models share."""

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from mo_loop.options import QUANTIZATION
from mo_loop.printable import aligned
from mo_loop.target import ANY, DEVICES
from tests.running.samples import CLASSES, PASSED, Sample, Verdict
from tools.runtimes import interpreter

# -- Command-line options that the tools for many models share


def fuzzer(text: str | None, unit: str, count: int = 100) -> argparse.ArgumentParser:
    """A parser with the options of a run over many models of a seed; `unit` is the word for one of them."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=count, help=f"how many ({count})")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help=f"the number of the first {unit}")
    parser.add_argument("--only", type=int, metavar="NUMBER", help=f"the number of one {unit}")
    add_common(parser, unit)
    return parser


def numbers_of(options: argparse.Namespace) -> Sequence[int]:
    """The numbers that the options choose."""
    return [options.only] if options.only is not None else range(options.start, options.start + options.count)


def add_common(parser: argparse.ArgumentParser, unit: str) -> None:
    """Add the options of a run over many models; `unit` is the word for one of them."""
    parser.add_argument("--jobs", "-j", type=int, default=2, help="worker processes")
    parser.add_argument("--runtime", metavar="RELEASE", help="run the IR on this OpenVINO release (`make runtimes`)")
    parser.add_argument("--verbose", "-v", action="store_true", help=f"print one line per {unit} on stderr")


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add the option of the device for which the models are converted."""
    text = "convert for this device; --runtime gpu or arm runs the IR there (`make gpu`, `make arm`)"
    parser.add_argument("--device", choices=DEVICES, default=ANY, help=text)


def add_runs(parser: argparse.ArgumentParser) -> None:
    """Add the options of `add_device`, and those of the runs of a sample."""
    add_device(parser)
    text = "the precision in which the IR runs; with default, that of the device, numbers may differ by 2%%"
    parser.add_argument("--precision", choices=("f32", "default"), default="f32", help=text)
    parser.add_argument("--requests", type=int, default=1, help="inference requests of one compiled model (1)")


def configure(sample: Sample, options: argparse.Namespace) -> None:
    """Give a sample the options of `add_runs`."""
    sample.python, sample.precision, sample.requests = options.python, options.precision, options.requests
    sample.arguments = {**sample.arguments, "device": options.device}


def add_quantization(parser: argparse.ArgumentParser) -> None:
    """Add the option of the mode in which mo_loop converts quantised tensors."""
    text = "how mo_loop converts quantised tensors (fast)"
    parser.add_argument("--quantization", choices=QUANTIZATION, default=QUANTIZATION[0], help=text)


def parse(parser: argparse.ArgumentParser, arguments: list[str] | None, listed: str = "", known: Collection[str] = (),
          what: str = "") -> argparse.Namespace:
    """The parsed arguments, with the interpreter of `--runtime` as `python`.

    An error if the option `listed`, names separated by commas, has an unknown one, or the release is not installed.
    """
    options = parser.parse_args(arguments)
    if listed:
        require_known(parser, getattr(options, listed), known, what)
    try:
        options.python = interpreter(options.runtime) if options.runtime else None
    except FileNotFoundError as error:
        parser.error(str(error))
    return options


def require_known(parser: argparse.ArgumentParser, names: str, known: Collection[str], what: str) -> None:
    """An error if one of the names, separated by commas, is not known."""
    if unknown := [name for name in names.split(",") if name not in known]:
        parser.error(f"unknown {what} {', '.join(unknown)}")


# -- Tables of a fuzzing or conformance run as plain text, and the files of what failed


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
