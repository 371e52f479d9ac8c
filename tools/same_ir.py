"""Convert the same models with two revisions of mo_loop, and compare the bytes of the IR.

    python tools/same_ir.py --base main                       the commit `main` and this checkout
    python tools/same_ir.py --base v1 --other v2              two commits
    python tools/same_ir.py --base ../before --other .        two folders
    python tools/same_ir.py --base main --models out/models   keep the models, or use those of an earlier run
    python tools/same_ir.py --base main --allow expected.toml

About 700 models are made from a seed (tools/ir_samples.py). Each side converts them in one process, with another hash
seed, and both sides use the packages of this interpreter. The exit code is 1 if an .xml or a .bin differs, or if one
side refuses what the other converts. Other words of an error, and another version of mo_loop in the IR, do not count as
a difference.

`--allow` names a file of expected differences. The run also fails if one of them does not occur:

    [[expected]]
    models = "weights-*"          # a pattern of names, as in the output
    reason = "MatMul reads the weights transposed"
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.ir_samples import LIST, Sample, written

ROOT = Path(__file__).resolve().parents[1]
SHOWN = 40
WIDTH = 200
_VERSION = re.compile(rb'(?<=<name value="mo_loop" />)\s*<version value="[^"]*" />')


@dataclass(frozen=True)
class Difference:
    """A sample whose IR differs, and how."""

    name: str
    what: str


@dataclass(frozen=True)
class Expected:
    """An entry of the file of expected differences."""

    models: str
    reason: str

    def covers(self, difference: Difference) -> bool:
        return fnmatch(difference.name, self.models)


def main(arguments: list[str] | None = None) -> int:
    """Compare two revisions; 0 if all IR is equal but for what is expected, else 1."""
    options = _options(arguments)
    print(f"seed {options.seed}", flush=True)
    expected = read_expected(options.allow) if options.allow else []
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder = Path(options.models or scratch / "models").resolve()
        start = time.perf_counter()
        samples = written(folder, options.seed)
        print(f"{len(samples)} samples, {time.perf_counter() - start:.0f} s", flush=True)
        start = time.perf_counter()
        checkouts = [stack.enter_context(checkout(each, scratch)) for each in (options.base, options.other)]
        outputs = convert(checkouts, folder / LIST, scratch)
        print(f"converted by both sides, {time.perf_counter() - start:.0f} s")
        differences = list(compare(samples, *outputs))
        refused = len(list(outputs[1].glob("*.refused")))
    return report(len(samples), refused, differences, expected)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", required=True, metavar="REVISION", help="a commit, or a folder with a checkout")
    parser.add_argument("--other", default=str(ROOT), metavar="REVISION", help="the same (default: this checkout)")
    parser.add_argument("--models", metavar="FOLDER", help="keep the models there; if it has some, use them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--allow", metavar="FILE", help="the expected differences")
    return parser.parse_args(arguments)


def read_expected(path: str) -> list[Expected]:
    """The entries of a file of expected differences."""
    with open(path, "rb") as file:
        return [Expected(**each) for each in tomllib.load(file)["expected"]]


@contextmanager
def checkout(revision: str, scratch: Path) -> Iterator[Path]:
    """A folder with a revision: itself if it is one, otherwise a temporary work tree of the commit."""
    if Path(revision, "mo_loop").is_dir():
        yield Path(revision).resolve()
        return
    git = ["git", "-C", str(ROOT)]
    folder = Path(tempfile.mkdtemp(dir=scratch), "tree").resolve()
    subprocess.run([*git, "worktree", "add", "--quiet", "--detach", str(folder), revision], check=True)
    try:
        yield folder
    finally:
        subprocess.run([*git, "worktree", "remove", "--force", str(folder)], check=True)


def convert(checkouts: Sequence[Path], listed: Path, scratch: Path) -> list[Path]:
    """The folders with the output of each checkout. The processes run at the same time."""
    outputs, processes = [], []
    for number, each in enumerate(checkouts):
        outputs.append(Path(tempfile.mkdtemp(dir=scratch)))
        # Another order of sets and dictionaries must not change the IR.
        environment = {**os.environ, "PYTHONPATH": str(each), "PYTHONHASHSEED": str(number + 1)}
        script = str(Path(__file__).with_name("ir_of_samples.py"))
        command = [sys.executable, "-P", script, str(each), str(listed), str(outputs[-1])]
        processes.append(subprocess.Popen(command, env=environment, cwd=outputs[-1]))
    codes = [process.wait() for process in processes]
    for each, code in zip(checkouts, codes, strict=True):
        if code != 0:
            raise SystemExit(f"{each}: the conversions ended with exit code {code}")
    return outputs


def compare(samples: Sequence[Sample], before: Path, after: Path) -> Iterator[Difference]:
    """The samples whose output differs."""
    for number, sample in enumerate(samples):
        options = "".join(f" {name}={value}" for name, value in sample.options.items())
        for what in (f"{number}.refused", f"{number}.xml", f"{number}.bin"):
            found = difference_of(before / what, after / what)
            if found:
                yield Difference(sample.name + options, found)
                break


def difference_of(before: Path, after: Path) -> str:
    """How two files differ; empty if they do not, or if both are messages of a refusal."""
    kind = before.suffix.removeprefix(".")
    if not before.exists() or not after.exists():
        if before.exists() == after.exists():
            return ""
        there = before if before.exists() else after
        side = "the base" if before.exists() else "the other"
        return f"only {side} {'refuses: ' + one_line(there.read_bytes()) if kind == 'refused' else 'writes ' + kind}"
    first, second = before.read_bytes(), after.read_bytes()
    if kind == "xml":
        first, second = (_VERSION.sub(b"", each) for each in (first, second))
    if first == second or kind == "refused":
        return ""
    size = f"{kind}: {len(first)} and {len(second)} bytes"
    if kind == "bin":
        place = next((at for at, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), None)
        return f"{size}, first at {min(len(first), len(second)) if place is None else place}"
    pairs = zip(first.splitlines(), second.splitlines(), strict=False)
    for line, (one, other) in enumerate(pairs, 1):
        if one != other:
            return f"{size}, first at line {line}\n    < {one_line(one)}\n    > {one_line(other)}"
    return f"{size}, one has more lines"


def one_line(text: bytes) -> str:
    """The first line, cut to a width."""
    line = text.decode(errors="replace").strip().partition("\n")[0]
    return line if len(line) <= WIDTH else f"{line[:WIDTH]}..."


def report(count: int, refused: int, differences: Sequence[Difference], expected: Sequence[Expected]) -> int:
    """Print the result; 1 if there is a difference that is not expected, or none where one is."""
    left = [each for each in differences if not any(entry.covers(each) for entry in expected)]
    for each in left[:SHOWN]:
        print(f"{each.name}\n  {each.what}")
    if len(left) > SHOWN:
        print(f"... and {len(left) - SHOWN} more")
    unmet = [entry for entry in expected if not any(entry.covers(each) for each in differences)]
    for entry in expected:
        covered = sum(entry.covers(each) for each in differences)
        print(f"expected: {covered} of {entry.models}: {entry.reason}")
    for entry in unmet:
        print(f"expected, but equal: {entry.models}")
    print(
        f"{count} models, {refused} of them refused: {len(differences)} differ, {len(differences) - len(left)} "
        "of these as expected"
    )
    return int(bool(left or unmet))


if __name__ == "__main__":
    sys.exit(main())
