"""Reading: details of nodes and edges, history, weights, search, links, copying, themes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mo_loop.text import parse
from tests.browser.browsing import Shown
from tests.browser.made_pages import MadePages

TALL = (1600, 2400)


@pytest.fixture
def nested(show: Callable[..., Shown], pages: MadePages) -> Shown:
    """The nested model as loaded."""
    return show(pages.nested, size=TALL)


@pytest.fixture
def recurrent(show: Callable[..., Shown], pages: MadePages) -> Shown:
    """The model of docs/dump.md as loaded."""
    return show(pages.recurrent, size=TALL)


def test_a_node_that_is_clicked(nested: Shown) -> None:
    """Attributes, types, shapes, the preview of a constant, the ONNX node."""
    nested.box("ReduceSum", "total").click()
    nested.idle()
    text = nested.details
    assert "ReduceSum" in text and "total" in text and "keep_dims false" in text
    assert "f32[3]" in text and "f32[]" in text
    assert ("Origin in ONNX ReduceSum total" in text and "in trace" in text) or "in outer" in text


def test_a_constant_that_is_clicked(nested: Shown) -> None:
    nested.page.locator("g.line[data-op=Constant]", has_text="100").click()
    nested.idle()
    text = nested.details
    assert text.startswith("Constant") and "limit" in text and "100.0" in text and "4 B" in text


def test_an_edge_that_is_clicked(nested: Shown) -> None:
    """Type, shape, and the symbol of a dimension."""
    nested.click_edge("Parameter start", "input 0")
    text = nested.details
    assert "f32[3]" in text and "start" in text
    nested.page.keyboard.press("Escape")
    assert "f32[3]" not in nested.details.partition("Inputs")[0]


def test_an_edge_names_the_symbol_of_a_dimension(recurrent: Shown) -> None:
    recurrent.click_edge("Parameter x", "input 1")
    assert "f32[t,4]" in recurrent.details and "t" in recurrent.details.split()


def test_an_edge_of_a_port_map(nested: Shown) -> None:
    nested.page.locator("g.edge[data-role=sliced]").first.dispatch_event("click")
    nested.idle()
    text = nested.details
    assert "sliced" in text.lower() and "axis 0" in text


def test_the_history_of_a_node(recurrent: Shown) -> None:
    recurrent.go("As written")
    recurrent.search("op:Tile")
    text = recurrent.details
    history = text.partition("History")[2]
    assert "LowerBarriers + added" in history
    recurrent.page.get_by_role("region", name="Details").get_by_role("link", name="LowerBarriers").last.click()
    recurrent.idle()
    assert recurrent.current_step() == "LowerBarriers"


@pytest.mark.parametrize(
    ("query", "operator"),
    [("shrink", "Multiply"), ("op:ReduceSum", "ReduceSum"), ("onnx:turn", "Convert"), ("tensor:u", "Add")],
)
def test_search(nested: Shown, query: str, operator: str) -> None:
    """By name, operator, ONNX name and tensor."""
    nested.search(query)
    assert nested.details.startswith(operator)
    selected = nested.page.locator("g.box.selected, g.box[aria-current], g.box[aria-pressed=true]")
    assert selected.count() == 1 and selected.get_attribute("data-op") == operator


def test_search_lists_all_and_says_how_many(nested: Shown) -> None:
    nested.page.get_by_role("combobox", name="Search").fill("op:Multiply")
    options = nested.page.get_by_role("listbox", name="Search results").get_by_role("option")
    assert options.count() == 8  # those of the model, of the numbers of steps and of elements
    assert "8 nodes" in nested.page.locator(".search-status").inner_text()
    nested.page.get_by_role("combobox", name="Search").fill("nothing like this")
    assert options.count() == 0 and "Nothing" in nested.page.locator(".search-status").inner_text()


def test_a_node_in_a_folded_body_is_found(nested: Shown) -> None:
    nested.press("F")
    assert nested.box("Multiply", "shrink").count() == 0
    nested.search("shrink")
    assert nested.box("Multiply", "shrink").count() == 1


def test_weights_of_equal_content(recurrent: Shown) -> None:
    recurrent.page.get_by_role("tab", name="Weights").click()
    text = " ".join(recurrent.page.get_by_role("region", name="Weights").inner_text().split())
    assert "tied" in text and "twin" in text and "64 B" in text


def test_the_address_shows_the_same_again(recurrent: Shown, show: Callable[..., Shown], pages: MadePages) -> None:
    recurrent.go("LowerBarriers")
    recurrent.search("op:Tile")
    address = recurrent.page.url
    assert "#" in address
    again = show(pages.recurrent, f"#{address.partition('#')[2]}", size=TALL)
    assert again.current_step() == "LowerBarriers" and again.details.startswith("Tile")
    recurrent.reload()
    assert recurrent.current_step() == "LowerBarriers" and recurrent.details.startswith("Tile")


def test_back_and_forward(recurrent: Shown) -> None:
    recurrent.go("ScanLowering")
    recurrent.page.wait_for_timeout(800)  # what follows within 0.7 s is one entry of the history
    recurrent.go("LowerBarriers")
    recurrent.page.go_back()
    recurrent.idle()
    assert recurrent.current_step() == "ScanLowering"
    recurrent.page.go_forward()
    recurrent.idle()
    assert recurrent.current_step() == "LowerBarriers"


def test_the_text_of_a_node_and_of_the_graph_is_copied(nested: Shown) -> None:
    """In the text form of the dumps; that of the graph can be parsed."""
    copied = nested.copied()
    graph = parse(copied)
    assert sum(1 for _ in graph.ordered()) > 5
    nested.search("shrink")
    assert "Multiply(" in nested.copied() and '"shrink"' in nested.copied()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_is_that_of_the_system_or_the_chosen_one(
    show: Callable[..., Shown], pages: MadePages, theme: str
) -> None:
    shown = show(pages.nested, theme=theme)
    dark = theme == "dark"
    assert (brightness(shown, "body") < 128) is dark
    shown.page.get_by_label("Theme").select_option("light" if dark else "dark")
    assert (brightness(shown, "body") < 128) is not dark


def brightness(shown: Shown, selector: str) -> float:
    """Of the background, 0 to 255."""
    colour = shown.page.evaluate("(each) => getComputedStyle(document.querySelector(each)).backgroundColor", selector)
    red, green, blue = (int(each) for each in colour.removeprefix("rgb(").removesuffix(")").split(",")[:3])
    return 0.3 * red + 0.6 * green + 0.1 * blue


def test_the_licences_can_be_read(nested: Shown) -> None:
    nested.press("?")
    dialog = nested.page.get_by_role("dialog")
    dialog.get_by_text("Licences of the libraries").click()
    dialog.get_by_text("Eclipse Public License - v 2.0").wait_for()
    nested.page.keyboard.press("Escape")
    assert dialog.count() == 0 or not dialog.is_visible()
