"""The page without a mouse, and what a screen reader gets of it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.browser.browsing import Shown
from tests.browser.made_pages import MadePages

TALL = (1600, 2400)

UNNAMED = """() => [...document.querySelectorAll("button, a[href], input, select, [role=button], [role=tab]")]
  .filter((each) => each.getClientRects().length)
  .filter((each) => !(each.getAttribute("aria-label") ?? "").trim() && !each.textContent.trim()
    && !each.labels?.length && !each.title)
  .map((each) => each.outerHTML.slice(0, 200))"""

RATIOS = """() => {
  const numbers = (colour) => (colour.match(/[\\d.]+/g) ?? []).map(Number);
  const light = ([red, green, blue]) => {
    const [r, g, b] = [red, green, blue].map((each) => each / 255)
      .map((each) => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = numbers(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const texts = [...document.querySelectorAll("body *")].filter((each) => !each.closest("svg")
    && [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) && each.getClientRects().length
    && each.getBoundingClientRect().width > 2 && !each.closest("[disabled]"));
  return texts.map((each) => {
    const [front, back] = [light(numbers(getComputedStyle(each).color)), light(ground(each))];
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    return [ratio, each.className, each.textContent.trim().slice(0, 40)];
  }).filter(([ratio]) => ratio < 4.5);
}"""
"""Texts of the panels whose contrast is below that of WCAG's level AA."""


@pytest.fixture
def shown(show: Callable[..., Shown], pages: MadePages) -> Shown:
    return show(pages.nested, size=TALL)


def test_a_node_in_a_body_is_reached_and_read_with_keys_alone(shown: Shown) -> None:
    """From the first key on: to the graph, down to the outer Loop, into its body, and to a node there."""
    shown.press("g")
    assert shown.details.startswith("Parameter")
    seen = []
    for key in ("ArrowDown", "ArrowDown", "i", "ArrowDown", "ArrowDown"):
        shown.press(key)
        seen.append(shown.details.partition(" opset")[0])
    in_body = re.search(r" in (Loop|Scan) ", shown.details)
    assert in_body, seen
    shown.press("o")
    assert re.match("Loop|Scan|TensorIterator", shown.details)
    shown.press("d")
    assert shown.page.evaluate("document.activeElement.closest('[aria-label=Details]') !== null")


def test_tab_reaches_every_part(shown: Shown) -> None:
    """A walk with Tab comes through the search, the passes, the graph, the details, and back to the start."""
    reached = set()
    for _ in range(80):
        shown.page.keyboard.press("Tab")
        reached.add(
            shown.page.evaluate(
                """() => {
                  const at = document.activeElement;
                  const part = at.closest(`[role=search], [aria-label=Passes], [aria-label=Details], .canvas,
                    svg.graph[data-side], input[type=range]`);
                  return part?.getAttribute("aria-label") ?? part?.className ?? at.localName;
                }"""
            )
        )
    assert {"Search", "Passes", "Details", "Steps that changed the graph"} <= reached
    assert any("raph" in each for each in map(str, reached)), reached


def test_the_focus_can_be_seen(shown: Shown) -> None:
    for _ in range(6):
        shown.page.keyboard.press("Tab")
        style = shown.page.evaluate(
            """() => {
              const style = getComputedStyle(document.activeElement);
              return [style.outlineStyle, parseFloat(style.outlineWidth), style.boxShadow];
            }"""
        )
        assert (style[0] != "none" and style[1] >= 1) or style[2] != "none", style


def test_a_body_is_folded_with_keys(shown: Shown) -> None:
    shown.search("shrink")
    shown.press("o")
    assert shown.details.startswith("Loop")
    shown.press("Enter")
    assert shown.box("Multiply", "shrink").count() == 0
    shown.press("Enter")
    assert shown.box("Multiply", "shrink").count() == 1


def test_steps_are_announced(shown: Shown) -> None:
    shown.press("ArrowRight")
    live = shown.page.locator("[aria-live=polite]").first
    assert re.search(r"changed \d+ nodes?: ", live.text_content())


def test_every_control_has_a_name(shown: Shown) -> None:
    assert shown.page.evaluate(UNNAMED) == []
    for tab in ("Weights", "Details"):
        shown.page.get_by_role("tab", name=tab).click()
        assert shown.page.evaluate(UNNAMED) == []


def test_nodes_and_edges_are_told_apart_without_the_picture(shown: Shown) -> None:
    """Names in the accessibility tree: operator, name, type; for an edge its ends and role."""
    graph = shown.page.locator("svg.graph[data-side]")
    assert graph.get_by_role("button", name=re.compile("^Multiply shrink:")).count() == 1
    assert graph.get_by_role("group", name=re.compile("^Loop inner.*open")).count() == 1
    assert graph.get_by_role("button", name=re.compile("Parameter .* to .*")).count() >= 1
    assert graph.get_by_role("button", name=re.compile("back edge")).count() == 3


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_have_contrast(show: Callable[..., Shown], pages: MadePages, theme: str) -> None:
    shown = show(pages.nested, theme=theme)
    shown.press("ArrowRight")
    shown.search("shrink")
    assert shown.page.evaluate(RATIOS) == []


def test_nothing_moves_where_no_motion_is_wanted(show: Callable[..., Shown], pages: MadePages) -> None:
    shown = show(pages.nested)
    shown.page.emulate_media(reduced_motion="reduce")
    durations = shown.page.evaluate(
        """() => [...document.querySelectorAll("*")].map((each) => getComputedStyle(each))
          .flatMap((style) => [style.transitionDuration, style.animationDuration].flatMap((text) => text.split(",")))
          .map(parseFloat).filter((seconds) => seconds > 0.01)"""
    )
    assert durations == []
