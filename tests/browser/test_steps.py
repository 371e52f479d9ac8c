"""Going through the passes: the list, the slider, the keys; what a step changed, in colour, and why."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from tests.browser.browsing import Shown
from tests.browser.made_pages import MadePages
from tools.gap_table import GAPS

TALL = (1600, 2400)


@pytest.fixture
def shown(show: Callable[..., Shown], pages: MadePages) -> Shown:
    """The dump of the model of docs/dump.md."""
    return show(pages.recurrent, size=TALL)


def changing(pages: MadePages) -> list[str]:
    """The passes that changed the model, in order, by the names of the files of the dump."""
    stems = sorted({file.stem for file in pages.recurrent.parent.glob("[0-9]*_*.json")})
    return [name for stem in stems if (name := stem.partition("_")[2]) not in ("loaded", "written")]


def statuses(shown: Shown, status: str) -> set[str]:
    """Operators of the boxes with a status."""
    boxes = shown.page.locator(f"g.box[data-status={status}]")
    return {each for each in boxes.evaluate_all("(all) => all.map((each) => each.dataset.op)") if each}


def test_the_list_has_the_passes_with_time_and_counts(shown: Shown, pages: MadePages) -> None:
    rows = shown.page.get_by_label("Passes", exact=True).locator("li.pass.changed")
    names = rows.locator(".row-name").all_text_contents()
    assert names == changing(pages) and "ScanLowering" in names
    row = " ".join(rows.nth(names.index("ScanLowering")).inner_text().split())
    assert re.search(r"\d (ms|µs|s)\b", row) and re.search(r"1 match", row) and re.search(r"\d+ → \d+ nodes", row)


def test_passes_without_a_change_are_listed_when_asked_for(shown: Shown) -> None:
    passes = shown.page.get_by_label("Passes", exact=True)
    before = passes.locator("li.pass").count()
    passes.get_by_label("without a change").check()
    assert passes.locator("li.pass.unchanged").count() > 20
    assert passes.locator("li.pass").count() > before
    passes.get_by_label("Filter passes").fill("looptot")
    assert passes.locator(".row-name").all_text_contents() == ["LoopToTI"]


def test_arrow_keys_and_slider_go_through_the_steps(shown: Shown, pages: MadePages) -> None:
    names = changing(pages)
    slider = shown.page.get_by_role("slider", name="Steps that changed the graph")
    assert slider.get_attribute("aria-valuetext") == "as loaded"
    for name in names[:2]:
        shown.press("ArrowRight")
        assert shown.current_step() == name
    shown.press("ArrowLeft")
    assert shown.current_step() == names[0]
    shown.press("End")
    assert shown.current_step() in (names[-1], "As written")
    shown.press("Home")
    assert shown.current_step() == "As loaded"
    slider.focus()
    slider.press("ArrowRight")
    shown.idle()
    assert shown.current_step() == names[0] and names[0] in slider.get_attribute("aria-valuetext")


def test_a_step_shows_what_it_added_removed_and_rewired(shown: Shown) -> None:
    """ScanLowering: a Loop instead of the Scan, the trip count from the shape, and the readers read the Loop."""
    shown.go("ScanLowering")
    assert {"ShapeOf", "Gather", "Squeeze", "Unsqueeze"} <= statuses(shown, "added")
    assert statuses(shown, "removed") == {"Scan"} and statuses(shown, "rewired") >= {"Result"}
    assert shown.owner("Loop all").get_attribute("data-status") == "added"
    signs = shown.page.evaluate(
        """() => ["added", "removed", "rewired"].map((status) =>
          document.querySelector(`svg.graph[data-side] g.badge.is-${status} path`).getAttribute("d"))"""
    )
    assert len(set(signs)) == 3  # not by colour alone
    colours = shown.page.evaluate(
        """() => ["added", "removed", "rewired", "same"].map((status) =>
          getComputedStyle(document.querySelector(`g.box[data-status=${status}] .body`)).stroke)"""
    )
    assert len(set(colours)) == 4


def test_side_by_side_overlay_and_after(shown: Shown) -> None:
    shown.go("ScanLowering")
    scans, loops = "g[data-node][aria-label^=Scan]", "g.cluster[aria-label^='Loop all']"
    assert shown.page.locator("svg.graph[data-side]").count() == 1
    assert shown.page.locator(scans).count() == 1 and shown.page.locator(loops).count() == 1
    shown.page.get_by_role("button", name="Side by side").click()
    shown.idle()
    before, after = shown.page.locator("svg.graph[data-side=before]"), shown.page.locator("svg.graph[data-side=after]")
    assert before.locator(scans).count() == 1 and before.locator(loops).count() == 0
    assert after.locator(scans).count() == 0 and after.locator(loops).count() == 1
    assert before.bounding_box()["x"] + before.bounding_box()["width"] <= after.bounding_box()["x"] + 1
    shown.press("3")
    assert shown.page.locator("svg.graph[data-side]").count() == 1
    assert shown.page.locator(scans).count() == 0 and shown.page.locator("g.badge").count() == 0
    shown.press("1")
    assert shown.page.locator(scans).count() == 1


def test_the_end_key_shows_the_graph_as_written(shown: Shown) -> None:
    """It selects the row "As written", which shows the last state without the colours of the last pass."""
    current = shown.page.get_by_label("Passes", exact=True).locator("[aria-current=step]")
    shown.press("End")
    assert "As written" in current.inner_text() and shown.page.locator("g.badge").count() == 0
    assert "as written" in shown.page.locator(".step-label").inner_text()
    shown.press("Home")
    assert "As loaded" in current.inner_text()


def test_a_step_is_explained(shown: Shown) -> None:
    """The page has the purpose of the pass, its decisions, and their nodes."""
    shown.go("ScanLowering")
    text = shown.explanation
    assert "TensorIterator if its length is proven to be at least 1" in text
    assert "to a Loop, because its length may be 0" in text
    shown.page.get_by_label("Explanation").get_by_role("link").filter(has_text="Loop").first.click()
    shown.idle()
    assert shown.details.startswith("Loop")


def test_a_refusal_is_explained_although_nothing_changed(shown: Shown) -> None:
    passes = shown.page.get_by_label("Passes", exact=True)
    passes.get_by_label("Filter passes").fill("LoopToTI")
    shown.go("LoopToTI")
    assert "its body does not read the iteration number" in shown.explanation


def test_a_rule_for_the_runtime_tells_the_gap(shown: Shown) -> None:
    shown.go("MakeFinalShapesDynamic")
    sentences = [gap.sentence for gap in GAPS if gap.rule == "MakeFinalShapesDynamic"]
    assert sentences and all(" ".join(each.split()) in shown.explanation for each in sentences)


def test_the_page_has_the_steps_of_the_dump(shown: Shown, pages: MadePages) -> None:
    """The number of nodes of each step is that of its JSON file."""
    for name in ("ScanLowering", "LowerBarriers"):
        shown.go(name)
        (file,) = pages.recurrent.parent.glob(f"*_{name}.json")
        assert json.loads(file.read_text("utf-8"))
        assert name in shown.page.get_by_label("Explanation").get_by_role("heading").first.inner_text()
