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
    """What `mo-loop diff` says of a node stands in its details."""
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


def test_a_model_alone_has_no_steps(show: Callable[..., Shown], pages: MadePages) -> None:
    shown = show(pages.nested_onnx, size=TALL)
    assert shown.page.get_by_label("Passes", exact=True).count() == 0
    assert shown.page.get_by_role("slider").count() == 0
    shown.search("shrink")
    assert shown.details.startswith("Mul")
    shown.press("ArrowRight")  # means nothing here
