"""The wheel: it holds the two packages and nothing else, and converts a model from outside the checkout."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT

pytest.importorskip("onnx")

import onnx
import onnx.parser

TINY = """
<ir_version: 9, opset_import: ["": 18]>
tiny (float[2] x, int64 trips) => (float[2] y)
{
    go = Constant <value = bool {1}> ()
    y = Loop (trips, go, x) <body = step (int64 i, bool on, float[2] v) => (bool again, float[2] w)
        { again = Identity (on)  w = Add (v, v) }>
}
"""


def pip(*arguments: str, cwd: Path) -> None:
    """Run pip quietly; on failure show its output."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A wheel of this checkout. With the build backend installed (extra `dev`) pip downloads nothing."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("this environment has no pip")
    folder = tmp_path_factory.mktemp("wheel")
    backend = ("hatchling", "hatch_fancy_pypi_readme")
    isolation = ["--no-build-isolation"] if all(map(importlib.util.find_spec, backend)) else []
    pip("wheel", str(ROOT), "--no-deps", *isolation, "--wheel-dir", str(folder), cwd=folder)
    (built,) = folder.glob("*.whl")
    yield built


def package_files() -> set[str]:
    """The files of the two packages in the checkout, without caches."""
    return {
        path.relative_to(ROOT).as_posix()
        for package in ("mo_loop", "transforms")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_both_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    metadata = {name for name in names if name.split("/")[0].endswith(".dist-info")}
    assert names - metadata == package_files()
    assert {"mo_loop/py.typed", "transforms/py.typed"} <= names


def test_the_page_adds_little_to_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        sizes = {each.filename: each.compress_size for each in archive.infolist()}
    assert 0 < sum(size for name, size in sizes.items() if name.startswith("mo_loop/look/page/static/")) < 800_000
    assert wheel.stat().st_size < 3_000_000


def test_the_wheel_names_its_script_and_dependencies(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        read = {Path(name).name: archive.read(name).decode() for name in archive.namelist() if ".dist-info/" in name}
    assert "mo-loop = mo_loop.cli:main" in read["entry_points.txt"]
    required = {
        line.removeprefix("Requires-Dist: ").split(">")[0]
        for line in read["METADATA"].splitlines()
        if line.startswith("Requires-Dist: ") and "extra ==" not in line
    }
    assert required == {"click", "lxml", "networkx", "numpy", "onnx", "protobuf", "rich"}


def test_the_wheel_is_licensed_and_described_without_the_repository(wheel: Path) -> None:
    """The package index shows the long description on its own: relative links would not work."""
    with zipfile.ZipFile(wheel) as archive:
        read = {Path(name).name: archive.read(name).decode() for name in archive.namelist() if ".dist-info/" in name}
    assert read["LICENSE"] == (ROOT / "LICENSE").read_text("utf-8")
    assert read["LICENSES.txt"] == (ROOT / "mo_loop/look/page/static/LICENSES.txt").read_text("utf-8")
    headers, _, description = read["METADATA"].partition("\n\n")
    assert {
        "License-Expression: Apache-2.0 AND EPL-2.0 AND MIT",
        "License-File: LICENSE",
        "License-File: mo_loop/look/page/static/LICENSES.txt",
    } <= {*headers.splitlines()}
    versions = re.findall(r"^Classifier: Programming Language :: Python :: 3\.(\d+)$", headers, re.MULTILINE)
    assert versions == ["11", "12", "13", "14"]
    page = (ROOT / "README.md").read_text("utf-8")
    assert re.findall(r"\]\((?!https?:)", page) and not re.findall(r"\]\((?!https?:)", description)
    assert len(description) > 0.9 * len(page) and "docs/cli.md has all of them" in description


def test_an_installed_wheel_converts_a_model_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    pip("install", "--no-deps", "--no-compile", "--target", str(site), str(wheel), cwd=tmp_path)
    onnx.save(onnx.parser.parse_model(TINY), tmp_path / "tiny.onnx")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV_"))}
    environment["PYTHONPATH"] = str(site)

    def python(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
        )

    origin = python("-c", "import mo_loop, transforms; print(mo_loop.__file__); print(transforms.__file__)")
    assert [Path(line).parent.parent for line in origin.stdout.split("\n") if line] == [site, site], origin.stderr
    done = python("-m", "mo_loop", "convert", "tiny.onnx", "-o", "tiny.xml")
    assert done.returncode == 0, done.stdout + done.stderr
    layers = {layer.get("type") for layer in ET.parse(tmp_path / "tiny.xml").getroot().iterfind("layers/layer")}
    assert layers & {"Loop", "TensorIterator"}
    assert (tmp_path / "tiny.bin").is_file()
