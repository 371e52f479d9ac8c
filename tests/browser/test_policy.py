"""Actions that the page's policy forbids do not happen in the browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mo_loop.look.page import Document, page
from tests.browser.browsing import Shown

PLANTS = {
    "script": "<script>document.title = 'changed'</script>",
    "handler": "<img src=x onerror=\"document.title = 'changed'\">",
    "script of another file": '<script src="other.js"></script>',
    "frame": '<iframe src="other.js"></iframe>',
    "style": "<style>body { display: none }</style>",
    "style of an element": '<p style="position: fixed">x</p>',
    "base": '<base href="https://example.org/">',
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A page of an empty graph."""
    path = tmp_path / "index.html"
    path.write_text(page(Document("model.onnx").as_json()), "utf-8")
    return path


def test_the_page_runs_under_its_policy(show: Callable[..., Shown], file: Path) -> None:
    shown = show(file, idle=False)
    shown.page.get_by_text("model.onnx").first.wait_for()


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_markup_that_somebody_adds_does_nothing(show: Callable[..., Shown], file: Path, plant: str) -> None:
    (file.parent / "other.js").write_text("document.title = 'changed'", "utf-8")
    text = file.read_text("utf-8")
    file.write_text(text.replace("</noscript>", f"</noscript>{plant}"), "utf-8")
    shown = show(file, idle=False)
    shown.page.get_by_text("model.onnx").first.wait_for()
    assert shown.page.title() == "model.onnx - mo_loop"
    violations = shown.page.evaluate("window.seen.violations.splice(0)")
    assert violations
    shown.messages = [each for each in shown.messages if "Content Security Policy" not in each]
    shown.requests = [each for each in shown.requests if each.rpartition("/")[2] not in ("x", "other.js")]


def test_a_changed_program_does_not_run(show: Callable[..., Shown], file: Path) -> None:
    text = file.read_text("utf-8")
    head, tail = text.rsplit("<script>", 1)
    file.write_text(f"{head}<script>document.title = 'changed';{tail}", "utf-8")
    shown = show(file, idle=False)
    shown.page.wait_for_load_state()
    assert shown.page.title() == "model.onnx - mo_loop"
    assert shown.page.locator("body").inner_text().strip() == ""
    assert len(shown.page.evaluate("window.seen.violations.splice(0)")) == 1
    shown.messages.clear()
