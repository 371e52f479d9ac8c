"""The structure of the repository: which package may import which, what is loaded at start, which files exist.

Imports are read from the source with `ast`, so that an import inside a function counts too.
"""

from __future__ import annotations

import ast
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import networkx
import onnx.helper
import pytest

from mo_loop import transforms
from mo_loop.transforms.function_pass import FunctionPass
from tests import ROOT

CIRCLES = (
    {"mo_loop.compare.results.report", "mo_loop.compare.results.report_formats"},
    {
        "mo_loop.graph", "mo_loop.graph.graph", "mo_loop.graph.node", "mo_loop.graph.node_copies", "mo_loop.ops.base",
        "mo_loop.ops.lengths",
    },
)
"""The only import cycles of modules. A result and its text know each other: `report.text()` loads what makes it."""

RINGS = ({"mo_loop.graph", "mo_loop.ops"},)
"""The only import cycle of folders; a module in the root of mo_loop counts as one. A node knows its graph."""

# Which packages a package never imports, at any level: nothing in them but the package itself.
ABOVE = ("mo_loop.api", "mo_loop.cli")
PRODUCTS = ("mo_loop.compare", "mo_loop.look", "mo_loop.batching")
JOINED = (*ABOVE, "mo_loop.conversion", "mo_loop.converted_model", "mo_loop.ir_origins")
OFFERS = (*JOINED, *PRODUCTS)
PASSES = "mo_loop.transforms"
ABOVE_FOUNDATION = (PASSES, "mo_loop.frontend", "mo_loop.ir", *OFFERS)
LOOKS = ("inspection", "differences", "diagnostics", "dump", "page", "viewing", "layer_map", "conversion_record")
KERNEL = (
    "graph", "ops", "errors", "text", "options", "origin", "printable", "target", "preprocessing", "conversion_limits",
    "conversion_info",
)
NEVER = {
    **{f"mo_loop.{name}": ABOVE_FOUNDATION for name in KERNEL},
    "mo_loop.frontend": (PASSES, "mo_loop.ir", *OFFERS), "mo_loop.ir": (PASSES, "mo_loop.frontend", *OFFERS),
    "mo_loop.support": (*ABOVE_FOUNDATION, "mo_loop.graph", "mo_loop.ops"),
    "mo_loop.conversion": (*ABOVE, *PRODUCTS, "mo_loop.converted_model", "mo_loop.ir_origins"),
    "mo_loop.converted_model": (*ABOVE, *PRODUCTS), "mo_loop.ir_origins": (*ABOVE, *PRODUCTS),
    "mo_loop.api": ("mo_loop.cli",),
    "mo_loop.look": (*ABOVE, "mo_loop.compare", "mo_loop.batching"),
    "mo_loop.look.records": (PASSES, *JOINED, *(f"mo_loop.look.{name}" for name in LOOKS)),
    "mo_loop.look.page": (PASSES, "mo_loop.conversion", "mo_loop.look.dump"),
    "mo_loop.look.inspection": (PASSES, "mo_loop.conversion"),
    "mo_loop.look.differences": (PASSES, *JOINED),
    "mo_loop.look.conversion_record": ("mo_loop.conversion",),
    "mo_loop.compare": (*ABOVE, "mo_loop.batching"),
    "mo_loop.batching": (*ABOVE, "mo_loop.compare", "mo_loop.look", "mo_loop.batching.cluster"),
    "mo_loop.batching.cluster": ("mo_loop.cli", "mo_loop.frontend", "mo_loop.ir", "mo_loop.api", "mo_loop.conversion"),
    "mo_loop.batching.storage": (PASSES, "mo_loop.ir", "mo_loop.batching", *OFFERS),
}

VERIFY_READS = ("mo_loop.look.dump", "mo_loop.look.diagnostics.ir_checks")
"""All that one product imports of another: verify writes a dump, and knows which operations lose a NaN."""

# The modules of mo_loop that the transformation library may import.
TRANSFORMS_MAY_IMPORT = {
    "mo_loop.conversion_limits", "mo_loop.errors", "mo_loop.graph", "mo_loop.ops", "mo_loop.origin",
    "mo_loop.preprocessing", "mo_loop.printable", "mo_loop.support", "mo_loop.target",
    "mo_loop.text", "mo_loop.transforms",
}

# Which files of the packages may import a third-party library (a name ending in / is a folder).
LIBRARY_HOMES = {
    "networkx": ("mo_loop/graph/",), "lxml": ("mo_loop/ir/reader/",), "click": ("mo_loop/cli/",),
    "rich": ("mo_loop/cli/",), "dask": ("mo_loop/batching/cluster/",),
    "distributed": ("mo_loop/batching/cluster/",), "fsspec": ("mo_loop/batching/storage/",),
    "openvino": ("mo_loop/compare/",), "onnxruntime": ("mo_loop/compare/",),
}
# `to_openvino` hands the caller an openvino.Model: it alone imports openvino outside verify, and only when called.
LAZY_HOMES = {"openvino": {("mo_loop/converted_model.py", "to_openvino")}}

TOP_LEVEL = {
    "CHANGELOG.md", "CONTRIBUTING.md", "Containerfile", "LICENSE", "Makefile", "README.md", "SECURITY.md", "docs",
    "mkdocs.yml", "mo_loop", "pyproject.toml", "templates", "tests", "tools", "transforms",
}

# A path of one machine: a system folder at the start of a path, and a name below it.
MACHINE_PATH = re.compile(r"(?:file://|(?<![\w.~}>)/-]))/(?:home|root|tmp|work|Users)/[A-Za-z]")
BUILT = frozenset({"mo_loop/look/page/static/worker.js"})
"""Built files with libraries of others in them: Emscripten's file system in memory has a /home of its own."""


@dataclass(frozen=True)
class Import:
    """One imported module, with the file and line of the import."""

    file: str
    line: int
    target: str
    function: str | None
    typing_only: bool

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.target}"


class ImportReader(ast.NodeVisitor):
    """Collects the imports of one file, with their functions."""

    def __init__(self, root: Path, path: Path, text: str) -> None:
        self.root = root
        self.calls_import = "import_module" in text or "__import__" in text
        self.file = path.relative_to(root).as_posix()
        parts = path.relative_to(root).with_suffix("").parts
        self.package = ".".join(parts[:-1])  # of a module and of an __init__ alike
        self.functions: list[str] = []
        self.typing_only = False
        self.found: list[Import] = []

    def add(self, node: ast.AST, target: str) -> None:
        function = self.functions[-1] if self.functions else None
        self.found.append(Import(self.file, getattr(node, "lineno", 0), target, function, self.typing_only))

    def visit(self, node: ast.AST) -> None:
        """Most of a file are expressions, in which nothing but a call imports."""
        if self.calls_import or not isinstance(node, ast.expr):
            super().visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.add(node, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = node.module or ""
        if node.level:
            above = self.package.split(".")[: len(self.package.split(".")) - node.level + 1]
            base = ".".join([*above, base] if base else above)
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            self.add(node, inner if is_module(self.root, inner) else base)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        first = node.args[0] if node.args else None
        if called in ("import_module", "__import__") and isinstance(first, ast.Constant):
            self.add(node, str(first.value))
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if not ast.unparse(node.test).endswith("TYPE_CHECKING"):
            self.generic_visit(node)
            return
        before, self.typing_only = self.typing_only, True
        for statement in node.body:
            self.visit(statement)
        self.typing_only = before
        for statement in node.orelse:
            self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.functions.append(node.name)
        self.generic_visit(node)
        self.functions.pop()

    visit_AsyncFunctionDef = visit_FunctionDef


@cache
def is_module(root: Path, name: str) -> bool:
    """Whether a dotted name is a module or package of this repository."""
    path = place_of(name, root)
    return path.is_dir() or path.with_suffix(".py").is_file()


def place_of(module: str, root: Path = ROOT) -> Path:
    """The folder of a package, or the file of a module without its suffix."""
    place = module.replace(".", "/")
    return root / (place.removeprefix("mo_loop/") if within(module, PASSES) else place)


@cache
def imports(root: Path = ROOT) -> tuple[Import, ...]:
    """Every import of mo_loop, transforms/ included."""
    found: list[Import] = []
    for package in ("mo_loop", "transforms"):
        for path in sorted((root / package).rglob("*.py")):
            text = path.read_text("utf-8")
            reader = ImportReader(root, path, text)
            reader.visit(ast.parse(text, filename=str(path)))
            found += reader.found
    return tuple(found)


def within(module: str, package: str) -> bool:
    """`mo_loop.ops.control` is within `mo_loop.ops`."""
    return module == package or module.startswith(f"{package}.")


@cache
def module_of_file(file: str) -> str:
    """`mo_loop/ops/__init__.py` -> `mo_loop.ops`, `transforms/config.py` -> `mo_loop.transforms.config`."""
    module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return f"mo_loop.{module}" if within(module, "transforms") else module


@cache
def folder_of(module: str) -> str:
    """The folder below mo_loop in which a module is, counted whole; the modules in the root are their own."""
    return ".".join(module.split(".")[:2])


def folder_rings() -> list[set[str]]:
    """Groups of folders that import each other."""
    graph: networkx.DiGraph[str] = networkx.DiGraph()
    for found in imports():
        if within(found.target, "mo_loop"):
            source, target = folder_of(module_of_file(found.file)), folder_of(found.target)
            if source != target:
                graph.add_edge(source, target)
    return [set(ring) for ring in networkx.strongly_connected_components(graph) if len(ring) > 1]


def import_circles() -> list[set[str]]:
    """Groups of modules that import each other, at any level."""
    graph: networkx.DiGraph[str] = networkx.DiGraph()
    for found in imports():
        graph.add_edge(module_of_file(found.file), found.target)
    return [set(circle) for circle in networkx.strongly_connected_components(graph) if len(circle) > 1]


def complain(broken: Iterator[Import] | list[Import], rule: str) -> None:
    """Fail and list all offenders."""
    lines = sorted(set(map(str, broken)))
    assert not lines, f"{rule}:\n  " + "\n  ".join(lines)


def allowed_library(found: Import, library: str) -> bool:
    """Whether this file may import that library."""
    for home in LIBRARY_HOMES[library]:
        if found.file == home or (home.endswith("/") and found.file.startswith(home)):
            return True
    return (found.file, found.function) in LAZY_HOMES.get(library, set())


class TestImportDirection:
    def test_there_is_no_import_circle_but_the_declared_ones(self) -> None:
        """A node refers to its graph, and a graph makes a Constant from a scalar; imports for typing count too."""
        circles = [circle for circle in import_circles() if circle not in CIRCLES]
        assert not circles, "\n".join(", ".join(sorted(circle)) for circle in circles)

    def test_folders_import_each_other_in_the_declared_rings_alone(self) -> None:
        assert sorted(map(sorted, folder_rings())) == sorted(map(sorted, RINGS))

    @pytest.mark.parametrize("package", sorted(NEVER))
    def test_packages_do_not_import_those_above_them(self, package: str) -> None:
        broken = [
            found
            for found in imports()
            if within(module_of_file(found.file), package)
            and not found.typing_only
            and not within(found.target, package)
            and any(within(found.target, other) for other in NEVER[package])
        ]
        complain(broken, f"{package} never imports {', '.join(NEVER[package])}")

    def test_products_do_not_import_each_other(self) -> None:
        """Folders counted whole; what compares a batch is given to it."""
        pairs = [(found, folder_of(module_of_file(found.file)), folder_of(found.target)) for found in imports()]
        broken = [
            found for found, source, target in pairs
            if source in PRODUCTS and target in PRODUCTS and source != target and not found.typing_only
            and not (source == "mo_loop.compare" and any(within(found.target, each) for each in VERIFY_READS))
        ]
        complain(broken, "look, compare and batching import conversion and what is below it, not each other")

    def test_transforms_know_only_the_graph_and_its_operations(self) -> None:
        broken = [
            found
            for found in imports()
            if within(module_of_file(found.file), PASSES)
            and within(found.target, "mo_loop")
            and not any(within(found.target, each) for each in TRANSFORMS_MAY_IMPORT)
        ]
        complain(broken, f"mo_loop.transforms imports of mo_loop only {', '.join(sorted(TRANSFORMS_MAY_IMPORT))}")

    def test_nothing_in_transforms_knows_onnx(self) -> None:
        broken = [f for f in imports() if within(module_of_file(f.file), PASSES) and within(f.target, "onnx")]
        complain(broken, "mo_loop.transforms never imports onnx")

    @pytest.mark.parametrize("library", sorted(LIBRARY_HOMES))
    def test_a_library_is_imported_only_in_its_home(self, library: str) -> None:
        broken = [
            found
            for found in imports()
            if found.target.split(".")[0] == library and not found.typing_only and not allowed_library(found, library)
        ]
        complain(broken, f"{library} is imported only in {', '.join(LIBRARY_HOMES[library])}")

    def test_the_packages_do_not_import_tests_or_tools(self) -> None:
        complain([f for f in imports() if f.target.split(".")[0] in ("tests", "tools")], "packages stand alone")


COMPOSITIONS = {
    "transforms/__init__.py": "the public names",
    "transforms/pipelines.py": "the passes of a conversion in order",
    "transforms/runtime/local/__init__.py": "a GraphRewrite: its matchers run in one traversal",
}
"""The modules of transforms that may import passes because they consist of passes, with the reason."""

BASES = {"FunctionPass", "MatcherPass", "GraphRewrite", "BackwardGraphRewrite", "Manager", "Validate"}
"""The classes of the engine that passes derive from; not passes themselves."""


def pass_modules() -> set[str]:
    """The modules that define a pass: a subclass of FunctionPass that is neither in BASES nor a base of others."""
    found: dict[type, str] = {}
    for info in pkgutil.walk_packages(transforms.__path__, "mo_loop.transforms."):
        for value in vars(importlib.import_module(info.name)).values():
            if isinstance(value, type) and issubclass(value, FunctionPass) and value.__name__ not in BASES:
                found[value] = value.__module__
    bases = {base for each in found for base in each.__mro__[1:]}
    return {module for each, module in found.items() if each not in bases and module.startswith("mo_loop.transforms.")}


class TestPasses:
    def test_no_pass_imports_a_pass(self) -> None:
        """Not through a helper either: only compositions import modules that define passes."""
        passes = pass_modules()
        assert {"mo_loop.transforms.common.simplification", "mo_loop.transforms.front.loop_to_ti"} < passes
        assert not passes & {"mo_loop.transforms.runtime.local.rule", "mo_loop.transforms.front.sequence_lowering.walk"}
        broken = [
            found for found in imports()
            if found.file.startswith("transforms/") and found.target in passes and found.file not in COMPOSITIONS
        ]
        complain(broken, "only COMPOSITIONS import passes; move what two passes share to a module without a pass")

    @pytest.mark.parametrize("file", COMPOSITIONS)
    def test_each_composition_imports_passes(self, file: str) -> None:
        assert pass_modules() & {found.target for found in imports() if found.file == file}


SHARED_NAMES = {
    "ops": "the operations, the translators to them, and the command that lists the translators",
    "front": "the operations that the file cannot hold, and the passes that replace them",
    "pairing": "which nodes of two graphs, and which inputs and outputs of one, belong together",
    "report": "what is reported of one conversion, and of a batch of conversions",
    "runtime": "the passes that avoid errors of the runtime, and the module that runs models on it",
    "vocabulary": "what nearly every translator imports, and nearly every pass",
}
"""Names that several modules or packages of mo_loop and transforms have, and the reason.

A family of operations in mo_loop/ops and its translators in mo_loop/frontend/ops share a name as well, and so do a
package and its main module (`graph/graph.py`).
"""


class TestNames:
    def modules(self) -> dict[str, list[str]]:
        """Name -> the modules and packages of that name, without the two packages themselves."""
        found: dict[str, list[str]] = {}
        for package in ("mo_loop", "transforms"):
            for path in (ROOT / package).rglob("*.py"):
                place = path.parent if path.name == "__init__.py" else path
                if place != ROOT / package:
                    found.setdefault(place.stem, []).append(place.relative_to(ROOT).with_suffix("").as_posix())
        return found

    def test_one_name_means_one_thing(self) -> None:
        families = ("mo_loop/ops/", "mo_loop/frontend/ops/")
        shared = {
            name: places for name, places in self.modules().items()
            if len(places) > 1 and not all(place.startswith(families) for place in places)
            and set(places) != {min(places), f"{min(places)}/{name}"}
        }
        assert {name for name in shared if name not in SHARED_NAMES} == set(), shared

    def test_the_exceptions_are_needed(self) -> None:
        assert [name for name in SHARED_NAMES if len(self.modules().get(name, ())) < 2] == []


SHARED_CLASSES = {"Range": "an operation, and the range of an attribute in an annotation"}
"""Names of public classes of mo_loop and transforms with several meanings, and what they are."""


class TestClassNames:
    def test_one_class_name_has_one_meaning(self) -> None:
        places: dict[str, list[str]] = {}
        for package in ("mo_loop", "transforms"):
            for path in sorted((ROOT / package).rglob("*.py")):
                for name in re.findall(r"^class ([A-Za-z]\w*)", path.read_text("utf-8"), re.MULTILINE):
                    places.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
        shared = {name: where for name, where in places.items() if len(where) > 1}
        assert shared.keys() == SHARED_CLASSES.keys(), shared


class TestImportReader:
    """The reader of imports is tested on a small tree: a rule that sees no import would always pass."""

    @pytest.fixture
    def tree(self, tmp_path: Path) -> Path:
        source = """
            import numpy as np
            from ..graph import Graph
            from .. import ops, convert_model
            from . import unused_ports
            from typing import TYPE_CHECKING
            if TYPE_CHECKING:
                import lxml.etree
            def later():
                from mo_loop.cli import main
                __import__("networkx")
        """
        lines = source.strip("\n").splitlines()
        body = "\n".join(line.removeprefix(" " * 12) for line in lines)
        for name in (
            "mo_loop/graph/graph.py", "mo_loop/ops/__init__.py", "mo_loop/cli/__init__.py",
            "mo_loop/ir/unused_ports.py",
        ):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("")
        (tmp_path / "mo_loop/ir/xml.py").write_text(body)
        return tmp_path

    def test_it_sees_every_kind_of_import(self, tree: Path) -> None:
        seen = {(found.target, found.function, found.typing_only) for found in imports(tree)}
        assert seen == {
            ("numpy", None, False), ("mo_loop.graph", None, False), ("mo_loop.ops", None, False),
            ("mo_loop", None, False), ("mo_loop.ir.unused_ports", None, False), ("typing", None, False),
            ("lxml.etree", None, True), ("mo_loop.cli", "later", False), ("networkx", "later", False),
        }

    def test_packages(self) -> None:
        assert module_of_file("mo_loop/ops/__init__.py") == "mo_loop.ops"
        assert folder_of("mo_loop.ops.control") == "mo_loop.ops" and folder_of("mo_loop.api") == "mo_loop.api"
        assert within("mo_loop.ops", "mo_loop.ops") and not within("mo_loop.opset", "mo_loop.ops")


URLS = ("fsspec", "s3fs", "dask", "distributed")
HEAVY = ("onnx", "numpy", "networkx", "lxml", "rich", "openvino", "onnxruntime", *URLS)


def loaded_by(*arguments: str) -> set[str]:
    """Top-level names of all modules that a fresh interpreter imports for these arguments; it must succeed."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV_"))}
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, env=environment,
        timeout=120, stdin=subprocess.DEVNULL,
    )
    lines = done.stderr.splitlines()
    failure = "\n".join(line for line in lines if not line.startswith("import time:"))
    if done.returncode:
        pytest.fail(f"{' '.join(arguments)}: exit code {done.returncode}\n{failure}", pytrace=False)
    return {line.rsplit("|", 1)[1].strip().split(".")[0] for line in lines if line.startswith("import time:")}


class TestStartUp:
    @pytest.mark.parametrize(
        "arguments", [("-m", "mo_loop", "--help"), ("-m", "mo_loop", "--version"), ("-c", "import mo_loop")],
        ids=["help", "version", "import"],
    )
    def test_nothing_heavy_is_loaded(self, arguments: tuple[str, ...]) -> None:
        loaded = loaded_by(*arguments)
        assert "mo_loop" in loaded and not loaded & set(HEAVY)

    def test_the_library_loads_no_command_line(self) -> None:
        assert not loaded_by("-c", "import mo_loop; mo_loop.convert_model") & {"click", "rich", "lxml", "openvino"}

    @pytest.fixture
    def model(self, tmp_path: Path) -> Path:
        nodes = [onnx.helper.make_node("Relu", ["x"], ["y"])]
        ends = [onnx.helper.make_tensor_value_info(name, 1, [2]) for name in "xy"]
        graph, opset = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:]), onnx.helper.make_opsetid("", 17)
        onnx.save(onnx.helper.make_model(graph, opset_imports=[opset]), tmp_path / "model.onnx")
        return tmp_path / "model.onnx"

    def test_a_conversion_loads_no_other_library(self, model: Path) -> None:
        """The graph is made for networkx on request, whose import takes a third of a small conversion; that of onnx,
        of which a conversion needs the messages alone, takes a fourth."""
        loaded = loaded_by("-m", "mo_loop", "convert", str(model), "-o", str(model.with_suffix(".xml")))
        others = {"onnx", "email", "networkx", "lxml", "rich", "openvino", "onnxruntime", *URLS}
        assert "google" in loaded and not loaded & others

    def test_the_parent_of_a_batch_loads_nothing_heavy(self, model: Path) -> None:
        """The workers start after it has read its options and before they import what they need."""
        out = model.parent / "out"
        assert not loaded_by("-m", "mo_loop", "batch", str(model), "-o", str(out)) & set(HEAVY)
        assert (out / "model.xml").is_file()

    def test_the_file_layer_loads_fsspec_with_the_first_url(self) -> None:
        folder = ROOT / "mo_loop/batching/storage"
        modules = sorted(f"mo_loop.batching.storage.{path.stem}" for path in folder.glob("[a-z]*.py"))
        assert len(modules) > 4
        assert not loaded_by("-c", f"import {', '.join(modules)}, mo_loop.batching.url_state") & set(HEAVY)
        assert not loaded_by("-c", "import mo_loop.batching.job") & set(URLS)

    def test_the_check_sees_what_is_loaded(self) -> None:
        assert {"numpy", "json"} <= loaded_by("-c", "import numpy, json")


@cache
def tracked() -> tuple[Path, ...]:
    """The files that git lists; skips outside a checkout, where there is nothing to compare with."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    done = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True)
    files = tuple(ROOT / name for name in done.stdout.split("\0") if name)
    if done.returncode or not files:
        pytest.skip("git lists no files here")
    return files


class TestRepository:
    def test_the_top_level_holds_only_what_belongs_there(self) -> None:
        entries = {path.relative_to(ROOT).parts[0] for path in tracked()}
        assert not {name for name in entries - TOP_LEVEL if not name.startswith(".")}

    def test_no_file_names_a_path_of_some_machine(self) -> None:
        offenders = []
        for path in tracked():
            if not path.is_file() or b"\0" in (content := path.read_bytes())[:8192]:
                continue
            if path.relative_to(ROOT).as_posix() in BUILT:
                continue
            for number, line in enumerate(content.decode("utf-8", errors="replace").splitlines(), 1):
                if MACHINE_PATH.search(line):
                    offenders.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}")
        assert not offenders, "\n".join(offenders)

    @pytest.mark.parametrize(("text", "found"), [
        ("see /" + "home/someone/model.onnx", True), ('open("/' + 'tmp/x")', True),
        ("(/" + "Users/me)", True), ("file:///" + "work/x", True), ("docs/home/index", False),
        ("a/tmp/b", False), ("https://example.org/home/page", False), ("/(?:home|tmp)/", False),
    ])
    def test_what_counts_as_such_a_path(self, text: str, found: bool) -> None:
        assert bool(MACHINE_PATH.search(text)) is found

    def test_both_packages_are_marked_as_typed(self) -> None:
        assert [name for name in ("mo_loop", "transforms") if not (ROOT / name / "py.typed").is_file()] == []


LONG = {
    "mo_loop/look/diagnostics/codes.py": "the table of all codes",
    "mo_loop/graph/graph.py": "a graph: its methods are the only writers of nodes and edges",
    "mo_loop/ops/base.py": "an operation makes Constants of its operands, and a Constant is an operation",
}
"""Files of more than 400 lines, with the reason."""


def test_files_are_short() -> None:
    packages = [path.relative_to(ROOT) for path in tracked() if path.suffix == ".py"]
    files = [path.as_posix() for path in packages if path.parts[0] in ("mo_loop", "transforms")]
    assert {file for file in files if len((ROOT / file).read_text("utf-8").splitlines()) > 400} == LONG.keys()


def test_cases_next_to_a_module_of_tests_are_read() -> None:
    """A module that does not call `read_cases` would leave out the tests of its text."""
    texts = [path for path in (ROOT / "tests").rglob("test_*.txt") if "\n# case " in path.read_text("utf-8")]
    unread = [path for path in texts if "read_cases(globals())" not in path.with_suffix(".py").read_text("utf-8")]
    assert texts and not unread
