"""The page of verify --layers --dump: tensors in the colour of their difference, loops with a plot by iteration."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.browsing import Shown
from tests.browser.made_pages import MadePages

TALL = (1600, 2400)


@pytest.fixture
def shown(show: Callable[..., Shown], pages: MadePages) -> Shown:
    """The nested model, whose Scan multiplies by another weight."""
    return show(pages.heated, size=TALL)


def test_tensors_have_the_colour_of_their_difference(shown: Shown) -> None:
    if shown.page.locator("[data-heat]").count() == 0:
        shown.press("h")
    shown.press("U")  # the graph is large enough for an overview
    heated = shown.page.locator("g.edge[data-heat]")
    values = heated.evaluate_all(
        """(all) => all.map((each) =>
          [Number(each.dataset.heat), getComputedStyle(each.querySelector(".line")).stroke])"""
    )
    right, wrong = {c for worst, c in values if worst <= 1}, {c for worst, c in values if worst > 1}
    assert right and wrong and not right & wrong


def test_the_first_difference_is_named(shown: Shown) -> None:
    shown.page.get_by_role("tab", name="Differences").click()
    text = " ".join(shown.page.get_by_role("region", name="Differences").first.inner_text().split())
    assert "First difference" in text and "weigh" in text
    shown.page.get_by_role("tabpanel", name="Differences").get_by_role("link").first.click()
    shown.idle()
    assert "weigh" in shown.details


def test_a_loop_has_a_plot_by_iteration(shown: Shown) -> None:
    shown.search("op:TensorIterator")
    plot = shown.page.get_by_role("img", name="Difference by iteration")
    assert plot.count() == 1 and plot.locator("polyline").count() >= 1
    assert "Difference by iteration" in shown.details and "5 iterations" in shown.details
    shown.page.locator("summary", has_text="Numbers of").first.click()
    assert shown.page.locator("details[open] table.plain tbody tr").count() == 5


def test_the_page_begins_with_the_differences(shown: Shown) -> None:
    assert shown.page.locator("[data-heat]").count() > 3
    assert shown.page.get_by_role("tab", name="Differences").get_attribute("aria-selected") == "true"
    text = shown.page.get_by_role("tabpanel", name="Differences").inner_text()
    assert "OpenVINO computed in f32" in text and "5 iterations" in text
    assert shown.page.locator("svg.spark polyline").count() >= 1
    shown.press("h")
    assert shown.page.locator("[data-heat]").count() == 0
    assert "heat=0" in shown.page.url
