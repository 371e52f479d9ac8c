"""`mo-loop convert` with --input, --output and --dump."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from mo_loop.api import convert_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.execution.runtime import run_ir
from mo_loop.errors import UsageError
from mo_loop.look.dump import Dumper
from mo_loop.look.dump.step_files import INDEX, PAGE
from mo_loop.text import parse, to_text
from mo_loop.transforms.pipelines import default_pipeline
from tests.harness import check, floats, parsed, raised
from tests.pages import after, assert_whole, document

from .commands import PYTORCH, convert, ended


def shown(folder: Path) -> dict[str, Any]:
    """The data of the page in a folder."""
    return document((folder / PAGE).read_text("utf-8"))


def test_cuts(plain: Path, tmp_path: Path) -> None:
    assert convert(plain, "-o", tmp_path / "a.xml", "--output", "a").returncode == 0
    assert isolated(run_ir, str(tmp_path / "a.xml"), [{"x": np.zeros(3, np.float32)}])[0][0][0] == "a"
    assert str(convert_model(plain, input="a").graph.parameters[0].output.type) == "f32[3]"  # inferred, not declared
    check(plain, {"x": floats(3)}, expected=[[("a", floats(3) + np.float32([1, 2, 3]))]], output=["a"], rtol=1e-6)
    assert "did you mean 'a'?" in ended(convert(plain, "-o", tmp_path / "b.xml", "--output", "aa"), 2).stderr


def test_input_shapes() -> None:
    made = parsed("main (float[N, M] x) => (float[N, M] y) { y = Neg (x) }")
    converted = convert_model(made, input={"x": [2, None]})
    assert str(converted.graph.parameters[0].output.type) == "f32[2,?]"
    raised(UsageError, convert_model, made, input={"x": [2, "no name"]})


def test_dump(tmp_path: Path) -> None:
    """Numbered files for each step that changed the graph; the texts of whole graphs can be parsed."""
    steps = tmp_path / "steps"
    assert convert(PYTORCH / "for_break.onnx", "-o", tmp_path / "m.xml", "--dump", steps).returncode == 0
    names = sorted(path.name for path in steps.iterdir() if path.name not in (INDEX, PAGE))
    stems = sorted({name.rpartition(".")[0] for name in names})
    passes = [each.name for each in default_pipeline() if each.enabled_by_default]
    assert stems[0] == "000_loaded" and len(stems) > 3 and stems[-1] == f"{len(passes) + 1:03d}_written"
    assert all(passes[int(stem[:3]) - 1] == stem[4:] for stem in stems[1:-1])
    assert names == sorted(f"{stem}.{ending}" for stem in stems for ending in ("txt", "dot", "json"))
    for stem in stems:
        text = (steps / f"{stem}.txt").read_text(encoding="utf-8")
        assert text.startswith("graph ") if stem in (stems[0], stems[-1]) else text.startswith(f"# what {stem[4:]} ")
        assert json.loads((steps / f"{stem}.json").read_text(encoding="utf-8"))["multigraph"] is True
        assert (steps / f"{stem}.dot").read_text(encoding="utf-8").startswith("digraph")
    last = (steps / f"{stems[-1]}.txt").read_text(encoding="utf-8")
    converted = convert_model(PYTORCH / "for_break.onnx")
    assert to_text(converted.graph, canonical=True) == to_text(parse(last), canonical=True)
    assert PAGE in {path.name for path in steps.iterdir()}


def test_the_page_of_a_stop(tmp_path: Path) -> None:
    """--stop-after ends with files of the whole graph and the page, which has no later pass."""
    steps = tmp_path / "steps"
    ended(convert(PYTORCH / "for_break.onnx", "-o", tmp_path / "m.xml", "--dump", steps, "--stop-after", "LoopToTI"))
    ran = {step["name"]: not step.get("off") for step in shown(steps)["steps"]}
    assert ran["LoopToTI"] and not ran["PortRenumbering"] and len(list(steps.glob("*_written.json"))) == 1


def test_the_page_of_a_failure(tmp_path: Path) -> None:
    onnx.save(parsed("main (float[3] x) => (float[3] y) { y = Unheard (x) }"), tmp_path / "m.onnx")
    done = convert(tmp_path / "m.onnx", "-o", tmp_path / "m.xml", "--dump", tmp_path / "steps")
    assert done.returncode != 0
    (note,) = shown(tmp_path / "steps")["notes"]
    assert "Unheard" in note and not list((tmp_path / "steps").glob("*_written.json"))


class TestAround:
    def test_a_node_through_the_passes(self, tmp_path: Path) -> None:
        """The replacement of the node is followed by its origin and name; nodes beyond the depth are not shown."""
        steps = tmp_path / "steps"
        model = PYTORCH / "loop_if_loop.onnx"
        given = ("--dump-around", "/Less", "--dump-depth", "1")
        assert convert(model, "-o", tmp_path / "m.xml", "--dump", steps, *given).returncode == 0
        first, last = (
            json.loads(next(steps.glob(f"*_{name}.json")).read_bytes()) for name in ("loaded", "written")
        )
        for data in (first, last):
            (outer,) = [node for node in data["nodes"] if "bodies" in node]
            inner = [node for node in outer["bodies"][0]["nodes"] if node["op"] == "Loop"]
            loop = inner[0] if outer["op"] == "If" else outer  # it is in a branch where it may run zero times
            ops = {node["op"] for node in loop["bodies"][0]["nodes"]}
            assert {"Less", "ReduceMean", "If"} <= ops and "ReLU" not in ops
        assert "graph " not in (steps / "000_loaded.txt").read_text("utf-8") and len(shown(steps)["nodes"]) < 16

    @pytest.mark.parametrize("name", ["/Less", "/Less_output_0", "/Loop_1/sub_graph//Less", "weight", "y"])
    @pytest.mark.parametrize("depth", [0, 2, 9])
    def test_names(self, name: str, depth: int, tmp_path: Path) -> None:
        """The name of a node or tensor, or a path. The page is a whole one at each depth."""
        dumper = Dumper(tmp_path, ["json"], around=name, depth=depth)
        convert_model(PYTORCH / "loop_if_loop.onnx", observers=[dumper])
        data = shown(tmp_path)
        assert data["nodes"]
        assert_whole({each["id"]: each for each in data["nodes"]}, {each["id"]: each for each in data["scopes"]})
        assert_whole(*after(data))
