"""Runs the examples of the documentation.

The fenced blocks of a page run from top to bottom in one folder and one namespace:

- ```python that begins with `>>>` is compared with its output, other ```python is executed; if its first line is
  `# name.py` it becomes that file instead.
- ```py is a program for another environment, which must be Python.
- ```console contains `$ mo-loop ...` and the output of the command, with `...` for parts that vary.
- ```text with `# pass:` is a golden case with the passes of the page. ```toml must be TOML.
- ```cpp is compiled and run where there is a compiler.
- ```yaml must be YAML, and the command must accept every `mo-loop ...` in it. ```make runs with `make -n`.
"""

import doctest
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from mo_loop.cli import main
from mo_loop.text import parse
from mo_loop.transforms.manager import Manager
from tests import ROOT
from tests.golden.test_golden import read, shown
from tests.harness import raised, runs
from tests.running.processor import fail_or_skip, is_limited
from tests.unit.test_docs import PAGES, strings

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FILE = re.compile(r"# (\w+\.py)\n")


class Block(NamedTuple):
    """One fenced block and the line of the page that it begins at."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for found in FENCE.finditer(text):
        yield Block(found.group(1), found.group(2), text.count("\n", 0, found.start(2)) + 1)


class Page:
    """The state of a page while its blocks run."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.wrong: list[str] = []

    def run(self) -> None:
        for block in blocks(self.path):
            getattr(self, block.language)(block)

    def python(self, block: Block) -> None:
        if block.text.startswith(">>> "):
            self.session(block)
            return
        file = FILE.match(block.text)
        if file:
            compile(block.text, file.group(1), "exec")
            (self.folder / file.group(1)).write_text(block.text, "utf-8")
            return
        exec(compile("\n" * (block.line - 1) + block.text, str(self.path), "exec"), self.names)

    def py(self, block: Block) -> None:
        compile(block.text, str(self.path), "exec")

    def session(self, block: Block) -> None:
        name = self.path.name
        test = doctest.DocTestParser().get_doctest(block.text, self.names, name, str(self.path), block.line - 1)
        test.globs = self.names  # one namespace for the whole page, not a copy
        doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=self.wrong.append, clear_globs=False)

    def console(self, block: Block) -> None:
        for command, wanted in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
            command, _, comment = command.partition("  # ")
            program, *arguments = shlex.split(command)
            assert program == "mo-loop", f"line {block.line} runs {program}"
            done = CliRunner().invoke(main, arguments)
            failed = wanted.startswith("error:") or comment.startswith("exit code")
            if bool(done.exit_code) is not failed or not doctest.OutputChecker().check_output(
                wanted, done.output, FLAGS
            ):
                self.wrong.append(f"line {block.line}: {command}\n{done.output}\nwanted\n{wanted}")

    def text(self, block: Block) -> None:
        case = read(block.text)
        graph = parse(case.input)
        Manager([self.names[name]() for name in case.passes.split(", ")]).run(graph)
        found = shown(graph, names=False)
        if found != shown(parse(case.expected), names=False):
            self.wrong.append(f"line {block.line}: {case.passes} makes\n{found}")

    def cpp(self, block: Block) -> None:
        """The program is compiled with the headers of the package openvino, if there is a compiler, and has to run."""
        import openvino

        home = Path(openvino.__file__).parent
        libraries = sorted((home / "libs").glob("libopenvino.so*"))
        compiler = shutil.which("g++")
        if compiler is None or not libraries:
            return
        (self.folder / "main.cpp").write_text(block.text, "utf-8")
        options = ["-std=c++17", "-O0", f"-I{home / 'include'}", f"-Wl,-rpath,{home / 'libs'}", str(libraries[0])]
        subprocess.run([compiler, "main.cpp", "-o", "main", *options], check=True, cwd=self.folder, timeout=300)
        subprocess.run([self.folder / "main"], check=True, cwd=self.folder, timeout=60)

    def toml(self, block: Block) -> None:
        tomllib.loads(block.text)

    def yaml(self, block: Block) -> None:
        for line in strings(yaml.safe_load(block.text)):
            if line.startswith("mo-loop "):
                taken(line)

    def make(self, block: Block) -> None:
        (self.folder / "Makefile").write_text(block.text, "utf-8")
        done = subprocess.run(["make", "-n"], capture_output=True, text=True, cwd=self.folder, timeout=60)
        assert done.returncode == 0, done.stderr
        for line in done.stdout.replace("\\\n", " ").splitlines():
            if line.startswith("mo-loop "):
                taken(line)


def taken(line: str) -> None:
    """The command line accepts these arguments; nothing runs."""
    words = re.split(r"\s(?:>|\|\|)", line)[0]
    _, name, *arguments = shlex.split(words)
    command = main.get_command(click.Context(main), name)
    assert command is not None, name
    command.make_context(name, arguments)


def test_a_flag_that_is_not_there_is_seen() -> None:
    raised(click.UsageError, taken, "mo-loop batch models -o ir --no-such > log", match="--no-such")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_what_a_page_shows(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stem in ("production", "quantised") and not runs((2025, 0)):
        pytest.skip("it builds with, or runs, what the oldest dependencies do not have")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # the files of the page can be imported
    page = Page(path, tmp_path)
    try:
        page.run()
    except RuntimeError as error:
        if not is_limited() or "primitive descriptor" not in str(error):
            raise
        pytest.skip("the runtime computes in bf16, for which it has no kernels under this limit")
    sys.modules.pop("server", None)
    fail_or_skip(page.wrong)
    if path.stem == "production":
        check_repository(tmp_path / "models")
        check_answers(tmp_path)


def check_repository(folder: Path) -> None:
    """Check the rules that OpenVINO Model Server documents for its configuration and the folders of models."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (entry,) = config.pop("model_config_list")
    assert not config and [*entry] == ["config"]
    assert {"name", "base_path"} <= entry["config"].keys() <= {"name", "base_path", "target_device"}
    assert all(isinstance(value, str) for value in entry["config"].values())
    home = folder / Path(entry["config"]["base_path"]).relative_to("/models")
    for version in home.iterdir():
        assert int(version.name) > 0 and sorted(each.suffix for each in version.iterdir()) == [".bin", ".xml"]


def check_answers(folder: Path) -> None:
    """The server of the page and its client, as they are started there."""
    environment = {**os.environ, "PYTHONPATH": ""}
    started = [sys.executable, "-c", SERVE_AT_ANY_PORT]
    with subprocess.Popen(started, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = f"http://127.0.0.1:{int(server.stdout.readline())}"
            names: dict[str, Any] = {"__name__": "client"}
            exec((folder / "client.py").read_text("utf-8"), names)
            found = names["ask"](address, x=np.float32([3, 2, 1]), limit=np.float32(0.25))
            assert found == {"y": [0.09375, 0.0625, 0.03125], "sums": [3.0, 1.5, 0.75, 0.375, 0.1875]}
            assert urllib.request.urlopen(f"{address}/v2/health/ready").status == 200
            raised(urllib.error.HTTPError, names["ask"], address, x=np.float32([3, 2, 1]), match="400")
        finally:
            server.terminate()


SERVE_AT_ANY_PORT = """
import server
running = server.ThreadingHTTPServer(("127.0.0.1", 0), server.Handler)
print(running.server_port, flush=True)
running.serve_forever()
"""


def test_the_page_of_passes_has_something_to_run() -> None:
    counts = [block.language for block in blocks(ROOT / "docs" / "passes.md")]
    assert counts.count("python") > 15 and counts.count("console") > 5 and {"text", "toml"} <= set(counts)


WRONG = """
```python
>>> 1 + 1
3
```

```python
x = 1
```

```console
$ mo-loop --version
mo-loop, version 0.0.0
```

```text
# pass: Nothing
# input
%x = Parameter : f32[2]
Result(%x)
# expected
%x = Parameter : f32[3]
Result(%x)
```"""


def test_a_wrong_page_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "wrong.md"
    path.write_text(WRONG)
    page = Page(path, tmp_path)
    page.names["Nothing"] = Manager
    page.run()
    session, console, text = page.wrong
    assert "Expected:\n    3\nGot:\n    2" in session
    assert console.startswith("line 12: mo-loop --version") and text.startswith("line 17: Nothing makes")
    assert page.names["x"] == 1
