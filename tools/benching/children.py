"""One run of a command in a process of its own: wall time, CPU time, peak memory."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 1800  # seconds


@dataclass(frozen=True)
class Run:
    """The time and memory of a run. `cpu_s` includes the processes that it started, `peak_mib` is that of the largest
    of them."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    printed: str = ""


def run(command: Sequence[str], folder: Path, timeout: float = TIMEOUT) -> Run:
    """Run a command in a folder; SystemExit with the end of its output if it fails."""
    environment = {**os.environ, "CI": "true", "PYTHONPATH": str(ROOT)}  # CI: ovc sends no usage events
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # both sides run as installed, with bytecode
    with open(folder / "output.txt", "w+b") as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=folder, env=environment
        )
        code, cpu, peak = _wait(process, timeout)
        took = time.perf_counter() - start
        output.seek(0)
        printed = output.read().decode(errors="replace")
    if code != 0:
        late = f" after {timeout:.0f} s" if took >= timeout else ""
        raise SystemExit(f"{' '.join(command)}: exit code {code}{late}\n{printed[-2000:]}")
    return Run(took, cpu, peak, printed)


def _wait(process: subprocess.Popen[bytes], timeout: float) -> tuple[int, float, float]:
    """Exit code, CPU seconds and peak memory in MiB of a child (0 without wait4); kills it at the timeout."""
    killer = threading.Timer(timeout, process.kill)
    killer.start()
    try:
        if not hasattr(os, "wait4"):
            return process.wait(), 0.0, 0.0
        _, status, usage = os.wait4(process.pid, 0)
    finally:
        killer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    kib = usage.ru_maxrss / 1024 if sys.platform == "darwin" else usage.ru_maxrss
    return process.returncode, usage.ru_utime + usage.ru_stime, kib / 1024
