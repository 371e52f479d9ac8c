"""The drawing: bodies as clusters in their owners, folding, port maps with their roles, zoom, the saved picture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.browsing import Shown
from tests.browser.made_pages import MadePages

TALL = (1500, 2400)
"""A window that shows the whole graph: what is outside of it is not drawn."""


@pytest.fixture
def loaded(show: Callable[..., Shown], pages: MadePages) -> Shown:
    """The nested model as loaded."""
    return show(pages.nested, size=TALL)


@pytest.fixture
def written(show: Callable[..., Shown], pages: MadePages) -> Shown:
    """The nested model as written."""
    shown = show(pages.nested, size=TALL)
    shown.go("As written")
    return shown


def inside(inner: dict[str, Any], outer: dict[str, Any]) -> bool:
    """Whether one rectangle of the screen lies in another."""
    return (
        outer["x"] <= inner["x"] and inner["x"] + inner["width"] <= outer["x"] + outer["width"]
        and outer["y"] <= inner["y"] and inner["y"] + inner["height"] <= outer["y"] + outer["height"]
    )


def test_bodies_are_clusters_in_their_owners(loaded: Shown) -> None:
    """The Scan and its body; the outer Loop, its body, the If in it, both branches, and the Loop in one of them."""
    frames = [loaded.owner(name).locator(".frame") for name in ("Scan rows", "Loop trace", "If choose", "Loop inner")]
    scan, trace, choose, inner = (each.bounding_box() for each in frames)
    assert loaded.page.locator("g.cluster[data-kind=scope]").count() == 5
    assert inside(choose, trace) and inside(inner, choose)
    assert inside(loaded.box("Multiply", "shrink").bounding_box(), inner)
    weigh = loaded.box("Multiply", "weigh").bounding_box()
    assert inside(weigh, scan) and not inside(weigh, trace)


def test_top_down(loaded: Shown) -> None:
    """Readers are below producers."""
    order = (("Convert", "turn"), ("Add", "shift"), ("Less", "under"))
    rows = [loaded.box(*each).bounding_box()["y"] for each in order]
    assert rows == sorted(rows)


def test_the_roles_of_a_port_map(loaded: Shown) -> None:
    labels = Counter(loaded.page.locator("g.edge text.label:not(.layer)").all_text_contents())
    each = {"sliced axis=0": 1, "concatenated axis=0": 2}  # of the Scan; of the Scan and the outer Loop
    each |= {"merged": 3, "back edge": 3, "final": 3}  # the Scan and both Loops have a state each
    each |= {"current iteration": 2, "execution condition": 2}  # of the Loops
    each |= {"branched": 2, "selected": 2}  # of the If
    assert labels == each


def test_an_input_that_is_the_same_in_every_iteration(show: Callable[..., Shown], pages: MadePages) -> None:
    shown = show(pages.hostile, size=TALL)
    assert "invariant" in shown.page.locator("g.edge text.label").all_text_contents()


def test_back_edges_and_captures_have_lines_of_their_own(show: Callable[..., Shown], pages: MadePages) -> None:
    """In ONNX a body reads values of the graphs around it: edges across the border of a body."""
    shown = show(pages.nested_onnx, size=TALL)
    styles = {
        kind: shown.page.evaluate(
            """(kind) => {
              const style = getComputedStyle(document.querySelector(`[data-side] g.edge[data-kind=${kind}] .line`));
              return [style.stroke, style.strokeDasharray, style.strokeWidth].join(" ");
            }""",
            kind,
        )
        for kind in ("data", "port", "back", "capture")
    }
    assert len(set(styles.values())) == 4
    captures = shown.page.locator("svg.graph[data-side] g.edge[data-kind=capture]")
    assert captures.count() == 2
    assert all("capture" in (captures.nth(at).get_attribute("aria-label") or "") for at in range(captures.count()))


def test_ids_of_the_file_stand_at_the_ports_once_it_is_written(loaded: Shown) -> None:
    assert loaded.page.locator("text.layer").count() == 0
    loaded.go("As written")
    loaded.press("U")  # the written graph is large enough for an overview
    layers = loaded.page.locator("text.layer").all_text_contents()
    assert len(layers) > 10 and all(re.fullmatch(r"internal_layer_id \d+", each) for each in layers)


def test_a_body_is_folded_and_opened(loaded: Shown) -> None:
    shrink = loaded.box("Multiply", "shrink")
    assert shrink.count() == 1
    loaded.toggle("Loop inner")
    assert shrink.count() == 0
    folded = loaded.page.locator("g.box[data-open=false]", has_text="Loop inner")
    assert folded.get_attribute("aria-expanded") == "false"
    loaded.toggle("Loop inner")
    assert shrink.count() == 1


def test_everything_is_folded_and_opened_at_once(loaded: Shown) -> None:
    before = loaded.page.locator("g.box").count()
    loaded.page.keyboard.press("F")
    loaded.idle()
    assert loaded.page.locator("g.cluster").count() == 0
    assert loaded.page.locator("g.box").count() < before / 2
    loaded.page.keyboard.press("U")
    loaded.idle()
    assert loaded.page.locator("g.box").count() >= before


def test_zoom_pan_and_fit(loaded: Shown) -> None:
    box = loaded.box("Add", "shift")
    first = box.bounding_box()
    loaded.page.get_by_role("button", name="Zoom in").click()
    loaded.idle()
    assert box.bounding_box()["width"] > first["width"] * 1.1
    loaded.page.get_by_role("button", name="Fit", exact=True).click()
    loaded.idle()
    fitted = box.bounding_box()
    assert abs(fitted["width"] - first["width"]) < 1
    loaded.page.mouse.move(fitted["x"] - 30, fitted["y"] - 30)
    loaded.page.mouse.wheel(0, -300)
    loaded.idle()
    nearer = box.bounding_box()
    assert nearer["width"] != fitted["width"]
    background = loaded.page.locator("svg.graph[data-side]").bounding_box()
    loaded.page.mouse.move(background["x"] + 20, background["y"] + 20)
    loaded.page.mouse.down()
    loaded.page.mouse.move(background["x"] + 70, background["y"] + 90, steps=4)
    loaded.page.mouse.up()
    loaded.idle()
    moved = box.bounding_box()
    assert abs(moved["x"] - nearer["x"] - 50) < 3 and abs(moved["y"] - nearer["y"] - 70) < 3


def test_the_picture_is_saved(loaded: Shown, show: Callable[..., Shown], tmp_path: Any) -> None:
    """It is XML, has every node, needs no other file in a browser, and has the colours of the theme."""
    text = loaded.saved_picture()
    root = ET.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    words = {each.strip() for each in root.itertext()}
    assert {"Loop trace", "shrink", "merged", "back edge", "sliced axis=0"} <= words
    assert "http" not in text.replace("http://www.w3.org/", "")
    file = tmp_path / "picture.svg"
    file.write_text(text, "utf-8")
    alone = show(file, idle=False)
    frames = [shown.page.locator("g.cluster .frame").first for shown in (loaded, alone)]
    assert frames[1].bounding_box()["width"] > 10
    colours = [each.evaluate("(each) => getComputedStyle(each).stroke") for each in frames]
    assert colours[0] == colours[1] != "none"
