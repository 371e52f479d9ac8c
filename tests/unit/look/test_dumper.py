"""Dumps: the files of each step; a folder holds one run, and files of other programs in it stay."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mo_loop.api import convert_model
from mo_loop.conversion import phase
from mo_loop.errors import FileError, UsageError
from mo_loop.graph import Graph
from mo_loop.look.dump import FORMATS, Dumper
from mo_loop.look.dump.step_files import INDEX, PAGE, RunFolder
from mo_loop.ops.base import Constant
from mo_loop.text import parse, to_text
from mo_loop.text.dot import to_dot
from mo_loop.transforms import visualize
from mo_loop.transforms.common.nop_elimination import EliminateGather
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.manager import Manager
from tests.harness import parsed, raised, without
from tests.pages import after, assert_whole, document
from tests.unit.look.graphviz import use_as_graphviz

TEXT = """
graph main {
  %x = Parameter : f32[2,1]
  %g = Gather(%x, [0], 1) %y = ReLU(%g)
  Result(%y) names "y"
}"""


class Idle(FunctionPass):
    """nothing  ->  nothing"""

    def run_on_graph(self, graph: Graph) -> bool:
        return False


class Odd(EliminateGather):
    """one with a name that is a path"""

    @property
    def name(self) -> str:
        return "../a b"


@pytest.fixture
def without_graphviz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visualize, "_program", lambda: None)


def names(folder: Path) -> list[str]:
    """All files except the index and the page."""
    return sorted(path.name for path in folder.iterdir() if path.name not in (INDEX, PAGE)) if folder.exists() else []


def run(dumper: Dumper, passes: Sequence[FunctionPass] | None = None, text: str = TEXT) -> None:
    """Passes as a conversion runs them: the graph is loaded, then the second pass changes it."""
    graph = parse(text)
    with phase("reading", [dumper]):
        pass
    with phase("translating", [dumper], graph):
        pass
    Manager([Idle(), EliminateGather()] if passes is None else passes, [dumper]).run(graph)


class TestFiles:
    def test_the_graph_as_loaded_and_after_each_change(self, tmp_path: Path) -> None:
        """The number is the position of the pass in the run."""
        run(Dumper(tmp_path / "new" / "steps"))
        steps = tmp_path / "new" / "steps"
        stems = ("000_loaded", "002_EliminateGather")
        assert names(steps) == [f"{stem}.{ending}" for stem in stems for ending in ("dot", "json", "txt")]
        text = (steps / "000_loaded.txt").read_text("utf-8")
        assert to_text(parse(TEXT)) == to_text(parse(text))
        assert (steps / "000_loaded.dot").read_text("utf-8") == to_dot(parse(TEXT), shapes=True, types=True)
        assert {node["op"] for node in json.loads((steps / "000_loaded.json").read_bytes())["nodes"]} >= {"Gather"}
        text = (steps / "002_EliminateGather.txt").read_text("utf-8")
        head = "# what EliminateGather changed: 0 nodes added, 3 removed, 1 changed\n# before: 000_loaded\n"
        assert text.startswith(head) and "- %3 = Gather(%0, [0], 1) : f32[2,1]" in text
        dot = (steps / "002_EliminateGather.dot").read_text("utf-8")
        assert dot.count("dashed") >= 3 and dot.count("{") == dot.count("}")

    @pytest.mark.parametrize("name", ["text", "json", "dot"])
    def test_one_format(self, name: str, tmp_path: Path) -> None:
        run(Dumper(tmp_path, [name]))
        assert names(tmp_path) == [f"{stem}{FORMATS[name]}" for stem in ("000_loaded", "002_EliminateGather")]

    def test_an_unknown_format(self, tmp_path: Path) -> None:
        assert "text, json, dot, svg" in raised(UsageError, Dumper, tmp_path, ["text", "png"], match="'png'").hint

    @pytest.mark.parametrize(("only", "found"), [("EliminateGather", ["002_EliminateGather.txt"]), ("Idle", [])])
    def test_chosen_passes(self, only: str, found: list[str], tmp_path: Path) -> None:
        run(Dumper(tmp_path, ["text"], only=[only]))
        assert names(tmp_path) == found

    def test_passes_without_a_conversion_around_them(self, tmp_path: Path) -> None:
        Manager([EliminateGather()], [Dumper(tmp_path, ["text"])]).run(parse(TEXT))
        assert names(tmp_path) == ["001_EliminateGather.txt"]

    def test_names_of_passes_are_no_paths(self, tmp_path: Path) -> None:
        run(Dumper(tmp_path / "steps", ["text"]), [Odd()])
        assert names(tmp_path) == ["steps"] and names(tmp_path / "steps") == ["000_loaded.txt", "001_.._a_b.txt"]

    def test_names_of_nodes_of_any_kind(self, tmp_path: Path) -> None:
        graph = Graph("\ud800 surrogate")
        Constant(np.array(["\ud800"], object), graph=graph, name="\ud800")
        with phase("translating", [Dumper(tmp_path)], graph):
            pass
        assert len(names(tmp_path)) == 3

    def test_a_conversion(self, tmp_path: Path) -> None:
        """A node that failed in translation is in the loaded graph, and there are no later files."""
        broken = parsed("main (float[3] x) => (float[3] y) { [odd] y = Unheard (x) }")
        raised(Exception, convert_model, broken, dump=tmp_path, match="Unheard")
        assert names(tmp_path) == ["000_loaded.dot", "000_loaded.json", "000_loaded.txt"]
        assert "Failed" in (tmp_path / "000_loaded.txt").read_text("utf-8")


def shown(folder: Path) -> dict[str, Any]:
    """The data of the page in a folder."""
    return document((folder / PAGE).read_text("utf-8"))


class TestPage:
    def test_steps_of_a_conversion(self, tmp_path: Path) -> None:
        model = parsed("main (float[2] x) => (float[2] y) { a = Dropout (x) [r] y = Relu (a) }")
        config = without("LoopToTI")
        graph = convert_model(model, dump=tmp_path, config=config).graph
        data = shown(tmp_path)
        assert [node["op"] for node in data["nodes"]].count("ReLU") == 1 and data["kind"] == "conversion"
        steps = [step for step in data["steps"] if not step.get("off")]
        assert [step["place"] for step in steps] == list(range(1, len(steps) + 1))
        assert "LoopToTI" in {step["name"] for step in data["steps"] if step.get("off")}
        files = {step["file"] for step in steps if "delta" in step}
        written = {name.removesuffix(".json") for name in names(tmp_path) if name.endswith(".json")}
        assert files == written - {"000_loaded", f"{len(steps) + 1:03d}_written"}
        assert all(step["doc"] for step in steps) and len(graph) == steps[-1]["nodes"][1]
        assert_whole(*after(data))
        assert set(data["written"]["layers"]) == {str(number) for number in after(data)[0]}

    def test_a_conversion_that_fails(self, tmp_path: Path) -> None:
        """The page has the graph as loaded, and the error."""
        broken = parsed("main (float[3] x) => (float[3] y) { [odd] y = Unheard (x) }")
        raised(Exception, convert_model, broken, dump=tmp_path, match="Unheard")
        data = shown(tmp_path)
        assert "Failed" in {node["op"] for node in data["nodes"]} and any("Unheard" in note for note in data["notes"])

    def test_a_page_that_cannot_be_written_does_not_hide_the_error(self, tmp_path: Path) -> None:
        broken = parsed("main (float[3] x) => (float[3] y) { [odd] y = Unheard (x) }")

        def disturb(event: Any) -> None:
            if getattr(event, "name", "") == "translating":
                (tmp_path / PAGE).write_text("of another program")

        raised(Exception, convert_model, broken, observers=[Dumper(tmp_path, ["text"]), disturb], match="Unheard")
        assert (tmp_path / PAGE).read_text() == "of another program"

    def test_decisions(self, tmp_path: Path) -> None:
        """Refused and changed candidates, with the ids of their nodes and the reasons."""
        graph = parse(TEXT)
        gather = next(node for node in graph if type(node).__name__ == "Gather")
        dumper = Dumper(tmp_path)
        manager = Manager([EliminateGather()], [dumper])
        manager.config.veto(lambda node: node is gather and "it stays", "EliminateGather")
        with phase("translating", [dumper], graph):
            pass
        with phase("passes", [dumper], graph, manager):
            manager.run(graph)
        dumper.finish()
        assert manager.config.listener is None and manager.config.explanations == []
        data = shown(tmp_path)
        ids = [node["id"] for node in data["nodes"] if node["op"] == "Gather"]
        (reason,) = data["steps"][0]["reasons"]
        assert reason[:4] == [*ids, gather.path, "EliminateGather", "vetoed"]
        assert data["texts"][reason[4]] == "it stays"

    def test_an_earlier_page_of_another_program_stays(self, tmp_path: Path) -> None:
        """The conversion does not begin."""
        (tmp_path / PAGE).write_text("kept")
        with pytest.raises(FileError, match=r"index\.html would be overwritten by a dump"):
            convert_model(parsed("main (float[3] x) => (float[3] y) { y = Relu (x) }"), dump=tmp_path)
        assert (tmp_path / PAGE).read_text() == "kept" and names(tmp_path) == []

    def test_the_page_of_an_earlier_run_is_removed(self, tmp_path: Path) -> None:
        convert_model(parsed("main (float[3] x) => (float[3] y) { y = Relu (x) }"), dump=tmp_path)
        run(Dumper(tmp_path))
        assert not (tmp_path / PAGE).exists()


class TestPictures:
    @pytest.mark.usefixtures("without_graphviz")
    def test_a_missing_program_is_said_once(self, tmp_path: Path) -> None:
        with pytest.warns(UserWarning, match="install Graphviz") as heard:
            run(Dumper(tmp_path, ["svg"], shapes=True, types=False))
        assert len(heard) == 1 and names(tmp_path) == ["000_loaded.dot", "002_EliminateGather.dot"]
        text = (tmp_path / "000_loaded.dot").read_text("utf-8")
        assert "[2,1]" in text and "f32" not in text

    @pytest.mark.skipif(os.name == "nt", reason="the program is a shell script")
    @pytest.mark.parametrize(("formats", "endings"), [(("svg",), ["svg"]), (("dot", "svg"), ["dot", "svg"])])
    def test_the_program_draws(
        self, formats: tuple[str, ...], endings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        use_as_graphviz(tmp_path, monkeypatch, 'echo "<svg $1>"; cat')
        run(Dumper(tmp_path / "out", formats), [])
        assert names(tmp_path / "out") == [f"000_loaded.{ending}" for ending in endings]
        drawn = (tmp_path / "out" / "000_loaded.svg").read_text("utf-8")
        assert drawn == "<svg -Tsvg>\n" + to_dot(parse(TEXT), shapes=True, types=True)

    @pytest.mark.skipif(os.name == "nt", reason="the program is a shell script")
    def test_a_program_that_fails(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        use_as_graphviz(tmp_path, monkeypatch, "echo 'no fonts' >&2; exit 3")
        with pytest.warns(UserWarning, match="no fonts") as heard:
            run(Dumper(tmp_path / "out", ["svg"]))
        assert len(heard) == 2 and "000_loaded.svg is not drawn" in str(heard[0].message)
        assert names(tmp_path / "out") == ["000_loaded.dot", "002_EliminateGather.dot"]

    @pytest.mark.usefixtures("without_graphviz")
    def test_other_formats_need_no_program(self, tmp_path: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run(Dumper(tmp_path))


class TestOneRun:
    def test_files_of_an_earlier_run_are_removed(self, tmp_path: Path) -> None:
        run(Dumper(tmp_path))
        run(Dumper(tmp_path, ["json"]), [])
        assert names(tmp_path) == ["000_loaded.json"]
        run(Dumper(tmp_path, ["text"], only=["Idle"]))
        assert names(tmp_path) == []

    def test_also_those_of_a_run_that_failed(self, tmp_path: Path) -> None:
        run(Dumper(tmp_path))
        raised(FileError, convert_model, tmp_path / "no such.onnx", dump=tmp_path)
        assert names(tmp_path) == []

    def test_one_dumper_for_two_conversions(self, tmp_path: Path) -> None:
        dumper = Dumper(tmp_path, ["text"])
        run(dumper)
        run(dumper)
        assert names(tmp_path) == ["000_loaded.txt", "002_EliminateGather.txt"]

    def test_files_of_others_stay(self, tmp_path: Path) -> None:
        """Files with names like those of a dump, changed files, folders and links stay."""
        run(Dumper(tmp_path, ["text", "dot"]))
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "precious.txt").write_text("kept")
        (tmp_path / "notes.txt").write_text("kept")
        (tmp_path / "007_LoopToTI.txt").write_text("kept")
        (tmp_path / "002_EliminateGather.txt").write_text("changed by hand")
        dot = tmp_path / "002_EliminateGather.dot"
        shutil.move(dot, outside / "moved.dot")
        dot.symlink_to(outside / "moved.dot")
        (tmp_path / "000_loaded.dot").unlink()
        (tmp_path / "000_loaded.dot").mkdir()
        RunFolder(tmp_path).begin()
        assert names(tmp_path) == [
            "000_loaded.dot", "002_EliminateGather.dot", "002_EliminateGather.txt", "007_LoopToTI.txt", "notes.txt",
            "outside",
        ]
        assert dot.is_symlink() and names(outside) == ["moved.dot", "precious.txt"]
        assert (tmp_path / "002_EliminateGather.txt").read_text() == "changed by hand"

    @pytest.mark.parametrize("kind", ["file", "link", "dangling link", "folder"])
    def test_files_of_others_are_not_overwritten(self, kind: str, tmp_path: Path) -> None:
        file, other = tmp_path / "steps" / "000_loaded.txt", tmp_path / "other"
        file.parent.mkdir()
        if kind == "file":
            file.write_text("kept")
        elif kind == "folder":
            file.mkdir()
        else:
            file.symlink_to(other)
        if kind == "link":
            other.write_text("kept")
        with pytest.raises(FileError, match="would be overwritten by a dump") as caught:
            run(Dumper(tmp_path / "steps", ["json", "text"]))
        assert caught.value.code == "ML219" and names(tmp_path / "steps") == ["000_loaded.txt"]
        assert other.exists() == (kind == "link") and (kind == "folder" or file.is_symlink() == ("link" in kind))
        assert not file.is_file() or file.read_text() == "kept"

    @pytest.mark.parametrize("name", ["../victim.txt", "000_a/../../victim.txt", "victim.txt"])
    def test_an_index_cannot_name_files_elsewhere(self, name: str, tmp_path: Path) -> None:
        steps, victim = tmp_path / "steps", tmp_path / "victim.txt"
        folder = RunFolder(steps)
        folder.begin()
        folder.write({"000_a.txt": "kept"})
        (steps / "000_a").mkdir()
        for path in (victim, steps / "victim.txt"):
            path.write_text("kept")
        index = json.loads((steps / INDEX).read_text("utf-8"))
        index["files"] = {name: index["files"]["000_a.txt"], str(victim): index["files"]["000_a.txt"]}
        (steps / INDEX).write_text(json.dumps(index))
        RunFolder(steps).begin()
        assert victim.read_text() == "kept" and (steps / "victim.txt").read_text() == "kept"

    @pytest.mark.parametrize("content", ["", "[]", "{}", "null", '{"schema": "x", "version": 1, "files": {}}', "\xff"])
    def test_a_file_of_another_kind_in_the_place_of_the_index(self, content: str, tmp_path: Path) -> None:
        (tmp_path / INDEX).write_text(content, "latin-1")
        assert raised(FileError, run, Dumper(tmp_path), match="not the index").code == "ML219"
        assert (tmp_path / INDEX).read_text("latin-1") == content and names(tmp_path) == []

    def test_a_link_in_the_place_of_the_index(self, tmp_path: Path) -> None:
        run(Dumper(tmp_path / "a"))
        (tmp_path / "b").mkdir()
        (tmp_path / "b" / INDEX).symlink_to(tmp_path / "a" / INDEX)
        raised(FileError, run, Dumper(tmp_path / "b"), match="not the index")
        assert (tmp_path / "b" / INDEX).is_symlink() and len(names(tmp_path / "a")) == 6

    def test_a_killed_run_leaves_no_strangers(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The index names a file before it exists."""
        folder = RunFolder(tmp_path)
        folder.begin()

        def killed(path: Path, content: object) -> None:
            if path.name not in (INDEX, PAGE):
                raise KeyboardInterrupt
            path.write_text(str(content))

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr("mo_loop.look.dump.step_files.write_whole", killed)
            folder.write({"000_loaded.txt": "text"})
        assert "000_loaded.txt" in (tmp_path / INDEX).read_text("utf-8")
        (tmp_path / "000_loaded.txt").write_text("text")  # as if the end had come a moment later
        RunFolder(tmp_path).begin()
        assert names(tmp_path) == []

    def test_a_folder_that_cannot_be_made_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "taken").write_text("")
        assert raised(FileError, run, Dumper(tmp_path / "taken"), match="taken").code == "ML219"
