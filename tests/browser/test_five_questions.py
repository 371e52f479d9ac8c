"""The questions of docs/dump.md, answered with the steps that it describes, on its model."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.browser.browsing import Shown
from tests.browser.made_pages import MadePages
from tools.gap_table import GAPS


@pytest.fixture
def shown(show: Callable[..., Shown], pages: MadePages) -> Shown:
    return show(pages.recurrent)


def click(shown: Shown, region: str, link: str) -> None:
    """Follow a link in a panel."""
    shown.page.get_by_role("region", name=region).get_by_role("link", name=link).first.click()
    shown.idle()


def section(shown: Shown, title: str) -> str:
    """A section of the details, as one line of text."""
    heading = shown.page.get_by_role("heading", name=title, exact=True)
    found = shown.page.get_by_role("region", name="Details").locator("section.details-section").filter(has=heading)
    return " ".join(found.inner_text().split())


def test_why_did_this_scan_not_become_a_tensor_iterator(shown: Shown) -> None:
    shown.search("op:Scan")
    decisions = section(shown, "Decisions of passes about it")
    assert re.search(r"ScanLowering changed to a Loop, because its length may be 0", decisions)
    click(shown, "Details", "ScanLowering")
    assert shown.current_step() == "ScanLowering"
    assert "a TensorIterator over a dimension of 0 returns the values of an earlier inference" in shown.explanation


def test_which_pass_put_this_tile_here(shown: Shown) -> None:
    """A pass makes it of a Barrier, which another pass placed because of an error of the runtime."""
    shown.go("As written")
    shown.search("op:Tile")
    assert "LowerBarriers + added" in section(shown, "History")
    click(shown, "Details", "LowerBarriers")
    assert shown.current_step() == "LowerBarriers" and "hides bounds by Tile" in shown.explanation
    decision = shown.page.get_by_role("region", name="Explanation").locator(".decision", has_text="by Tile")
    decision.get_by_role("link", name="Barrier").click()
    shown.idle()
    assert "MakeFinalShapesDynamic + added" in section(shown, "History")
    click(shown, "Details", "MakeFinalShapesDynamic")
    (gap,) = [gap for gap in GAPS if gap.rule == "MakeFinalShapesDynamic"]
    assert gap.sentence in shown.explanation


def test_where_does_this_input_go_in_the_body(shown: Shown) -> None:
    shown.search("op:Parameter x")
    assert re.search(r"→ Scan all ?input 1 ?sliced as item", section(shown, "Outputs"))


def test_what_is_the_trip_count(shown: Shown) -> None:
    shown.search("op:Loop grow")
    assert re.search(r"Trip count 3 .*Constant count", section(shown, "Iterations"))
    shown.go("As written")
    shown.search("op:Loop all")
    assert "Trip count dimension 0 of x: t" in section(shown, "Iterations")


def test_which_weights_are_stored_twice(show: Callable[..., Shown], pages: MadePages) -> None:
    """Two in the ONNX model; in the IR they share their place."""
    shown = show(pages.recurrent_onnx)
    shown.press("w")
    text = " ".join(shown.page.get_by_role("region", name="Weights").inner_text().split())
    assert re.search(r"Stored more than once 2 × f32\[4,4\] 64 B, the same content, stored 2 times tied .* twin", text)
    shown = show(pages.recurrent)
    shown.go("As written")
    shown.press("w")
    text = " ".join(shown.page.get_by_role("region", name="Weights").inner_text().split())
    assert "Stored more than once No weight of the model is stored more than once" in text
    assert re.search(r"Equal contents, stored once 3 × f32\[4,4\] 64 B, the same content, stored once .*twin", text)
