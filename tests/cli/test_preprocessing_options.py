"""The options of preprocessing: their effect on the IR, and refused values."""

from pathlib import Path
from typing import Any

import pytest

from mo_loop import ops
from mo_loop.api import read_model
from mo_loop.graph import Graph
from mo_loop.preprocessing import layout_of
from tests.harness import parsed

from .commands import convert, ended, saved

PICTURE = "main (float[1,3,4,6] x) => (float[1,3,4,6] y) { y = Relu (x) }"


def converted(tmp_path: Path, *flags: str) -> Graph:
    """The IR that the command writes with these flags."""
    source, target = saved(parsed(PICTURE), tmp_path), tmp_path / "out.xml"
    ended(convert(source, "-o", target, *flags))
    return read_model(target).graph


def constants(graph: Graph, kind: type[Any]) -> list[Any]:
    return [each.inputs[1].constant.reshape(-1).tolist() for each in graph.of(kind)]


def test_all_options_together(tmp_path: Path) -> None:
    graph = converted(
        tmp_path, "--layout", "x(nchw->nhwc)", "--mean-values", "x[1,2,3]", "--scale-values", "(2,4,8)",
        "--reverse-input-channels", "--batch", "5",
    )
    [x] = graph.parameters
    assert x.output.shape == (5, 4, 6, 3) and str(layout_of(x.output)) == "[N,H,W,C]"
    assert constants(graph, ops.Subtract) == [[1, 2, 3]] and constants(graph, ops.Divide) == [[2, 4, 8]]
    assert [2, 1, 0] in constants(graph, ops.Gather) and constants(graph, ops.Transpose) == [[0, 3, 1, 2]]


def test_one_scale(tmp_path: Path) -> None:
    assert constants(converted(tmp_path, "--scale", "58.8"), ops.Divide) == [[pytest.approx(58.8)]]


@pytest.mark.parametrize(("flags", "shape", "layout"), [
    (["--source-layout", "nchw", "--target-layout", "nhwc"], (1, 4, 6, 3), "[N,H,W,C]"),
    (["--source-layout", "x(nchw)", "--target-layout", "x(nhwc)"], (1, 4, 6, 3), "[N,H,W,C]"),
    (["--source_layout=nchw"], (1, 3, 4, 6), "[N,C,H,W]"),
    (["--target-layout", "n..."], (1, 3, 4, 6), "[N,...]"),
])
def test_both_sides_of_a_layout(tmp_path: Path, flags: list[str], shape: tuple[int, ...], layout: str) -> None:
    [x] = converted(tmp_path, *flags).parameters
    assert (x.output.shape, str(layout_of(x.output))) == (shape, layout)


def test_its_passes_are_listed_and_explained(tmp_path: Path) -> None:
    source = saved(parsed(PICTURE), tmp_path)
    listed = convert("--passes", "--mean-values", "1", "--reverse-input-channels", "--layout", "nchw").stdout
    names = [line.split()[1] for line in listed.splitlines() if line.strip()[:1].isdigit()]
    first = ["ChangeLayouts", "SubtractMean", "ReverseChannels", "MergeChannelOrder"]
    assert names[:4] == first and names[-1] == "RecordLayouts"
    flags = ("-o", tmp_path / "out.xml", "--reverse-input-channels", "--explain-pass", "MergeChannelOrder")
    assert "y/sink_port_0 depends on the order of the channels" in convert(source, *flags).stderr
