"""Runs `mo-loop batch` in this process and as the installed command; makes models for it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import onnx

from tests.harness import parsed

from .commands import in_process

GOOD = """
{name} (float[3] x, int64 n) => (float[3] y) <float[3] w = {{1.0, 2.0, {number}.0}}> {{
  a = Add (x, w)
  [loop] y = Loop (n, "", a) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {{
    d = Identity (c) t = Mul (s, a) }}> }}"""

TROUBLE = """
import os
import time

import numpy

from mo_loop.transforms.function_pass import FunctionPass


class Trouble(FunctionPass):
    def run_on_graph(self, graph):
        if graph.name == "hang":
            time.sleep(1000)
        if graph.name == "crash":
            os.abort()
        if graph.name == "greedy":
            kept = [numpy.empty(64 << 20, numpy.uint8) for _ in range(1000)]  # not written, which takes time
        if graph.name.startswith("slow"):
            open(os.path.splitext(__file__)[0] + "-began", "w").close()  # tests wait for it
            time.sleep(float(graph.name.removeprefix("slow") or 60) / 10)
        return False


def register(extensions):
    extensions.add_pass(Trouble, at="start")
"""

REFUSED = "refused (float[3] x) => (float[3] y) { [odd] y = Unheard (x) }"


def command() -> list[str]:
    """The console script next to this interpreter; if there is none, the module."""
    found = shutil.which("mo-loop", path=sysconfig.get_path("scripts"))
    return [found] if found else [sys.executable, "-m", "mo_loop"]


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of the tests without the variables that change the output, with `more`."""
    plain = {
        key: value
        for key, value in os.environ.items()
        if key not in ("NO_COLOR", "FORCE_COLOR", "GITHUB_STEP_SUMMARY", "TERM", "COLUMNS")
    }
    return {**plain, "TERM": "xterm", **(more or {})}


def batch(
    *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end in this process, with one worker process unless `arguments` have a number."""
    gone = dict.fromkeys(os.environ.keys() - environment().keys())
    jobs = () if {"-j", "--jobs"}.intersection(map(str, arguments)) else ("-j", 1)
    return in_process("batch", *arguments, *jobs, cwd=cwd, stdin=typed.encode(), env={**gone, **environment(env)})


def installed_batch(
    *arguments: object, cwd: Path, env: Mapping[str, str] | None = None, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the installed command to its end."""
    return subprocess.run(
        [*command(), "batch", *map(str, arguments)],
        cwd=cwd, env=environment(env), input=typed, capture_output=True, text=True, timeout=300,
    )


def good(path: Path, number: int = 0, name: str = "good") -> Path:
    """A small model with a loop; each number gives different weights."""
    return saved(parsed(GOOD.format(name=name, number=number)), path)


def refused(path: Path) -> Path:
    """A model with an unknown operator."""
    return saved(parsed(REFUSED), path)


def saved(model: onnx.ModelProto, path: Path) -> Path:
    """Save the model; make missing folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString())
    return path


def trouble(folder: Path) -> Path:
    """An extension that hangs, crashes, takes all memory or waits, depending on the name of the graph."""
    path = folder / "trouble.py"
    path.write_text(TROUBLE)
    return path


class Running:
    """A running `mo-loop batch in -o out` in a process group of its own, as a shell starts it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.mark = f"running-{folder.name}-{time.time_ns()}"
        self.process = subprocess.Popen(
            [*command(), "batch", "in", "-o", "out", "--extension", "trouble.py", *arguments],
            cwd=folder, env=environment({"MARK": self.mark}), text=True, process_group=0,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )

    def wait_for(self, condition: Callable[[], object]) -> None:
        """Wait until a condition holds."""
        end = time.monotonic() + 120
        while not condition():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < end
            time.sleep(0.02)

    def pairs(self) -> int:
        """The number of .xml files of models whose names begin with m."""
        return len(list((self.folder / "out").glob("m*.xml")))

    def press(self, number: int = signal.SIGINT) -> None:
        """Send a signal to the whole group, as a terminal does for Ctrl-C."""
        os.killpg(self.process.pid, number)

    def end(self) -> tuple[int, str, str]:
        """Exit code, stdout and stderr, without a traceback in it."""
        stdout, stderr = self.process.communicate(timeout=90)
        assert "Traceback" not in stderr, stderr
        return self.process.returncode, stdout, stderr


def files_in(folder: Path) -> list[str]:
    """All files below a folder, and folders whose name begins with a dot, which a batch must not leave behind."""
    found = [path.relative_to(folder) for path in folder.rglob("*")]
    return sorted(each.as_posix() for each in found if (folder / each).is_file() or each.name.startswith("."))


def statuses(report: Path) -> dict[str, str]:
    """Status of each model by its name."""
    return {each["name"]: each["status"] for each in read(report)["models"]}


def read(report: Path) -> dict[str, Any]:
    """A report, parsed."""
    content: dict[str, Any] = json.loads(report.read_text())
    return content


def processes(marker: str) -> list[int]:
    """Running processes whose command line or environment contains `marker`."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            told = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if state != "Z" and marker.encode() in told:
            found.append(int(entry.name))
    return found
