"""Names of a model are texts wherever the page shows them: nothing in them runs, loads or becomes markup."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from mo_loop.look.page import Document, page
from tests.browser.browsing import Shown
from tests.browser.made_pages import MadePages
from tests.browser.shown_models import HOSTILE

ELEMENTS = """() => ({
  tags: [...new Set([...document.querySelectorAll("*")].map((each) => each.localName))],
  handlers: [...document.querySelectorAll("*")].flatMap((each) => each.getAttributeNames())
    .filter((name) => name.startsWith("on")),
  links: [...document.querySelectorAll("[href], [src], [action]")]
    .map((each) => each.getAttribute("href") ?? each.getAttribute("src") ?? "")
    .filter((link) => !/^(#|data:|blob:)/.test(link)),
})"""

FORBIDDEN = {"img", "iframe", "object", "embed", "b", "i", "link", "base", "foreignobject", "form", "use", "image"}


def nothing_but_texts(shown: Shown) -> None:
    """The page has no element, handler or link that a name could have made."""
    found = shown.page.evaluate(ELEMENTS)
    assert not FORBIDDEN & set(found["tags"])
    assert found["handlers"] == [] and found["links"] == []


def visible(text: str) -> str:
    """The text as it is shown: characters that control a terminal, a line or a direction are signs."""
    signs = re.sub(r"[\x00-\x1f]", lambda found: chr(0x2400 + ord(found.group())), text)
    return re.sub(r"[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]", "·", signs)


def through_all_steps(shown: Shown) -> int:
    """Go through the steps with the keyboard; the number of those that changed the graph."""
    shown.page.keyboard.press("Home")
    shown.idle()
    nothing_but_texts(shown)
    count = 0
    while True:
        before = shown.page.url
        shown.page.keyboard.press("ArrowRight")
        shown.idle()
        if shown.page.url == before:
            return count
        count += 1
        nothing_but_texts(shown)


@pytest.mark.parametrize("name", ["hostile", "unknown_operators"])
def test_no_name_becomes_more_than_a_text(show: Callable[..., Shown], pages: MadePages, name: str) -> None:
    shown = show(getattr(pages, name))
    nothing_but_texts(shown)
    steps = through_all_steps(shown)
    assert steps >= 2 if name == "hostile" else steps == 0


@pytest.mark.parametrize("name", HOSTILE)
def test_a_node_with_such_a_name_is_found_and_read(show: Callable[..., Shown], pages: MadePages, name: str) -> None:
    """Named by a link, whose number is of no node, and searched."""
    text = HOSTILE[name]
    shown = show(pages.hostile, f"#node=999999.{quote(text[:80], safe='')}")
    if name != "separators":  # an input of one line does not take them
        shown.press("Escape")
        shown.search(re.sub(r"\s+", " ", text).strip()[:60])
    details = shown.page.get_by_role("region", name="Details")
    assert visible(text[:20].split("\r")[0]) in (details.text_content() or "")
    nothing_but_texts(shown)


def test_the_saved_picture_is_a_picture_alone(show: Callable[..., Shown], pages: MadePages) -> None:
    shown = show(pages.hostile)
    root = ET.fromstring(shown.saved_picture())
    tags = {each.tag.rpartition("}")[2] for each in root.iter()}
    assert not {tag.lower() for tag in tags} & {*FORBIDDEN, "script", "a"}
    assert not [key for each in root.iter() for key in each.attrib if key.lower().startswith("on")]


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b\udc80", "\ufeffx", "\ud83d\ude00" * 40, ""])
def test_names_that_are_no_text_elsewhere(show: Callable[..., Shown], tmp_path: Path, name: str) -> None:
    """A NUL, halves of surrogate pairs, a mark of byte order, and no name at all."""
    document = Document(name)
    record = {"id": 0, "scope": "", "op": "Parameter", "opset": 1, "name": name, "inputs": [],
              "outputs": [{"type": "f32[1]", "names": [name]}], "attributes": {name or "key": name}}
    scope = {"id": "", "owner": None, "tag": "", "name": name, "parameters": [0], "results": []}
    file = tmp_path / "index.html"
    file.write_text(page({**document.as_json(), "kind": "graph", "nodes": [record], "scopes": [scope]}), "utf-8")
    shown = show(file, "#node=0")
    assert shown.details.startswith("Parameter") and "f32[1]" in shown.details
    nothing_but_texts(shown)
    ET.fromstring(shown.saved_picture())
