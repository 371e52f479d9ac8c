"""The public names of mo_loop and mo_loop.transforms: complete, loaded on first use, and known to type checkers."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import mo_loop
from mo_loop import transforms

PACKAGES = ("mo_loop", "mo_loop.transforms")


def typed_names(package: str) -> dict[str, str]:
    """Name -> module of the imports that only type checkers read."""
    file = importlib.import_module(package).__file__
    assert file is not None
    found = {}
    for node in ast.parse(Path(file).read_text("utf-8")).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for statement in node.body:
                assert isinstance(statement, ast.ImportFrom)
                found |= {each.asname or each.name: statement.module or "" for each in statement.names}
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_defined_in_the_module_that_type_checkers_read(package: str) -> None:
    found = importlib.import_module(package)
    typed = typed_names(package)
    assert set(found.__all__) - {"__version__"} == set(typed)
    for name, module in typed.items():
        assert getattr(found, name) is getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("package", PACKAGES)
def test_dir_is_complete_before_anything_is_loaded(package: str) -> None:
    program = f"import {package}, json; print(json.dumps([dir({package}), {package}.__all__]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    listed, public = ast.literal_eval(done.stdout)
    assert set(public) <= set(listed) and listed == sorted(listed)


def test_importing_the_transformation_library_loads_none_of_its_modules() -> None:
    program = (
        "import mo_loop.transforms, sys\n"
        "print([m for m in sys.modules if m.startswith(('mo_loop.transforms.', 'numpy'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_the_names_of_openvino_are_at_the_top_of_the_transformation_library() -> None:
    names = "FunctionPass MatcherPass GraphRewrite BackwardGraphRewrite Manager PassConfig any_input wrap_type"
    assert {*names.split(), "ConstantFolding", "VisualizeTree"} <= set(transforms.__all__)


@pytest.mark.parametrize("package", [mo_loop, transforms], ids=PACKAGES)
def test_an_unknown_name_is_an_attribute_error_with_both_names(package: object) -> None:
    with pytest.raises(AttributeError, match=r"module 'mo_loop(\.transforms)?' has no attribute 'no_such_name'"):
        _ = package.no_such_name  # type: ignore[attr-defined]
