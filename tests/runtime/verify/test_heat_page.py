"""The page of `verify --dump`: the differences of all tensors, on the nodes of the conversion or of the IR."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mo_loop.api import convert_model, save_model
from mo_loop.compare import deciding
from mo_loop.compare.deciding import NOT_REPRODUCED, write_page
from mo_loop.compare.layers import Heat, PieceFindings, first_difference
from mo_loop.compare.results.array_comparison import ArrayComparison
from mo_loop.compare.results.report import Report
from mo_loop.compare.results.report_formats import as_text
from mo_loop.compare.verifying import verify
from mo_loop.errors import FileError
from mo_loop.look.dump.dumper import Dumper
from mo_loop.options import ConvertOptions
from tests.cli.commands import saved
from tests.harness import keeping_loops, parsed, raised
from tests.pages import after, document
from tests.runtime.verify.test_reduce import WRONG
from tests.runtime.verify.test_verify import LOOP

pytestmark = pytest.mark.keeps_loops

KEEPING_LOOPS = ConvertOptions(config=keeping_loops())
FEEDS = {"x": np.ones((3, 2), np.float32), "n": np.array(4)}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved(parsed(LOOP), tmp_path)


def other_ir(folder: Path) -> Path:
    """The IR of the model with another weight."""
    target = folder / "other.xml"
    save_model(convert_model(parsed(LOOP.replace("2.0", "3.0"))), target)
    return target


def shown(folder: Path, report: Report) -> dict[str, Any]:
    """The document of the page; the report names the page."""
    page = folder / "index.html"
    assert report.page == str(page) and f"  {page} shows how far every tensor is" in as_text(report)
    return document(page.read_text("utf-8"))


def differences(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The difference of each tensor of the last state, by its names and the operator of its node."""
    nodes, _ = after(data)
    found = {}
    for node, port, each in data["heat"]["tensors"]:
        found[nodes[node]["op"]] = each
        found |= dict.fromkeys(nodes[node]["outputs"][port]["names"], each)
    return found


def test_where_outputs_agree_the_page_shows_how_close_everything_is(model: Path, tmp_path: Path) -> None:
    report = verify(model, dump=tmp_path / "steps", options=KEEPING_LOOPS)
    assert report and report.layers is None
    data = shown(tmp_path / "steps", report)
    assert data["kind"] == "conversion" and data["steps"]
    found = differences(data)
    assert {"y", "t", "s", "Multiply", "Select", "z"} <= set(found)
    assert all(each["worst"] < 1 and each["count"] == 0 for each in found.values())
    ((owner, loop),) = data["heat"]["loops"].items()
    assert after(data)[0][int(owner)]["op"] == "Loop"
    assert loop["iterations"] > 1 and "first" not in data["heat"]
    assert data["heat"]["sets"] == [each.name for each in report.sets] and data["notes"] == []


def test_a_wrong_ir_is_hot_from_its_weight_to_the_output(model: Path, tmp_path: Path) -> None:
    report = verify(model, other_ir(tmp_path), inputs=[FEEDS], dump=tmp_path / "steps", options=KEEPING_LOOPS)
    assert not report and report.layers.path == "y/step/t"
    data = shown(tmp_path / "steps", report)
    assert (data["kind"], data["title"], data["steps"]) == ("graph", "other.xml", [])
    found = differences(data)
    assert {name for name, each in found.items() if each["worst"] > 1} >= {"Constant", "Multiply", "t", "Select", "y"}
    assert found["z"]["worst"] == 0
    assert (found["Constant"]["abs"], found["Constant"]["count"]) == (1.0, 1)
    assert (found["t"]["abs"], found["t"]["iteration"]) == (3**4 - 2**4, 3)
    first = data["heat"]["first"]
    assert after(data)[0][first["node"]]["op"] == "Multiply" and first["text"] == str(report.layers)
    ((_, loop),) = data["heat"]["loops"].items()
    assert loop["tensors"]["t"] == sorted(loop["tensors"]["t"]) and len(loop["tensors"]["t"]) == 4


def test_the_first_hot_node_reads_what_the_wrong_pass_added(tmp_path: Path) -> None:
    model = saved(parsed("main (float[2] x) => (float[2] y) { h = Add (x, x) t = Tanh (h) y = Abs (t) }"), tmp_path)
    (tmp_path / "wrong.py").write_text(WRONG.replace("WHERE", "True"))
    options = ConvertOptions(extensions=[str(tmp_path / "wrong.py")])
    report = verify(model, dump=tmp_path / "steps", options=options)
    assert not report
    data = shown(tmp_path / "steps", report)
    found = differences(data)
    assert max(found["h"]["worst"], found["t"]["worst"]) < 1 < found["y"]["worst"]
    first = after(data)[0][data["heat"]["first"]["node"]]
    added = {each["id"] for step in data["steps"] if step["name"] == "Wrong" for each in step["delta"]["added"]}
    assert first["op"] == "Abs" and first["inputs"][0][0] in added


def test_what_differs_only_in_the_whole_ir_is_hot_with_a_note(tmp_path: Path) -> None:
    """As if the runtime fused layers wrongly: the layers agree, and an output of the whole IR differs."""
    graph = convert_model(parsed(LOOP)).graph
    dumper, heat = Dumper(tmp_path), Heat()
    dumper.show(graph, "model.xml")
    assert first_difference(parsed(LOOP), graph, FEEDS, heat=heat) is None
    differs = ArrayComparison("y", "values", multiple=5.0, largest_abs=0.1, largest_rel=0.2, count=3, size=6)
    write_page(dumper, heat, graph, [("y", differs), ("z", ArrayComparison("z", size=2))])
    data = document((tmp_path / "index.html").read_text("utf-8"))
    found = differences(data)
    assert (found["y"]["worst"], found["y"]["count"]) == (5.0, 3)
    assert found["t"]["worst"] < 1 and found["z"]["worst"] == 0
    assert data["notes"] == [NOT_REPRODUCED]


def test_a_comparison_that_crashes_promises_no_page(model: Path, tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of the conversion is there by then, and has no differences."""

    def crashed(question: deciding.Question) -> PieceFindings:
        if question.settings.dump is not None:
            Path(question.settings.dump, "index.html").write_text("")
        return PieceFindings(undecided={"": "the process crashed"})

    monkeypatch.setattr(deciding, "pieces_of", crashed)
    report = verify(model, inputs=[FEEDS], dump=tmp_path / "steps")
    assert report.page == "" and "the process crashed" in as_text(report) and "index.html" not in as_text(report)


def test_a_folder_that_cannot_hold_a_dump_is_refused_at_once(model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    raised(FileError, verify, model, dump=tmp_path / "file", match="cannot hold a dump")


def test_a_dump_compares_layers(model: Path, tmp_path: Path) -> None:
    report = verify(model, other_ir(tmp_path), inputs=[FEEDS], dump=tmp_path / "steps")
    assert report.layers == verify(model, tmp_path / "other.xml", inputs=[FEEDS], layers=True).layers
    assert report.to_dict()["page"] == str(tmp_path / "steps" / "index.html")
