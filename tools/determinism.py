"""Convert the same models in many circumstances, and compare the bytes of the IR.

    python tools/determinism.py                                     hash seeds, folders, locale, time zone, -j
    python tools/determinism.py --python python3.13 --python v/bin/python     and other interpreters

About 700 models (tools/ir_samples.py) are converted by one process for each circumstance. The exit code is 1 if an .xml
or a .bin differs from that of the first one, or if one circumstance refuses what another converts. Other interpreters
need the packages of mo_loop: another release of onnx is an interpreter of another environment. Two releases of numpy
may round differently, so give them the same one.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.ir_samples import LIST, Sample, written
from tools.same_ir import compare

ROOT = Path(__file__).resolve().parents[1]
JOBS = 2
"""Processes at a time."""


@dataclass(frozen=True)
class Circumstance:
    """Where and how a process converts; `moved` means that the models are in another folder."""

    name: str
    environment: dict[str, str] = field(default_factory=dict)
    python: str = sys.executable
    folder: str = ""
    moved: bool = False


CIRCUMSTANCES = (
    Circumstance("the first", {"PYTHONHASHSEED": "0"}),
    Circumstance("again", {"PYTHONHASHSEED": "0"}),
    Circumstance("another hash seed", {"PYTHONHASHSEED": "4711"}),
    Circumstance("a random hash seed", {"PYTHONHASHSEED": "random"}),
    Circumstance("another working directory", folder="/"),
    Circumstance("another folder of the models", moved=True),
    Circumstance("a Turkish locale", {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "LANGUAGE": "tr"}),
    Circumstance("no locale", {"LC_ALL": "C", "PYTHONUTF8": "0"}),
    Circumstance("another time zone", {"TZ": "Pacific/Chatham"}),
    Circumstance("optimised bytecode", {"PYTHONOPTIMIZE": "1"}),
    Circumstance("more threads", {"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "4"}),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert in all circumstances; 0 if every file is the same, else 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="of the models")
    parser.add_argument("--models", type=Path, help="a folder that keeps the models")
    parser.add_argument("--python", action="append", default=[], help="another interpreter")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.models or Path(scratch, "models")
        samples = written(folder, options.seed)
        every = [*CIRCUMSTANCES, *(Circumstance(_described(each), python=each) for each in options.python)]
        found = differing(every, samples, folder, Path(scratch))
        found |= {"batch -j 1 and -j 2": batches(folder, Path(scratch))}
    for name, differences in found.items():
        print(f"{name}: {len(differences)} of {len(samples)} differ")
        for each in differences[:10]:
            print(f"  {each}")
    return int(any(found.values()))


def differing(
    circumstances: Sequence[Circumstance], samples: Sequence[Sample], folder: Path, scratch: Path
) -> dict[str, list[str]]:
    """The samples whose IR differs from that of the first circumstance, by circumstance."""
    outputs: list[Path] = []
    running: list[tuple[Circumstance, subprocess.Popen[bytes]]] = []
    for number, each in enumerate(circumstances):
        if len(running) >= JOBS:
            _finish(*running.pop(0))
        outputs.append(scratch / f"output{number}")
        outputs[-1].mkdir()
        running.append((each, _started(each, samples, folder, outputs[-1])))
    for pair in running:
        _finish(*pair)
    return {
        each.name: [f"{found.name}: {found.what}" for found in compare(samples, outputs[0], output)]
        for each, output in zip(circumstances[1:], outputs[1:], strict=True)
    }


def _started(each: Circumstance, samples: Sequence[Sample], folder: Path, output: Path) -> subprocess.Popen[bytes]:
    listed = output / LIST
    entries = [{"path": str(Path(each.path).resolve()), "options": each.options} for each in samples]
    if each.moved:
        elsewhere = output / "another place"
        shutil.copytree(folder, elsewhere)
        root = str(folder.resolve())
        for entry in entries:
            entry["path"] = str(entry["path"]).replace(root, str(elsewhere))
    listed.write_text(json.dumps(entries))
    script = str(Path(__file__).with_name("ir_of_samples.py"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **each.environment}
    return subprocess.Popen(
        [each.python, "-P", script, str(ROOT), str(listed), str(output)], env=environment, cwd=each.folder or output
    )


def _finish(each: Circumstance, process: subprocess.Popen[bytes]) -> None:
    if process.wait() != 0:
        raise SystemExit(f"{each.name}: the conversions ended with exit code {process.returncode}")


def batches(models: Path, scratch: Path) -> list[str]:
    """The files that differ between a batch of one worker and one of two."""
    outputs = [scratch / f"batch{jobs}" for jobs in (1, 2)]
    for jobs, output in enumerate(outputs, 1):
        command = [sys.executable, "-m", "mo_loop", "batch", str(models), "-o", str(output), "-j", str(jobs), "-q"]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
        if done.returncode not in (0, 1):  # 1: some models are refused
            raise SystemExit(f"batch -j {jobs} ended with exit code {done.returncode}: {done.stderr[-2000:]}")
    names = [
        {path.relative_to(output) for path in output.rglob("*") if path.suffix in (".xml", ".bin")}
        for output in outputs
    ]
    found = [f"only one batch writes {name}" for name in sorted(names[0] ^ names[1])]
    same = sorted(names[0] & names[1])
    assert same, "the batches write files"
    return found + [str(name) for name in same if (outputs[0] / name).read_bytes() != (outputs[1] / name).read_bytes()]


def _described(python: str) -> str:
    versions = "import sys, onnx, numpy; print(sys.version.split()[0], onnx.__version__, numpy.__version__)"
    done = subprocess.run([python, "-c", versions], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{python}: {done.stderr.strip().splitlines()[-1]}")
    return "Python {} with onnx {} and numpy {}".format(*done.stdout.split())


if __name__ == "__main__":
    sys.exit(main())
