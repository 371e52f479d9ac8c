"""Convert a model, or compile and run an IR, in a process of its own.

    python -m tools.real.processes convert mo-loop model.onnx model.xml
    python -m tools.real.processes run model.xml feeds.npz results.npz '{"INFERENCE_NUM_THREADS": 2}'

A crash of one side ends its own process alone, and the peak memory is that of one IR. `run` prints its seconds and
bytes as JSON.
"""

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.support.process_memory import peak_memory

ROOT = Path(__file__).resolve().parents[2]


class SideError(Exception):
    """A process ended with an error; the message is the first line of it."""


@dataclass(frozen=True)
class Footprint:
    """Seconds of all cores to read and compile an IR, and bytes of memory in use at most, one inference included."""

    seconds: float
    peak: int


def convert(side: str, source: Path, target: Path) -> None:
    """Write the IR of one side; SideError if it refuses or crashes."""
    _run("convert", side, source, target)


def run(xml: Path, feeds: Path, results: Path, properties: Mapping[str, Any]) -> Footprint:
    """Compile an IR, infer once, and write its outputs as an .npz file in their order; SideError on failure."""
    printed = _run("run", xml, feeds, results, json.dumps(dict(properties)))
    return Footprint(**json.loads(printed.splitlines()[-1]))


def arrays(path: Path) -> list[np.ndarray]:
    """The arrays that `run` wrote, in order."""
    with np.load(path) as found:
        return [found[key] for key in found.files]


def _run(*arguments: object) -> str:
    command = [sys.executable, "-m", "tools.real.processes", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        reason = f"ended by signal {-done.returncode}" if done.returncode < 0 else message(done.stderr)
        raise SideError(reason[:160])
    return done.stdout


def message(printed: str) -> str:
    """The first line of the error that a traceback ends with."""
    lines = [line for line in printed.splitlines() if line.strip()]
    code = max((number for number, line in enumerate(lines) if line.startswith("    ")), default=-1)
    return lines[code + 1] if code + 1 < len(lines) else (lines or ["no message"])[-1]


def _compile_and_run(xml: str, feeds: str, results: str, properties: str) -> None:
    import openvino

    from mo_loop.compare.execution.runtime import compile_ir

    with np.load(feeds) as found:
        named = {key: found[key] for key in found.files}
    openvino.Core().available_devices  # noqa: B018 - loads the plugin, which is not part of compiling
    started = time.process_time()  # other processes on the machine do not count
    compiled = compile_ir(xml, json.loads(properties))
    seconds = time.process_time() - started
    outputs = compiled.run(named)
    np.savez(results, **{f"{number:03}": array for number, (_, array) in enumerate(outputs)})
    print(json.dumps({"seconds": seconds, "peak": peak_memory()}))


def _main(action: str, *rest: str) -> None:
    if action == "convert":
        from tools.measuring import CONVERTERS

        side, source, target = rest
        CONVERTERS[side](Path(source), Path(target))
    else:
        _compile_and_run(*rest)


if __name__ == "__main__":
    _main(*sys.argv[1:])
