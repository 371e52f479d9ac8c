"""Which sizes of inputs may change: what the IR says of them, and what the runtime does when it is given them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from mo_loop.api import Model, convert_model, read_model, save_model
from mo_loop.compare.execution.isolated import IsolatedError, isolated
from mo_loop.compare.results.array_comparison import compare_all
from mo_loop.graph import Graph
from mo_loop.graph.dimension import Dim, Symbol, named, opened
from mo_loop.graph.types import TensorType, f32
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.control import If
from mo_loop.ops.recurrent import RNNSequence as RNNSequence
from mo_loop.transforms.loops.pieces import loops_in
from mo_loop.transforms.write_sizes import WriteSizes
from tests.cases import read_cases
from tests.fuzz.reshaping import NUMBERS, UNKNOWN, of_unknown_sizes, run_reshaped
from tests.harness import floats, oracle, raised


def converted(model: Any, folder: Path, **options: Any) -> dict[str, str]:
    """Write the IR; returns what its rt_info says of sizes, as OpenVINO reads it."""
    made: Model = convert_model(model, **options)
    save_model(made, folder / "model.xml")
    sizes: dict[str, str] = made.graph.rt_info["sizes"]
    assert read_model(folder / "model.xml").graph.rt_info["sizes"] == sizes
    assert isolated(sizes_in, folder / "model.xml", list(sizes)) == sizes
    return sizes


def sizes_in(path: Path, names: list[str]) -> dict[str, str]:
    """In the worker: the entry of each input."""
    from mo_loop.compare.execution.runtime import read_ir

    model = read_ir(path)
    return {name: model.get_rt_info(["sizes", name]).astype(str) for name in names}


def fed(values: dict[str, Any]) -> dict[str, Any]:
    """Arrays of the shapes that are given in place of arrays, each with its own numbers."""
    items = enumerate(values.items())
    return {name: floats(*each, seed=seed) if isinstance(each, tuple) else each for seed, (name, each) in items}


def judge(model: Any, *right: dict[str, Any], refused: Sequence[dict[str, Any]] = (), **options: Any) -> dict[str, str]:
    """Convert, and give the IR the sizes of arrays: it has the results of the model with unknown sizes for `right`, and
    refuses `refused`. Returns what its rt_info says of sizes."""
    with TemporaryDirectory() as folder:
        sizes = converted(model, Path(folder), **options)
        feeds = [fed(each) for each in right]
        wanted = oracle(of_unknown_sizes(model), feeds).values if feeds else []
        for way in (NUMBERS, UNKNOWN):
            for each, expected in zip(feeds, wanted, strict=True):
                found = reshaped(folder, way, each)
                assert all(compare_all(expected, found, rtol=1e-4, atol=1e-4))
            for each in refused:
                error = raised(IsolatedError, reshaped, folder, way, fed(each), match="RuntimeError")
                assert error.status == "error"
    return sizes


def reshaped(folder: str, way: str, feeds: dict[str, Any]) -> Any:
    """The results of the IR with the sizes of the feeds."""
    shapes = {name: np.shape(array) for name, array in feeds.items()}
    return isolated(run_reshaped, Path(folder, "model.xml"), way, feeds, shapes)


def test_what_is_assumed_of_several() -> None:
    """Sizes that are equal to each other, and at least a number."""
    graph = Graph()
    own = [opened("x", axis, 8) for axis in range(3)]
    least = Dim(((Symbol("x[0]", 4, None, 8), 1),))
    x = Parameter(graph=graph, dtype=f32, shape=(least, own[1], own[2]), name="x")
    y = Parameter(graph=graph, dtype=f32, shape=(least, own[1], 8, named("N")), name="y")
    z = Parameter(graph=graph, dtype=f32, name="z")
    x.__dict__["sizes"] = tuple(own)
    y.__dict__["sizes"] = (*(opened("y", axis, 8) for axis in range(3)), None)
    for each in (x, y, z):
        Result(each.output)
    WriteSizes().run_on_graph(graph)
    assert graph.rt_info["sizes"] == {"x": "n1=4..,n2,?", "y": "n1=4..,n2,8,?", "z": "..."}
    assert [each.value_type for each in (x, y)] == [
        TensorType(f32, (8, 8, 8)), TensorType(f32, (8, 8, 8, y.value_type.dims[3])),
    ]


def require_fixed(model: Any, steps: int, *names: str) -> None:
    """An unrolled loop fixes the number of its steps, and a loop does not."""

    def feeds(length: int, batch: int) -> dict[str, Any]:
        return {**dict.fromkeys(names, (length, batch, 3)), "start": (batch, 3)}

    sizes = judge(model, feeds(5, 2), feeds(5, 4), refused=[feeds(6, 2), feeds(4, 2)], unroll=steps)
    assert {sizes[name].partition(",")[0] for name in names} == {"5"} and "2" not in sizes["start"].split(",")
    assert "5" not in judge(model)["x"]


def forms(model: Any) -> list[list[int]]:
    """The steps in an iteration of each loop for the declared sizes, for each form of the model."""
    found = convert_model(model).graph.of(If)
    return [[loop.steps for loop in loops_in(each.then_body)] for each in found]


read_cases(globals())
