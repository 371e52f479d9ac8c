"""The licences of what is bundled into the page: mo_loop/look/page/static/LICENSES.txt."""

import json
import re

import pytest

from mo_loop.look.page import STATIC
from tests import ROOT

LICENCES = (STATIC / "LICENSES.txt").read_text("utf-8")
LOCK = json.loads((ROOT / "tools/page/package-lock.json").read_text("utf-8"))["packages"]
PACKAGES = json.loads((ROOT / "tools/page/package.json").read_text("utf-8"))

BUNDLED = {
    name.removeprefix("node_modules/"): package["version"]
    for name, package in LOCK.items()
    if name and not package.get("dev")
}
"""The packages of the lock file that are part of the page; the others build it."""


def test_every_bundled_package_is_named_with_its_version() -> None:
    assert PACKAGES["dependencies"].keys() <= BUNDLED.keys()
    missing = [f"{name} {version}" for name, version in BUNDLED.items() if f"{name} {version}" not in LICENCES]
    assert not missing


def test_every_version_is_pinned() -> None:
    pinned = re.compile(r"\d+\.\d+\.\d+")
    assert all(map(pinned.fullmatch, {**PACKAGES["dependencies"], **PACKAGES["devDependencies"]}.values()))
    assert all("integrity" in package for name, package in LOCK.items() if name)


@pytest.mark.parametrize("library", ["@viz-js/viz", "Graphviz", "Expat", "Emscripten", "musl", "dlmalloc", "libc++"])
def test_every_library_has_its_licence(library: str) -> None:
    """A title between two lines, and a text of its own."""
    parts = re.split(r"^=+\n(.+)\n=+\n", LICENCES, flags=re.MULTILINE)
    texts = {re.split(r",| [\d(]", title)[0]: text for title, text in zip(parts[1::2], parts[2::2], strict=True)}
    assert len(texts[library]) > 100


def test_the_licence_of_graphviz_says_where_its_source_is() -> None:
    """Section 3.1 a of the Eclipse Public License asks for it where only object code is given."""
    head = LICENCES.partition("=" * 50)[0]
    assert "Its source code is available under the same licence" in head
    assert re.search(r"https://graphviz\.org/download/source/ +the archive graphviz-16\.1\.0\.tar\.gz", head)
    assert re.search(r"sha256 [0-9a-f]{64}", head)


def test_the_bundle_holds_the_version_of_graphviz_that_is_named() -> None:
    versions = set(re.findall(r"Graphviz (\d+\.\d+\.\d+)", LICENCES))
    assert len(versions) == 1
    worker = (STATIC / "worker.js").read_text("utf-8")
    assert re.search(rf"\\(?:0|x00){re.escape(versions.pop())}\\0", worker)  # a string of the WebAssembly module
