"""The wheel holds one package and nothing else, and converts a model from outside the checkout."""

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
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
}"""


def pip(*arguments: str, cwd: Path) -> None:
    """Run pip quietly; on failure show its output."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def isolation() -> list[str]:
    """With the build backend installed (group `dev`) pip downloads nothing."""
    installed = all(map(importlib.util.find_spec, ("hatchling", "hatch_fancy_pypi_readme")))
    return ["--no-build-isolation"] if installed else []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A wheel of this checkout."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("this environment has no pip")
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", str(ROOT), "--no-deps", *isolation(), "--wheel-dir", str(folder), cwd=folder)
    (built,) = folder.glob("*.whl")
    yield built


def package_files() -> set[str]:
    """The files of the package in the checkout, at their places in a wheel, without caches."""
    return {
        (place / path.relative_to(ROOT / folder)).as_posix()
        for folder, place in (("mo_loop", Path("mo_loop")), ("transforms", Path("mo_loop/transforms")))
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    metadata = {name for name in names if name.split("/")[0].endswith(".dist-info")}
    assert names - metadata == package_files()
    assert {"mo_loop/py.typed", "mo_loop/transforms/py.typed", "mo_loop/transforms/front/loop_to_ti.py"} <= names


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
    assert re.findall(r"^Provides-Extra: (.*)", read["METADATA"], re.MULTILINE) == ["cluster", "text", "verify"]


def test_the_wheel_is_licensed_and_described_without_the_repository(wheel: Path) -> None:
    """The package index shows the long description on its own: relative links would not work."""
    with zipfile.ZipFile(wheel) as archive:
        read = {Path(name).name: archive.read(name).decode() for name in archive.namelist() if ".dist-info/" in name}
    assert read["LICENSE"] == (ROOT / "LICENSE").read_text("utf-8")
    assert read["LICENSES.txt"] == (ROOT / "mo_loop/look/page/static/LICENSES.txt").read_text("utf-8")
    headers, _, description = read["METADATA"].partition("\n\n")
    assert {
        "License-Expression: Apache-2.0 AND EPL-2.0 AND MIT", "License-File: LICENSE",
        "License-File: mo_loop/look/page/static/LICENSES.txt",
    } <= {*headers.splitlines()}
    versions = re.findall(r"^Classifier: Programming Language :: Python :: 3\.(\d+)$", headers, re.MULTILINE)
    assert versions == ["11", "12", "13", "14"]
    page = (ROOT / "README.md").read_text("utf-8")
    assert re.findall(r"\]\((?!https?:)", page) and not re.findall(r"\]\((?!https?:)", description)
    assert len(description) > 0.85 * len(page) and "<picture" not in description
    assert "docs/models.md has all models" in description


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist of this checkout, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    program = f"from hatchling.build import build_sdist; build_sdist({os.fspath(folder)!r})"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, timeout=300)
    (packed,) = folder.glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    return folder / packed.name.removesuffix(".tar.gz")


class Environment:
    """An environment with the libraries of this one, and without the mo_loop that is installed in it."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, symlinks=os.name != "nt")
        self.python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        paths = sysconfig.get_paths("venv", {"base": os.fspath(folder), "platbase": os.fspath(folder)})
        libraries = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
        Path(paths["purelib"], "libraries.pth").write_text("\n".join(libraries), "utf-8")  # their .pth are not read

    def install(self, *what: str) -> None:
        pip("--python", os.fspath(self.python), "install", "--no-compile", *what, cwd=self.python.parent)

    def run(self, *arguments: str, cwd: Path) -> str:
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV_"))}
        done = subprocess.run(
            [os.fspath(self.python), *arguments],
            cwd=cwd, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300,
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        return done.stdout


ORIGINS = """
import mo_loop, mo_loop.transforms.front, transforms.images
print(mo_loop.__file__, mo_loop.transforms.__file__, transforms.images.__file__, sep="\\n")
try:
    import tools, tests
except ModuleNotFoundError:
    print("no other package")
"""


@pytest.mark.parametrize("form", ["wheel", "sdist", "editable"])
def test_what_is_installed_converts_beside_a_folder_transforms(
    form: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Projects that train models have a folder ./transforms: neither package hides the other."""
    environment = Environment(tmp_path / "environment")
    what = ("--editable", os.fspath(ROOT)) if form == "editable" else (os.fspath(request.getfixturevalue(form)),)
    environment.install(*isolation(), *what)
    project = tmp_path / "project"
    (project / "transforms").mkdir(parents=True)
    (project / "transforms" / "images.py").write_text("def read(path): ...\n", "utf-8")
    onnx.save(onnx.parser.parse_model(TINY), project / "tiny.onnx")
    ours, passes, theirs, *others = environment.run("-c", ORIGINS, cwd=project).splitlines()
    home = ROOT if form == "editable" else environment.python.parents[1]
    assert [Path(each).is_relative_to(home) for each in (ours, passes)] == [True, True]
    assert Path(theirs) == project / "transforms" / "images.py" and others == ["no other package"]
    environment.run("-m", "mo_loop", "convert", "tiny.onnx", "-o", "tiny.xml", "--static", cwd=project)
    layers = {layer.get("type") for layer in ET.parse(project / "tiny.xml").getroot().iterfind("layers/layer")}
    assert layers & {"Loop", "TensorIterator"} and (project / "tiny.bin").is_file()


def test_an_editable_package_needs_nothing_that_its_project_does_not_name(tmp_path: Path) -> None:
    """uv installs the dependencies of pyproject.toml, not those that a backend adds to the metadata of a wheel."""
    program = f"from hatchling.build import build_editable; print(build_editable({os.fspath(tmp_path)!r}))"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, timeout=300)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as archive:
        read = {Path(name).name: archive.read(name).decode() for name in archive.namelist()}
    assert re.findall(r"^Requires-Dist: editables", read["METADATA"], re.MULTILINE) == []
    (folder,) = read["_mo_loop.pth"].splitlines()
    assert [path.name for path in Path(folder).iterdir()] == ["mo_loop"]
    assert Path(folder, "mo_loop").samefile(ROOT / "mo_loop")


def test_the_tests_run_in_an_unpacked_sdist(sdist: Path) -> None:
    """An archive of sources has no links: the folder transforms/ is found next to mo_loop."""
    assert (sdist / "transforms" / "config.py").is_file() and not (sdist / "mo_loop" / "transforms").exists()
    environment = {**os.environ, "PYTHONPATH": os.fspath(sdist)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/api/test_public_names.py"]
    done = subprocess.run(command, cwd=sdist, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
