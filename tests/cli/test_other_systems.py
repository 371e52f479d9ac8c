"""A system without the modules and functions of POSIX: everything imports, converts and runs in workers."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.harness import parsed

from .commands import PLAIN, ended, saved

POSIX_MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")

SITE = f"""
import os, sys

for name in {POSIX_MODULES}:
    sys.modules[name] = None  # what makes an import fail
for name in ("fork", "getpgrp", "killpg", "sched_getaffinity", "setsid"):
    if hasattr(os, name):
        delattr(os, name)
"""
"""Every Python process of a test runs this first, worker processes too."""

IMPORT_ALL = """
import importlib, os, pkgutil

import mo_loop

assert not hasattr(os, "killpg")
names = [each.name for each in pkgutil.walk_packages(mo_loop.__path__, "mo_loop.")]
for name in names:
    # The package distributed itself does not import here, where it is installed at all.
    if not name.endswith("__main__") and not name.startswith("mo_loop.batching.cluster."):
        importlib.import_module(name)
print(len(names))
"""


def without_posix(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process without the modules and functions of POSIX."""
    site = folder / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(SITE, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(site), str(ROOT)))}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=folder, env=environment, timeout=120
    )


def test_every_module_imports(tmp_path: Path) -> None:
    done = ended(without_posix(tmp_path, "-c", IMPORT_ALL))
    assert int(done.stdout) > 250


def test_a_conversion(tmp_path: Path) -> None:
    saved(parsed(PLAIN), tmp_path)
    done = without_posix(tmp_path, "-m", "mo_loop", "convert", "model.onnx", "-o", "out.xml")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out.xml").is_file() and (tmp_path / "out.bin").is_file()


def test_a_batch_warns_that_its_memory_limit_has_no_effect(tmp_path: Path) -> None:
    for name in ("a", "b"):
        saved(parsed(PLAIN), tmp_path, f"{name}.onnx")
    done = ended(without_posix(
        tmp_path, "-m", "mo_loop", "batch", "a.onnx", "b.onnx", "-o", "out", "--memory", "4G", "-j", "2"
    ))
    warning = "warning: --memory has no effect: this system cannot limit the memory of a process"
    assert done.stderr.splitlines().count(warning) == 1
    assert sorted(each.name for each in (tmp_path / "out").glob("*.xml")) == ["a.xml", "b.xml"]


def test_a_pool_warns_that_its_memory_limit_has_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    from mo_loop.support.workers import Pool

    monkeypatch.setitem(sys.modules, "resource", None)
    with pytest.warns(UserWarning, match="cannot limit the memory of a process"), Pool("os:getpid", memory=1 << 30):
        pass


def test_no_module_imports_a_posix_module_at_its_top() -> None:
    """The rule holds on every machine: only an import inside a function may fail without breaking the rest."""
    found = []
    for path in (*(ROOT / "mo_loop").rglob("*.py"), *(ROOT / "transforms").rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [f"{path.relative_to(ROOT)} imports {name}" for name in names if name in POSIX_MODULES]
    assert found == []
