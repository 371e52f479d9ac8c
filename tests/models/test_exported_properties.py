"""Properties of every exported model: its diagnostics, origins, inspections, and its files read and written again.

Each is converted once for all tests, a third of them in `make test`.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mo_loop.api import Model, convert_model, save_model
from mo_loop.errors import ConversionWarning
from mo_loop.frontend.model import load
from mo_loop.frontend.onnx_graphs import all_graphs, tensors_of
from mo_loop.look.diagnostics.examine import examine
from mo_loop.look.inspection.description import below
from mo_loop.look.inspection.read import inspect
from mo_loop.options import ConvertOptions
from tests import MODELS
from tests.running.rows import turn
from tests.runtime.ir.support import assert_identical, opaque

LOST_SYMBOLS = {"t5_encoder_dynamo", "t5_step_dynamo", "whisper_decoder_dynamo", "whisper_step_dynamo"}
"""Two of their inputs share a symbol, which the IR does not name: some shapes follow from the symbol only."""


class Converted(NamedTuple):
    """A file of ONNX and what it becomes. The tests of a model share it and only read it."""

    path: Path
    model: Model


@pytest.fixture(scope="module", params=turn(sorted(MODELS.glob("*/*.onnx")), 3), ids=lambda path: path.stem)
def converted(request: pytest.FixtureRequest) -> Iterator[Converted]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConversionWarning)
        yield Converted(request.param, convert_model(request.param))


def test_no_diagnostic_is_an_error(converted: Converted) -> None:
    assert not [each for each in examine(converted.path, ConvertOptions()).diagnostics if each.level == "error"]


def test_every_node_has_an_origin(converted: Converted) -> None:
    """Each is an actual node or tensor of the model."""
    source = load(converted.path)
    known: set[Any] = set()
    for each in all_graphs(source):
        known.update(each.origin_of(node) for node in each.nodes)
        known.update((each.scope, tensor.name) for tensor in tensors_of(each))
    for scope in converted.model.graph.scopes():
        for node in scope:
            assert node.origins, node
            for origin in node.origins:
                assert source.functions or not known.isdisjoint((origin, (origin.scope, origin.output))), (node, origin)


def test_inspections(converted: Converted, tmp_path: Path) -> None:
    """Inputs and outputs of both sides have the same names; the numbers of an inspection are consistent."""
    save_model(converted.model, tmp_path / "model.xml")
    before, after = inspect(converted.path), inspect(tmp_path / "model.xml")
    assert [port.name for port in before.inputs] == [port.name for port in after.inputs]
    assert [port.name for port in before.outputs] == [port.name for port in after.outputs]
    for found in (before, after):
        others = ("Constant", "Const", "Parameter", "Result")
        counts = [each.count for each in found.operators if each.name not in others]
        assert sum(counts) == sum(each.nodes for each in found.scopes)
        paths = [each.path for each in found.scopes]
        assert len(set(paths)) == len(paths)
        branches = {branch.path: branch.nodes for each in below(found.control) for branch in each.branches}
        assert branches == {each.path: each.nodes for each in found.scopes if each.kind not in ("model", "function")}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("compress_to_fp16", [False, True], ids=["f32", "f16"])
def test_files_are_read_and_written_again(converted: Converted, compress_to_fp16: bool, tmp_path: Path) -> None:
    found = assert_identical(converted.model, tmp_path, compress_to_fp16=compress_to_fp16)
    assert set(opaque(found)) == ({"Reshape"} if converted.path.stem in LOST_SYMBOLS else set())
