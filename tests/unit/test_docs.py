"""Checks of the files, names and pages of the documentation; tests/cli/test_docs_examples.py runs its examples."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
import yaml

from mo_loop.extensions import GROUP
from mo_loop.transforms.manager import Manager
from mo_loop.transforms.pipelines import PLACES, default_pipeline
from mo_loop.transforms.selection import Placed, arranged
from tests import ROOT
from tests.unit.test_structure import CIRCLES, LIBRARY_HOMES, NEVER, TRANSFORMS_MAY_IMPORT, is_module

PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
]
PACKAGES = ("mo_loop", "transforms")
FILE_NAME = re.compile(r"(?<![\w/.])(?:mo_loop|transforms|docs|tests|tools)/[\w/-]*[\w.]*\w(?![\w<-])")


def strings(content: Any) -> Iterator[str]:
    """All strings of a document."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict | list):
        for each in content.values() if isinstance(content, dict) else content:
            yield from strings(each)


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
        rules = self.text.partition("## Import rules")[2].partition("## ")[0]
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
    assert sorted(strings(nav)) == sorted(
        {*pages, "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "extension_example.md"}
    )


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


def test_the_site_has_the_example_as_a_page_and_weighs_lists_less() -> None:
    """A link to the file of Python was a 404, and the search found a code before the page about it."""
    sys.path.insert(0, str(ROOT))
    from types import SimpleNamespace

    from tools.site import BOOSTS, on_page_markdown

    assert all((ROOT / name).exists() or (ROOT / "docs" / name).exists() for name in BOOSTS)
    page = SimpleNamespace(file=SimpleNamespace(src_uri="codes.md"), meta={})
    files = SimpleNamespace(get_file_from_path=lambda path: path)
    shown = on_page_markdown("[it](extension_example.py), [all](passes.md#files)", page, None, files)
    assert shown == "[it](extension_example.md), [all](passes.md#files)"
    assert page.meta["search"] == {"boost": BOOSTS["codes.md"]}
