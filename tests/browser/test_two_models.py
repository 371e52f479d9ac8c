"""The page of two models, and that of one."""

from __future__ import annotations

from collections.abc import Callable

from tests.browser.browsing import Shown
from tests.browser.made_pages import MadePages

TALL = (1800, 2400)


def test_both_models_stand_side_by_side(show: Callable[..., Shown], pages: MadePages) -> None:
    shown = show(pages.difference, size=TALL)
    before, after = (shown.page.locator(f"svg.graph[data-side={side}]") for side in ("before", "after"))
    assert before.locator("g.box", has_text="weigh").get_attribute("data-op") == "Mul"
    assert after.locator("g.box", has_text="weigh").get_attribute("data-op") == "Add"
    same = shown.page.locator("g.box", has_text="shift")
    assert same.count() == 2 and {each.get_attribute("data-status") for each in same.all()} == {"same"}


def test_differences_are_listed_and_explained(show: Callable[..., Shown], pages: MadePages) -> None:
    """The details of a node have what `mo-loop diff` reports of it."""
    shown = show(pages.difference, size=TALL)
    text = " ".join(shown.page.locator("aside.left").inner_text().split())
    assert "weigh" in text
    shown.page.locator("aside.left").get_by_role("link").filter(has_text="half").first.click()
    shown.idle()
    assert "0.5" in shown.details and "0.25" in shown.details


def test_both_models_in_one_picture(show: Callable[..., Shown], pages: MadePages) -> None:
    shown = show(pages.difference, size=TALL)
    shown.page.get_by_role("button", name="Overlay").click()
    shown.idle()
    assert shown.page.locator("svg.graph[data-side]").count() == 1
    boxes = shown.page.locator("g.box, g.line[data-node]")
    assert "changed" in boxes.evaluate_all("(all) => all.map((each) => each.dataset.status)")


def test_the_layers_of_a_node_are_marked_in_the_other_graph(show: Callable[..., Shown], pages: MadePages) -> None:
    """An ONNX model and its IR are side by side; what is selected in one is marked in the other, both ways."""
    shown = show(pages.layers, size=TALL)
    before, after = (shown.page.locator(f"svg.graph[data-side={side}]") for side in ("before", "after"))
    before.locator("g.box[data-op=Mul]", has_text="weigh").click()
    shown.idle()
    assert "Became these layers" in shown.details and "Multiply" in shown.details
    found = after.locator("g.box.found[data-op=Multiply]")
    assert found.count() == 1 and "weigh" in found.text_content()
    found.click()
    shown.idle()
    assert "Of these ONNX nodes" in shown.details and "Mul weigh" in shown.details
    assert "weigh" in before.locator("g.box.found[data-op=Mul]").text_content()


def test_nodes_are_listed_with_their_layers(show: Callable[..., Shown], pages: MadePages) -> None:
    shown = show(pages.layers, size=TALL)
    panel = shown.page.get_by_label("Nodes and layers", exact=True).first
    panel.get_by_role("button", name="Without a layer").click()
    rows = panel.locator(".difference").all_inner_texts()
    assert rows and all("no layer" in each and "Identity" in each for each in rows)
    panel.get_by_role("button", name="Without a layer").click()
    panel.get_by_label("Filter nodes and layers").fill("shrink")
    panel.get_by_role("link").filter(has_text="shrink").first.click()
    shown.idle()
    assert shown.details.startswith("Mul") and "Multiply shrink" in shown.details


def test_what_differs_in_the_models_as_a_whole_is_folded(show: Callable[..., Shown], pages: MadePages) -> None:
    shown = show(pages.difference_of_metadata, size=TALL)
    notes = shown.page.get_by_role("note")
    assert "3 notes" in notes.inner_text() and "second" not in notes.inner_text()
    notes.get_by_text("3 notes").click()
    assert "second" in notes.inner_text()


def test_a_model_alone_has_no_steps(show: Callable[..., Shown], pages: MadePages) -> None:
    shown = show(pages.nested_onnx, size=TALL)
    assert shown.page.get_by_label("Passes", exact=True).count() == 0
    assert shown.page.get_by_role("slider").count() == 0
    shown.search("shrink")
    assert shown.details.startswith("Mul")
    shown.press("ArrowRight")  # means nothing here
