"""Runs the examples of the documentation.

The fenced blocks of a page run from top to bottom in one folder and one namespace:

- ```python that begins with `>>>` is compared with its output, other ```python is executed; if its first line is
  `# name.py` it becomes that file instead.
- ```console contains `$ mo-loop ...` and the output of the command, with `...` for parts that vary.
- ```text with `# pass:` is a golden case with the passes of the page. ```toml must be TOML.
- ```cpp is compiled and run where there is a compiler.
- ```yaml must be YAML, and the command must accept every `mo-loop ...` in it. ```make runs with `make -n`.
"""

from __future__ import annotations

import doctest
import importlib
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
import onnx
import pytest
import yaml
from click.testing import CliRunner

from mo_loop.cli import main
from mo_loop.extensions import GROUP
from mo_loop.text import parse
from mo_loop.transforms.extension_places import Placed, arranged
from mo_loop.transforms.manager import Manager
from mo_loop.transforms.pipelines import PLACES, default_pipeline
from tests import ROOT
from tests.golden.test_golden import read, shown
from tests.release import runs
from tests.unit.test_structure import CIRCLES, LIBRARY_HOMES, NEVER, TRANSFORMS_MAY_IMPORT, is_module

PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
]
PACKAGES = ("mo_loop", "transforms")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FILE = re.compile(r"# (\w+\.py)\n")
FILE_NAME = re.compile(r"(?<![\w/.])(?:mo_loop|transforms|docs|tests|tools)/[\w/-]*[\w.]*\w(?![\w<-])")


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
            (self.folder / file.group(1)).write_text(block.text, "utf-8")
            return
        exec(compile("\n" * (block.line - 1) + block.text, str(self.path), "exec"), self.names)

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


def strings(content: Any) -> Iterator[str]:
    """All strings of a document."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict | list):
        for each in content.values() if isinstance(content, dict) else content:
            yield from strings(each)


def taken(line: str) -> None:
    """The command line accepts these arguments; nothing runs."""
    words = re.split(r"\s(?:>|\|\|)", line)[0]
    _, name, *arguments = shlex.split(words)
    command = main.get_command(click.Context(main), name)
    assert command is not None, name
    command.make_context(name, arguments)


def test_a_flag_that_is_not_there_is_seen() -> None:
    with pytest.raises(click.UsageError, match="--no-such"):
        taken("mo-loop batch models -o ir --no-such > log")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_what_a_page_shows(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stem in ("production", "quantised") and not runs((2025, 0)):
        pytest.skip("it builds with, or runs, what the oldest dependencies do not have")
    monkeypatch.chdir(tmp_path)
    page = Page(path, tmp_path)
    page.run()
    assert not page.wrong, "\n".join(page.wrong)
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
            with pytest.raises(urllib.error.HTTPError, match="400"):
                names["ask"](address, x=np.float32([3, 2, 1]))
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
```
"""


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


def names_in(page: Path) -> Iterator[str]:
    """Dotted names of ours that a page mentions."""
    found = re.findall(r"`(mo_loop\.[\w.]+)`", page.read_text("utf-8"))
    yield from sorted({*found} - {GROUP})


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_names_exist(path: Path) -> None:
    for name in names_in(path):
        module, _, rest = name.rpartition(".")
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            assert hasattr(importlib.import_module(module), rest), f"{path.name} mentions {name}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_links_and_files_exist(path: Path) -> None:
    text = path.read_text("utf-8")
    links = [path.parent / link for link in re.findall(r"\]\(([^)#:]+)\)", text)]
    files = [ROOT / name for name in FILE_NAME.findall(text)]
    missing = [str(each.relative_to(ROOT)) for each in (*links, *files) if not each.exists()]
    assert not missing


def test_pictures_exist_in_light_and_dark_and_are_small() -> None:
    """`python tools/page_pictures.py` takes them anew."""
    text = "".join(path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md"))
    shown = {*re.findall(r'(?:src="|srcset="|\]\()(pictures/[\w-]+\.\w+)', text)}
    files = {f"pictures/{path.name}": path for path in (ROOT / "docs" / "pictures").iterdir()}
    assert shown == files.keys() and {name.replace("-light", "-dark") for name in shown} <= shown
    assert max(path.stat().st_size for path in files.values()) < 150_000


class TestArchitecture:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")

    def test_the_picture_shows_every_package(self) -> None:
        picture = self.text.partition("## ")[0]
        folders = [path for name in PACKAGES for path in (ROOT / name).iterdir() if (path / "__init__.py").is_file()]
        lacking = [path.name for path in folders if not re.search(rf"\b{path.name}\b", picture)]
        assert len(folders) > 15 and lacking == []

    def test_the_table_says_where_to_make_a_change(self) -> None:
        table = self.text.partition("| to change | open |\n|---|---|\n")[2].splitlines()
        without = [row for row in table if not re.search(r"`(?:mo_loop|transforms|tools)/", row.split(" | ")[1])]
        assert len(table) >= 25 and without == []

    def test_what_it_says_of_imports_is_what_is_enforced(self) -> None:
        rules = self.text.partition("## What may import what")[2].partition("## ")[0]
        assert {*LIBRARY_HOMES} <= {*re.findall(r"\b\w+\b", rules)}


@pytest.mark.parametrize("name", sorted({*NEVER, *TRANSFORMS_MAY_IMPORT, *(m for circle in CIRCLES for m in circle)}))
def test_modules_that_the_rules_of_imports_name_exist(name: str) -> None:
    assert is_module(ROOT, name)


def test_the_index_lists_every_page() -> None:
    text = (ROOT / "docs" / "README.md").read_text("utf-8")
    listed = {*re.findall(r"\]\((\w[\w./-]+)\)", text)}
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.*")}
    assert listed == {page for page in pages if page.endswith((".md", ".py"))} - {"README.md"}


def test_the_navigation_of_the_site_has_every_page() -> None:
    """`make docs` refuses a page that is not there, and needs minutes."""
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(strings(nav)) == sorted({*pages, "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"})


def test_places_are_those_of_the_pipeline() -> None:
    """The page lists every place by name, in the order in which they come."""
    text = (ROOT / "docs" / "passes.md").read_text("utf-8")
    assert re.findall(r'^- `at="(\w+)"`', text, re.MULTILINE) == list(PLACES)
    order = [each.name for each in arranged(default_pipeline(), [Placed(Manager, at=place) for place in PLACES])]
    assert order.count("Manager") == len(PLACES)


def test_pages_made_from_the_program_are_as_it_is() -> None:
    """`python tools/pages.py` writes them anew. docs/operators.md names the onnx package whose operators it lists."""
    sys.path.insert(0, str(ROOT))
    from tools.pages import stale

    other = f"(onnx {onnx.__version__})" not in (ROOT / "docs" / "operators.md").read_text("utf-8")
    assert [name for name in stale() if name != "operators.md" or not other] == []
