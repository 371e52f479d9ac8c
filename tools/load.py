"""Put load on `mo-loop batch` and on one worker, and see that memory stays flat and that nothing is lost.

    python tools/load.py                                  2,000 models, 1% of them poison, then 20,000 conversions
    python tools/load.py --models 200 --conversions 1000  less of both

The poison hangs, crashes or takes all memory (through an extension, in the worker). All other models must be
converted, the report must name every model with its status, and no process and no temporary file may remain. From the
first tenth of the run to its end the memory of the batch's own process, and of the worker of the second part, may grow
to GROWTH times. The exit code is 1 if one of these does not hold. Linux alone: memory is read from /proc.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.cli.batches import TROUBLE, processes

ROOT = Path(__file__).resolve().parents[1]
GROWTH = 1.1
MARK = "MO_LOOP_LOAD"
POISON = ("hang", "crash", "greedy")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both parts; 0 if everything holds, else 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=2000, help="of the batch")
    parser.add_argument("--conversions", type=int, default=20_000, help="in one worker")
    parser.add_argument("--jobs", type=int, default=2, help="workers of the batch")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        found = batch(Path(folder), options.models, options.jobs)
        found += soak(Path(folder), options.conversions)
    for each in found:
        print(f"error: {each}")
    return int(bool(found))


def batch(folder: Path, count: int, jobs: int) -> list[str]:
    """The violated limits of a batch of `count` models."""
    expected = write_models(folder / "in", count)
    (folder / "poison.py").write_text(TROUBLE)
    command = [
        sys.executable, "-m", "mo_loop", "batch", "in", "-o", "out", "-j", str(jobs), "--timeout", "10",
        "--memory", "1G", "--extension", "poison.py", "--report", "report.json", "-q",
    ]
    started = time.monotonic()
    mark = f"{MARK}={os.getpid()}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), MARK: str(os.getpid())}
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stderr=log, stdout=log)
        memory: list[float] = []
        while process.poll() is None:
            memory.append(resident(process.pid))
            time.sleep(0.25)
    memory = [each for each in memory if each]
    print(f"batch of {count} models: {time.monotonic() - started:.0f} s, exit code {process.returncode}")
    report = json.loads((folder / "report.json").read_text())
    statuses = {each["name"]: each["status"] for each in report["models"]}
    print("  " + ", ".join(f"{number} {status}" for status, number in sorted(Counter(statuses.values()).items())))
    wrong = [f"{name} is {statuses.get(name)}, not {status}" for name, status in expected.items()
             if statuses.get(name) != status]
    missing = [
        name for name, status in expected.items()
        for ending in (".xml", ".bin")
        if status == "converted" and not (folder / "out" / name).with_suffix(ending).exists()
    ]
    hidden = [str(path) for path in (folder / "out").rglob(".*") if path.name != ".mo-loop.json"]
    left = processes(mark)
    return [
        *wrong[:10], *(f"{name} has no output" for name in missing[:10]), *(f"{each} remains" for each in hidden),
        *(f"process {each} remains" for each in left), *growth("the batch's process", memory),
    ]


def write_models(folder: Path, count: int) -> dict[str, str]:
    """Small models, every hundredth of them poison, and the status that each must have."""
    import onnx

    folder.mkdir()
    status = {"hang": "timeout", "crash": "crash", "greedy": "memory"}
    expected = {}
    for number in range(count):
        poison = POISON[number // 100 % len(POISON)] if number % 100 == 50 else ""
        text = f"""<ir_version: 8, opset_import: ["": 18]> {poison or "good"} (float[N,4] x) => (float[N,4] y)
          {{ a = Relu (x) b = Add (a, a) y = Exp (b) }}"""
        name = f"m{number:05}{poison}.onnx"
        onnx.save(onnx.parser.parse_model(text), folder / name)
        expected[name] = status.get(poison, "converted")
    return expected


def soak(folder: Path, count: int) -> list[str]:
    """The violated limits of `count` conversions in one worker."""
    from mo_loop.batching.engine import Task, Work
    from mo_loop.options import ConvertOptions
    from mo_loop.support.workers import Pool

    source = next(path for path in sorted((folder / "in").iterdir()) if path.stem.endswith("0"))
    work, target = Work(ConvertOptions(), "x"), folder / "soak"
    target.mkdir()
    (target / "drafts").mkdir()
    tasks = (
        Task(str(source), str(target / "drafts" / "m.xml"), str(target / f"m{number % 50}.xml"), work)
        for number in range(count)
    )
    started, memory = time.monotonic(), []
    with Pool("tools.load:converted", jobs=1, limit=60) as pool:
        for outcome in pool.map(tasks):
            if not outcome.ok:
                return [f"a conversion ended as {outcome.status}: {outcome.message}"]
            memory.append(outcome.value)
    print(f"{count} conversions in one worker: {time.monotonic() - started:.0f} s")
    return growth("the worker", memory)


def converted(task: object) -> float:
    """Convert in a worker; the resident memory of the process after it, in MiB."""
    from mo_loop.batching.job import convert

    done = convert(task)  # type: ignore[arg-type]  # a Task: this module imports it where it is needed
    assert done.entry is not None, done.errors
    return resident(os.getpid())


def growth(what: str, memory: Sequence[float]) -> list[str]:
    """Print the course of memory, in tenths of the run; a finding if it grows to more than GROWTH times."""
    if len(memory) < 10:
        return [f"{what}: only {len(memory)} samples of its memory"]
    tenths = [max(memory[len(memory) * each // 10 : max(len(memory) * (each + 1) // 10, 1)]) for each in range(10)]
    print(f"  memory of {what}, the most in each tenth of the run, MiB: {' '.join(f'{each:.1f}' for each in tenths)}")
    ratio = tenths[-1] / tenths[0]
    return [f"the memory of {what} grows to {ratio:.2f} times"] if ratio > GROWTH else []


def resident(process: int) -> float:
    """The resident memory of a process in MiB; 0 if it has ended."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


if __name__ == "__main__":
    sys.exit(main())
