"""Models that are pickled and copied: the IR has the same bytes, in another process too."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import mo_loop
from mo_loop import ops
from mo_loop.errors import ExtensionError, FileError
from mo_loop.graph import Graph
from mo_loop.graph.dimension import Dim, fresh
from mo_loop.graph.tensor import ArrayTensor, DeferredTensor, FileTensor
from mo_loop.graph.types import f32, foreign, u4
from mo_loop.ir.xml import in_memory
from mo_loop.ops.base import Constant, Op, Parameter, Result
from mo_loop.text import parse, to_text
from tests import MODELS
from tests.unit.graph.graphs import LOOP, chain

FILES = sorted(path.relative_to(MODELS).as_posix() for path in MODELS.rglob("*.onnx"))
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def in_another_process(function: Any, *arguments: Any) -> Any:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


@pytest.mark.filterwarnings("ignore::mo_loop.errors.ConversionWarning")
@pytest.mark.sweep(8)
@pytest.mark.parametrize("file", FILES)
def test_exported_models(file: str) -> None:
    model = mo_loop.convert_model(MODELS / file)
    wanted = in_memory(model.graph)
    for protocol in (0, pickle.HIGHEST_PROTOCOL):
        read = pickle.loads(pickle.dumps(model, protocol))
        assert to_text(read.graph) == to_text(model.graph) and in_memory(read.graph) == wanted
    assert in_memory(copy.deepcopy(model).graph) == wanted == in_memory(model.graph)


def test_long_chains_and_deep_bodies() -> None:
    graph, _ = chain(20_000)
    nested, _ = chain(3)
    for _ in range(40):
        nested = around(nested)
    for each, protocols in ((graph, [pickle.HIGHEST_PROTOCOL]), (nested, PROTOCOLS)):
        wanted = in_memory(each)
        assert in_memory(copy.deepcopy(each)) == wanted
        for protocol in protocols:
            assert in_memory(pickle.loads(pickle.dumps(each, protocol))) == wanted


def around(body: Graph) -> Graph:
    """A graph with a Loop that runs `body` twice."""
    from mo_loop.ops.port_map import Final, Merged

    condition = Result(Constant(True, graph=body).output)
    graph = Graph("around")
    x = Parameter(graph=graph, dtype=f32, shape=(2,))
    (state,), end = body.parameters, body.results[0]
    entries: dict[str, Any] = {"input_map": (Merged(state, end),), "output_map": (Final(end),)}
    Result(ops.Loop(2, np.array(True), x, body=body, condition=condition, graph=graph, **entries).output)
    return graph


def test_a_body_is_pickled_without_its_owner_and_keeps_its_nodes() -> None:
    graph = parse(LOOP)
    (loop,) = graph.nodes_with_bodies()
    (entry, *_), (body,) = loop.input_map, loop.bodies  # type: ignore[attr-defined]
    read, read_entry, node, value = pickle.loads(pickle.dumps((body, entry, entry.result, entry.result.value)))
    assert read.owner is None and body.owner is loop
    assert read_entry.parameter is read.parameters[0] and node is read_entry.result and value is node.value
    again = pickle.loads(pickle.dumps(loop))
    assert [each.owner for each in again.bodies] == [again] and again.input_map[0].result.graph is again.bodies[0]


def test_a_fresh_symbol_is_read_as_one_that_is_new_here(tmp_path: Path) -> None:
    """The other process has made symbols of the same numbers."""
    one, other = fresh(1, 8), fresh(1, 8)
    assert isinstance(one, Dim) and isinstance(other, Dim)
    read, again, different = pickle.loads(pickle.dumps([one, one + 1, other + 1]))
    assert read + 1 == again != different and read not in (one, other) and read != fresh(1, 8)
    assert repr(read) == repr(one)
    (x,) = in_another_process(hashes_agree, [one])
    assert x


def hashes_agree(dims: list[Dim]) -> list[bool]:
    return [each in {each.terms and Dim(each.terms): 0} and fresh(1, 8) != each for each in dims]


def test_a_node_keeps_its_types_when_they_are_inferred_again() -> None:
    """The numbers of the symbols that its inference made are those of its types."""
    graph = parse("%x = Parameter : f32[?] %y = NonZero(%x) %z = Negative(%x) Result(%y)")
    read = pickle.loads(pickle.dumps(graph))
    (node,) = read.of(ops.NonZero)
    before = node.output.type
    read.touch(node)
    read.validate()
    assert node.output.type is before


def weights_in_a_file(folder: Path) -> Path:
    values = np.arange(6000, dtype=np.float32)
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Add", ["x", "w"], ["y"]), helper.make_node("Mul", ["y", "half"], ["z"])], "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [6000])],
            [helper.make_tensor_value_info("z", TensorProto.FLOAT, [6000])],
            [onnx.numpy_helper.from_array(values, "w"), onnx.numpy_helper.from_array(values / 2, "half")],
        ),
        opset_imports=[helper.make_opsetid("", 18)],
    )
    path = folder / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.data", size_threshold=0)
    return path


def test_a_pickle_holds_the_weights_of_files(tmp_path: Path) -> None:
    path = weights_in_a_file(tmp_path)
    model = mo_loop.convert_model(path)
    wanted = in_memory(model.graph)
    data = pickle.dumps(model)
    mo_loop.save_model(model, tmp_path / "ir.xml")
    of_ir = pickle.dumps(mo_loop.read_model(tmp_path / "ir.xml"))
    for each in tmp_path.iterdir():
        each.unlink()
    assert in_memory(pickle.loads(data).graph) == wanted == in_memory(pickle.loads(of_ir).graph)
    with pytest.raises(FileError):
        pickle.dumps(model)


def test_a_deep_copy_shares_the_weights_and_nothing_else(tmp_path: Path) -> None:
    model = mo_loop.convert_model(weights_in_a_file(tmp_path))
    copied = copy.deepcopy(model)
    weights = [[node.tensor for node in each.graph.of(Constant)] for each in (model, copied)]
    assert all(a is b and isinstance(a, FileTensor) for a, b in zip(*weights, strict=True))
    copied.graph.of(ops.Add)[0].name = "renamed"
    copied.graph.rt_info["new"] = "entry"
    assert model.graph.of(ops.Add)[0].name != "renamed" and "new" not in model.graph.rt_info


def test_tensors_of_every_kind() -> None:
    nibbles = np.frombuffer(b"\x21\xf3", np.uint8)  # three elements: the last four bits belong to none
    for tensor in (
        ArrayTensor(np.array([["a", "bc"]], object)), ArrayTensor(np.zeros((0, 3), np.float32)),
        ArrayTensor(np.array(1.5, np.float64)), DeferredTensor(u4, (3,), lambda: iter([nibbles.tobytes()])),
        DeferredTensor(foreign("f7", "F7"), (2,), lambda: iter([b"ab"])),
    ):
        for protocol in PROTOCOLS:
            read = pickle.loads(pickle.dumps(tensor, protocol))
            assert (read.dtype, read.shape, b"".join(read.blocks())) == (
                tensor.dtype, tensor.shape, b"".join(tensor.blocks()))


def test_a_class_that_no_other_process_can_import_is_refused() -> None:
    class Local(Op, opset=1):
        def infer(self, x):
            return x

    graph, _ = chain(1)
    Result(Local(graph.parameters[0], name="mine"))
    with pytest.raises(ExtensionError, match=r"ML268: the model cannot be pickled: .*Local(.|\n)*where: mine"):
        pickle.dumps(mo_loop.Model(graph))
    assert len(copy.deepcopy(graph)) == len(graph)
