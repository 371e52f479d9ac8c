"""Pictures between passes: which files are written, and the messages about them."""

import os
import warnings
from pathlib import Path

import pytest

from mo_loop.errors import FileError, UsageError
from mo_loop.text import parse, to_text
from mo_loop.text.dot import to_dot
from mo_loop.transforms import visualize
from mo_loop.transforms.common.nop_elimination import EliminateGather
from mo_loop.transforms.manager import Manager, Step
from mo_loop.transforms.visualize import VisualizeTree
from tests.unit.graphviz import use_as_graphviz

TEXT = """
graph main {
  %x = Parameter : f32[2,1]
  %g = Gather(%x, [0], 1) %y = ReLU(%g)
  Result(%y) names "y"
}"""


@pytest.fixture
def without_graphviz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visualize, "_program", lambda: None)


class TestVisualizeTree:
    @pytest.mark.parametrize("options", [{}, {"shapes": True}, {"types": True}, {"shapes": True, "types": True}])
    def test_alone(self, options: dict[str, bool], tmp_path: Path) -> None:
        graph = parse(TEXT)
        before = to_text(graph)
        assert VisualizeTree(tmp_path / "new" / "graph.dot", **options).run(graph) is False
        assert to_text(graph) == before
        assert (tmp_path / "new" / "graph.dot").read_text("utf-8") == to_dot(graph, **options)
        assert [path.name for path in (tmp_path / "new").iterdir()] == ["graph.dot"]

    def test_between_two_passes(self, tmp_path: Path) -> None:
        """It shows the graph at that point."""
        graph = parse(TEXT)
        steps: list[Step] = []
        passes = [VisualizeTree(tmp_path / "a.dot"), EliminateGather(), VisualizeTree(tmp_path / "b.dot")]
        assert Manager(passes, [steps.append]).run(graph) and [step.changed for step in steps] == [False, True, False]
        assert "Gather" in (tmp_path / "a.dot").read_text("utf-8")
        assert "Gather" not in (tmp_path / "b.dot").read_text("utf-8")

    @pytest.mark.usefixtures("without_graphviz")
    def test_a_missing_program_is_said(self, tmp_path: Path) -> None:
        with pytest.warns(UserWarning, match="install Graphviz") as heard:
            VisualizeTree(tmp_path / "graph.svg").run(parse(TEXT))
        assert "graph.svg is not drawn" in str(heard[0].message) and "graph.dot is written" in str(heard[0].message)
        assert [path.name for path in tmp_path.iterdir()] == ["graph.dot"]

    @pytest.mark.usefixtures("without_graphviz")
    def test_a_dot_file_needs_no_program(self, tmp_path: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            VisualizeTree(tmp_path / "graph.dot").run(parse(TEXT))

    @pytest.mark.skipif(os.name == "nt", reason="the program is a shell script")
    def test_the_program_draws(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        use_as_graphviz(tmp_path, monkeypatch, 'echo "<svg $1>"; cat')
        VisualizeTree(tmp_path / "out" / "graph.svg").run(parse(TEXT))
        source = (tmp_path / "out" / "graph.dot").read_text("utf-8")
        assert (tmp_path / "out" / "graph.svg").read_text("utf-8") == f"<svg -Tsvg>\n{source}"

    @pytest.mark.skipif(os.name == "nt", reason="the program is a shell script")
    @pytest.mark.parametrize(("script", "said"), [
        ("echo half; echo 'no fonts' >&2; exit 3", "ended with code 3: no fonts"),
        ("exec sleep 60", "took more than"),
    ])
    def test_a_program_that_fails(
        self, script: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No partial file is written; an older picture stays."""
        use_as_graphviz(tmp_path, monkeypatch, script)
        monkeypatch.setattr(visualize, "LIMIT", 0.5)
        folder = tmp_path / "out"
        folder.mkdir()
        (folder / "graph.svg").write_text("old")
        with pytest.warns(UserWarning, match=said):
            VisualizeTree(folder / "graph.svg").run(parse(TEXT))
        assert (folder / "graph.svg").read_text() == "old"
        assert sorted(path.name for path in folder.iterdir()) == ["graph.dot", "graph.svg"]

    @pytest.mark.parametrize("name", ["graph", "graph.png", "graph.DOT"])
    def test_other_endings(self, name: str) -> None:
        with pytest.raises(UsageError, match="neither"):
            VisualizeTree(name)

    def test_places_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "taken").write_text("kept")
        (tmp_path / "folder.dot").mkdir()
        for path in (tmp_path / "taken" / "graph.dot", tmp_path / "folder.dot"):
            with pytest.raises(FileError, match=r"^ML219: "):
                VisualizeTree(path).run(parse(TEXT))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.dot", "taken"]
