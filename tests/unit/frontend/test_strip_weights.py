"""Large weights stay in their file, wherever they are in the model."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mo_loop import convert_model, save_model
from mo_loop.errors import FileError
from mo_loop.frontend import model as model_file
from mo_loop.frontend.strip_weights import FLOATS, INTS, SMALL, STRINGS, _Walk, listed, strip_weights
from mo_loop.graph import Graph
from mo_loop.graph.tensor import DataFile, FileTensor
from mo_loop.ir import bin
from mo_loop.ops.base import Constant

RNG = np.random.default_rng(7)


def stripped(path: Path) -> bytes:
    with open(path, "rb") as file:
        return strip_weights(file, path.name)


def weight(name: str, dtype: Any = np.float32, packed: str = "") -> TensorProto:
    """A tensor well above the limit, as raw data or in the typed field `packed`."""
    array = RNG.standard_normal((64, 64)).astype(dtype)
    if not packed:
        return numpy_helper.from_array(array, name)
    tensor = TensorProto(name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype))
    getattr(tensor, packed).extend(array.reshape(-1).tolist())
    return tensor


def everywhere() -> onnx.ModelProto:
    """Large data in initializers of three forms, a Constant node, both branches of an If, and a function."""
    node = helper.make_node
    branches = {
        f"{side}_branch": helper.make_graph(
            [node("MatMul", ["x", f"w_{side}"], [f"o_{side}"])], side, [],
            [helper.make_tensor_value_info(f"o_{side}", 1, [64, 64])], [weight(f"w_{side}")],
        )
        for side in ("then", "else")
    }
    function = helper.make_function(
        "local", "F", ["a"], ["b"],
        [node("Constant", [], ["k"], value=weight("k")), node("Add", ["a", "k"], ["b"])],
        [helper.make_opsetid("", 17)],
    )
    nodes = [
        node("Constant", [], ["c"], value=weight("c")), node("Add", ["x", "c"], ["a"]),
        node("Add", ["a", "w_raw"], ["b"]), node("Add", ["b", "w_packed"], ["d"]),
        node("Cast", ["w_double"], ["e"], to=1), node("Add", ["d", "e"], ["f"]),
        node("If", ["flag"], ["g"], **branches), node("F", ["g"], ["h"], domain="local"),
        node("Add", ["f", "h"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "everywhere",
        [helper.make_tensor_value_info("x", 1, [64, 64]), helper.make_tensor_value_info("flag", 9, [])],
        [helper.make_tensor_value_info("y", 1, [64, 64])],
        [weight("w_raw"), weight("w_packed", packed="float_data"), weight("w_double", np.float64, "double_data")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=10)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(model_file, "LARGE", 0)
    onnx.save(everywhere(), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def large_constants(graph: Graph) -> list[Any]:
    return [node.tensor for scope in graph.scopes() for node in scope.of(Constant) if node.tensor.nbytes > SMALL]


def test_the_stripped_model_holds_no_large_data(path: Path) -> None:
    data = stripped(path)
    assert len(data) < 4096 < 8 * 64 * 64 * 4 < path.stat().st_size
    onnx.ModelProto.FromString(data)


def test_every_large_constant_is_a_span(path: Path) -> None:
    tensors = large_constants(convert_model(path).graph)
    in_memory = [tensor for tensor in tensors if not isinstance(tensor, FileTensor)]
    assert len(tensors) == 7
    assert len(in_memory) == 1  # the Cast of w_double is folded, being small enough


def test_spans_write_the_same_files_as_arrays(path: Path, tmp_path: Path) -> None:
    save_model(convert_model(path), tmp_path / "spans.xml")
    in_memory = convert_model(onnx.load(path))
    assert not any(isinstance(tensor, FileTensor) for tensor in large_constants(in_memory.graph))
    save_model(in_memory, tmp_path / "arrays.xml")
    for ending in ("xml", "bin"):
        assert (tmp_path / f"spans.{ending}").read_bytes() == (tmp_path / f"arrays.{ending}").read_bytes()


@pytest.mark.parametrize("cut", [1, 100, 5000, 40000])
def test_a_file_cut_short_is_refused(path: Path, cut: int) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    with pytest.raises(FileError) as caught:
        convert_model(path)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("seed", range(20))
def test_damaged_bytes_never_end_in_a_bug(path: Path, seed: int) -> None:
    data = bytearray(path.read_bytes())
    for position in np.random.default_rng(seed).integers(0, 600, 3):
        data[position] ^= 1 << (seed % 8)
    path.write_bytes(data)
    try:
        convert_model(path)
    except Exception as error:
        assert getattr(error, "exit_code", 4) in (2, 3), error


class TestCopying:
    SIZE = 300_001

    @pytest.fixture
    def source(self, tmp_path: Path) -> Path:
        path = tmp_path / "source"
        path.write_bytes(RNG.bytes(self.SIZE + 10))
        return path

    def copied(self, source: Path, tmp_path: Path) -> bytes:
        with open(tmp_path / "target", "wb") as target:
            target.write(b"head")
            bin.append_span(DataFile(str(source)), 5, self.SIZE, target)
            target.write(b"tail")
        return (tmp_path / "target").read_bytes()

    @pytest.mark.parametrize("piece", [1000, 4096, 1 << 20])
    def test_pieces_make_the_whole(
        self, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
    ) -> None:
        monkeypatch.setattr(bin, "PIECE", piece)
        assert self.copied(source, tmp_path) == b"head" + source.read_bytes()[5 : 5 + self.SIZE] + b"tail"

    def test_into_memory(self, source: Path) -> None:
        target = io.BytesIO()
        bin.append_span(DataFile(str(source)), 5, self.SIZE, target)
        assert target.getvalue() == source.read_bytes()[5 : 5 + self.SIZE]

    def test_a_short_source_is_said(self, source: Path) -> None:
        with pytest.raises(FileError):
            bin.append_span(DataFile(str(source)), 100, self.SIZE, io.BytesIO())


def test_a_default_location_after_the_data_does_not_hide_where_they_are(tmp_path: Path) -> None:
    tensor = weight("w")
    tensor.data_location = TensorProto.DEFAULT  # ONNX Runtime's quantiser writes the field with its default value
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])], "main",
        [helper.make_tensor_value_info("x", 1, [64, 64])], [helper.make_tensor_value_info("y", 1, [64, 64])], [tensor],
    )
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    found = onnx.load_from_string(stripped(path)).graph.initializer[0]
    assert (found.raw_data, found.data_location) == (b"", TensorProto.EXTERNAL)


def test_lists_of_attributes_before_large_data(tmp_path: Path) -> None:
    """Fields under one key are skipped together, as far as their message reaches, over the ends of what is read."""
    words = ["x" * length for length in range(40)]
    numbers = RNG.integers(-(2**40), 2**40, 30_000).tolist()
    lists = {"ints": numbers, "floats": [0.5] * 30_000, "strings": ["BRANCH_LEQ"] * 9_000, "words": words}
    nodes = [
        helper.make_node("F", ["x"], ["y"], domain="local", **lists, tensor=weight("t")),
        helper.make_node("F", ["y"], ["z"], domain="local", ints=[8] * 9, more=[8]),
    ]
    model = helper.make_model(helper.make_graph(nodes, "g", [], [], [weight("w")]))
    onnx.save(model, tmp_path / "model.onnx")
    found = onnx.load_from_string(stripped(tmp_path / "model.onnx"))

    def large(one: onnx.ModelProto) -> list[TensorProto]:
        return [one.graph.initializer[0], *(each.t for each in one.graph.node[0].attribute if each.HasField("t"))]

    for each, original in zip(large(found), large(model), strict=True):
        assert each.data_location == TensorProto.EXTERNAL
        each.CopyFrom(original)
    assert found == model


def forest(leaves: int) -> onnx.ModelProto:
    """A tree whose node k has the nodes 2k + 1 and 2k + 2 below it."""
    inner, count = range(leaves - 1), 2 * leaves - 1
    lists = {
        "nodes_treeids": [7] * count, "nodes_nodeids": range(count), "nodes_featureids": [k % 2 for k in range(count)],
        "nodes_modes": ["BRANCH_LEQ"] * (leaves - 1) + ["LEAF"] * leaves,
        "nodes_values": RNG.standard_normal(count).tolist(),
        "nodes_truenodeids": [2 * k + 1 for k in inner] + [0] * leaves,
        "nodes_falsenodeids": [2 * k + 2 for k in inner] + [0] * leaves,
        "target_treeids": [7] * leaves, "target_nodeids": range(leaves - 1, count), "target_ids": [0] * leaves,
        "target_weights": RNG.standard_normal(leaves).tolist(),
    }
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, **lists)
    x, y = (helper.make_tensor_value_info(name, 1, ["N", 2]) for name in "xy")
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=opsets, ir_version=9)


def test_lists_of_trees_stay_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = forest(3000)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    monkeypatch.setattr(model_file, "LARGE", 0)
    attributes = model_file.load(path, lists_in_file=True).proto.graph.node[0].attribute
    assert all(each.HasField("t") for each in attributes if each.name != "n_targets")
    assert sum(each.ByteSize() for each in attributes) < 2000
    assert len(model_file.load(path).proto.graph.node[0].attribute[1].ints) == 5999
    for source, name in ((path, "file"), (model, "memory")):
        save_model(convert_model(source), tmp_path / f"{name}.xml")
    assert (tmp_path / "file.bin").read_bytes() == (tmp_path / "memory.bin").read_bytes()


@pytest.mark.parametrize("value", [
    [0, -1, 127, 128, 2**31 - 1, -(2**31)], [2**31, -(2**63), 2**63 - 1], [0.5, -1e30], ["", "a" * 200, "é" * 20000],
])
def test_what_lists_in_a_file_hold(value: list[Any]) -> None:
    value = value * 3000 if isinstance(value[0], int | float) else value
    attribute = helper.make_attribute("nodes_values", value)
    file = io.BytesIO(attribute.SerializeToString())
    walk = _Walk(file, "m", lists=True)
    kept = onnx.AttributeProto.FromString(walk.message("attribute", 0, len(file.getvalue())))
    start, size = (int(each.value) for each in kept.t.external_data if each.key != "location")
    whole = np.frombuffer(file.getvalue()[start : start + size], np.uint8)
    kind = FLOATS if attribute.floats else INTS if attribute.ints else STRINGS
    expected = [np.float32(each) for each in value] if kind == FLOATS else value
    assert list(listed(whole, kind)) == expected and kept.type == attribute.type and tuple(kept.t.dims) == (size,)


@pytest.mark.parametrize("change", ["name", "type", "tensor", "order", "packed"])
def test_lists_that_are_not_kept_in_the_file(change: str) -> None:
    attribute = helper.make_attribute("axes" if change == "name" else "nodes_nodeids", [1] * 5000)
    if change == "type":
        attribute.ClearField("type")
    if change == "tensor":
        attribute.t.name = "t"
    data = attribute.SerializeToString()
    if change == "order":  # another field between the items
        data = b"\x40\x03" + data
    if change == "packed":
        data = data[: data.index(b"\x40\x01")] + b"\x42\x88\x27" + b"\x01" * 5000 + b"\xa0\x01\x07"
    assert _Walk(io.BytesIO(data), "m", lists=True).message("attribute", 0, len(data)) == data
