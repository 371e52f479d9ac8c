"""The first picture of a large model: names of blocks that can be read; opening them, and where the picture is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.browsing import Shown
from tests.browser.made_pages import MadePages

READABLE = 7
"""Pixels of the height of a name on the screen."""


@pytest.fixture
def modules(show: Callable[..., Shown], pages: MadePages) -> Shown:
    return show(pages.modules)


@pytest.fixture
def converted(show: Callable[..., Shown], pages: MadePages) -> Shown:
    return show(pages.converted_modules)


def titles(shown: Shown) -> list[str]:
    """The names of the boxes and the frames."""
    return [*shown.page.locator("g.box .title, g.cluster .title").all_text_contents()]


def crumbs(shown: Shown) -> list[str]:
    """The groups in the line in the corner of the picture."""
    shown.idle()
    return [*shown.page.get_by_label("Groups around this place").get_by_role("button").all_text_contents()]


def toggle(shown: Shown, title: str, *, shift: bool = False) -> None:
    """Click on the sign of a group with exactly this title."""
    name = shown.page.get_by_text(title, exact=True)
    group = shown.page.locator("[data-side] g.box, g.cluster").filter(has=name)
    group.locator(".toggle").first.dispatch_event("click", {"shiftKey": shift})
    shown.idle()


def test_the_first_picture_names_blocks(modules: Shown) -> None:
    """220 nodes: the inputs and outputs, and the modules that the metadata of the nodes name; nodes are folded."""
    assert sorted(titles(modules)) == ["Parameter", "Result", "layers.0 … layers.23", "model", "norm"]
    assert "24 blocks" in modules.page.locator("g.box", has_text="layers.0").text_content()


@pytest.mark.parametrize("page", ["modules", "large"])
def test_the_first_picture_is_whole_and_can_be_read(show: Callable[..., Shown], pages: MadePages, page: str) -> None:
    shown = show(getattr(pages, page))
    window = shown.page.locator("svg.graph[data-side]").bounding_box()
    for at in [each.bounding_box() for each in shown.page.locator("[data-side] g.box").all()]:
        assert window["x"] <= at["x"] and at["x"] + at["width"] <= window["x"] + window["width"]
        assert window["y"] <= at["y"] and at["y"] + at["height"] <= window["y"] + window["height"]
    names = shown.page.locator("[data-side] g.box .title").all()
    assert min(each.bounding_box()["height"] for each in names) >= READABLE


def test_equal_blocks_are_folded_equally(converted: Shown) -> None:
    layers = converted.page.locator("g.box.fold", has_text="layers.")
    assert layers.count() == 9
    toggle(converted, "layers.4")
    assert layers.count() == 8
    toggle(converted, "layers.4")
    toggle(converted, "layers.4", shift=True)
    assert layers.count() == 0 and titles(converted).count("self_attn") == 9
    toggle(converted, "layers.2", shift=True)
    assert layers.count() == 9


def test_the_modules_of_an_exporter_group_a_converted_graph(converted: Shown) -> None:
    converted.go("As written")
    converted.search("op:Softmax")
    assert crumbs(converted)[:4] == ["Graph", "model", "layers.0", "self_attn"]


def test_scopes_of_tensorflow_are_groups(show: Callable[..., Shown], pages: MadePages) -> None:
    shown = show(pages.tensorflow)
    assert {"model", "masking", "bidirectional"} <= set(titles(shown))
    shown.search("op:Loop")
    assert crumbs(shown)[:4] == ["Graph", "model", "bidirectional", "forward_lstm"]


def test_a_line_names_the_groups_around_the_selection_and_the_middle(modules: Shown) -> None:
    assert crumbs(modules) == ["Graph", "model"]  # around the middle of the picture
    modules.search("op:Softmax")
    path = ["Graph", "model", "layers.0 … layers.23", "layers.0", "self_attn"]
    assert crumbs(modules) == path
    modules.page.get_by_label("Groups around this place").get_by_role("button", name="Graph").click()
    modules.idle()
    frame = modules.page.locator("g.cluster .frame").first.bounding_box()
    window = modules.page.locator("svg.graph[data-side]").bounding_box()
    assert frame["height"] < window["height"] and crumbs(modules) == path


def test_what_is_opened_comes_nearer(show: Callable[..., Shown], pages: MadePages) -> None:
    """The group is larger on the screen than the overview was."""
    shown = show(pages.large)
    before = shown.page.locator("g.box .title").first.bounding_box()["height"]
    shown.page.locator("g.box.fold .toggle").nth(2).click()
    shown.idle()
    assert shown.page.locator("g.box .title").first.bounding_box()["height"] > before


def test_a_loop_with_several_steps_an_iteration(show: Callable[..., Shown], pages: MadePages) -> None:
    shown = show(pages.blocks_of_steps)
    notes = shown.page.locator("g.cluster.owner .note").all_text_contents()
    assert sorted(notes) == ["10 iterations, 16 steps at a time", "n (Parameter) steps, 16 at a time"]
    shown.search("op:Loop")
    assert "n (Parameter) steps, 16 at a time" in shown.details


def test_the_list_of_keys(modules: Shown) -> None:
    dialog = modules.page.get_by_role("dialog", name="Keys")
    modules.press("?")
    assert "fold all, open all" in dialog.inner_text()
    modules.press("Escape")
    assert not dialog.is_visible()
    modules.page.get_by_role("button", name="Keys").click()
    assert dialog.is_visible()
