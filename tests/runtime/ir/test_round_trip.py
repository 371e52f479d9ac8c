"""Written files are read and written again: the same bytes, .xml and .bin.

tests/models/test_exported_properties.py does it with the exported models.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mo_loop import ops
from mo_loop.api import Model, convert_model, read_model, save_model
from mo_loop.errors import MoLoopError
from mo_loop.graph import Graph
from mo_loop.graph.dimension import fresh, high, low
from mo_loop.graph.tensor import ArrayTensor, FileTensor
from mo_loop.graph.types import BY_NAME, f32, i64, string
from mo_loop.ir.reader import layer_types
from mo_loop.ir.xml import spelled
from mo_loop.ops.base import Constant, Op, Parameter, Result
from mo_loop.ops.control import Loop
from mo_loop.text import parse
from mo_loop.transforms.last_check import last_check
from tests.cases import read_cases
from tests.fuzz.control_flow.generator import generate
from tests.golden.test_golden import CASES, read
from tests.runtime.ir.support import assert_identical

SEED = 2026


@pytest.mark.sweep(6)
@pytest.mark.parametrize("index", range(60))
def test_random_control_flow(index: int, tmp_path: Path) -> None:
    assert_identical(convert_model(generate(SEED, index).model), tmp_path)


def golden(path: Path) -> Iterator[tuple[str, Graph]]:
    """The graphs of a golden case that the IR can express, with the name of the part."""
    case = read(path.read_text(encoding="utf-8"))
    for part in ("input", "expected"):
        try:
            graph = parse(getattr(case, part))
            last_check(graph)
        except MoLoopError:
            continue
        if any(loop.none_below_zero for scope in graph.scopes() for loop in scope.of(Loop)):
            continue  # lowered before anything is written: the IR's own trip count below 0 is endless
        yield part, graph


def test_most_golden_cases_are_forms_of_the_ir() -> None:
    assert sum(1 for path in CASES for _ in golden(path)) > len(CASES)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_golden_cases(path: Path, tmp_path: Path) -> None:
    for part, graph in golden(path):
        for number, end in enumerate(graph.results):
            if not end.output_names:
                end.__dict__["output_names"] = (f"out{number}",)  # as every converted model has
        for number, end in enumerate(graph.parameters):
            end.name = end.name or f"in{number}"
        folder = tmp_path / part
        folder.mkdir()
        assert_identical(Model(graph), folder)


def constants(*tensors: ArrayTensor) -> Model:
    """A model whose outputs are constants."""
    graph = Graph("constants")
    for number, tensor in enumerate(tensors):
        Result(Constant(tensor, graph=graph, name=f"c{number}").output, name=f"r{number}", names=(f"r{number}",))
    return Model(graph)


PORTABLE = [each for each in BY_NAME.values() if each.precision and each is not string]


@pytest.mark.parametrize("dtype", PORTABLE, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("shape", [(), (3,), (5, 7), (0, 2), (3000,)], ids=str)
def test_constants_of_every_type(dtype: object, shape: tuple[int, ...], tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).integers(1, 3, shape).astype(dtype.numpy)  # type: ignore[attr-defined]
    tensors = ArrayTensor(numbers, dtype), ArrayTensor(np.array([1.5], np.float32))  # type: ignore[arg-type]
    graph = assert_identical(constants(*tensors), tmp_path)
    first, second = (node.value.node.tensor for node in graph.results)
    assert isinstance(first, FileTensor) and first.dtype is dtype
    assert np.array_equal(first.array().astype(np.float32), numbers.astype(np.float32))
    assert second.array() == 1.5


@pytest.mark.parametrize("words", [[], [""], ["ab", "", "ü€"], [["a", "bc"], ["def", "x" * 5000]]], ids=len)
def test_strings(words: list[object], tmp_path: Path) -> None:
    array = np.array(words, object)
    after = ArrayTensor(np.array([1.5, 2.5], np.float32))
    graph = assert_identical(constants(ArrayTensor(array), after), tmp_path)
    first, second = (node.value.node.tensor for node in graph.results)
    assert first.shape == array.shape and first.array().tolist() == array.tolist()
    assert second.array().tolist() == [1.5, 2.5]
    assert first.reshaped((array.size,)).array().tolist() == array.reshape(-1).tolist()


def test_weights_are_not_loaded(tmp_path: Path) -> None:
    save_model(constants(ArrayTensor(np.arange(100_000, dtype=np.float32))), tmp_path / "a.xml")
    graph = read_model(tmp_path / "a.xml").graph
    (tensor,) = (node.tensor for node in graph.of(Constant))
    assert isinstance(tensor, FileTensor) and tensor.path == str(tmp_path / "a.bin")


def test_weights_may_lie_elsewhere(tmp_path: Path) -> None:
    save_model(constants(ArrayTensor(np.array([1, 2, 3]))), tmp_path / "a.xml")
    (tmp_path / "a.bin").rename(tmp_path / "other")
    assert read_model(tmp_path / "a.xml", tmp_path / "other").graph.of(Constant)[0].array.tolist() == [1, 2, 3]


def test_a_model_is_not_written_over_the_weights_it_was_read_from(tmp_path: Path) -> None:
    save_model(constants(ArrayTensor(np.array([1, 2, 3]))), tmp_path / "a.xml")
    with pytest.raises(MoLoopError, match="holds weights of the model itself"):
        save_model(read_model(tmp_path / "a.xml"), tmp_path / "a.xml")


def test_weights_that_were_folded_are_not_overwritten(tmp_path: Path) -> None:
    """Nothing of the graph lies in the file any more, and the model still needs it."""
    x = onnx.helper.make_tensor_value_info("x", 1, [3])
    y = onnx.helper.make_tensor_value_info("y", 1, [3])
    weight = onnx.numpy_helper.from_array(np.float32([1, 2, 3]), "w")
    nodes = [onnx.helper.make_node("Neg", ["w"], ["v"]), onnx.helper.make_node("Add", ["x", "v"], ["y"])]
    graph = onnx.helper.make_graph(nodes, "g", [x], [y], [weight])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=0)
    before = (tmp_path / "m.bin").read_bytes()
    with pytest.raises(MoLoopError, match="holds weights of the model itself"):
        save_model(convert_model(tmp_path / "m.onnx"), tmp_path / "m.xml")
    assert (tmp_path / "m.bin").read_bytes() == before and not (tmp_path / "m.xml").exists()


def test_the_model_itself_is_not_overwritten(tmp_path: Path) -> None:
    text = '<ir_version: 9, opset_import: ["": 17]> m (float[2] x) => (float[2] y) { y = Neg (x) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.bin")
    with pytest.raises(MoLoopError, match="holds weights of the model itself"):
        save_model(convert_model(tmp_path / "m.bin"), tmp_path / "m.xml")


NAMES = ["a,b", "a\\b", "a\\", 'q"<&>', "tab\tline\n", "\x01\ufffe", "日本", " spaced ", "x" * 3000]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names(name: str, tmp_path: Path) -> None:
    graph = Graph(name)
    x = Parameter(graph=graph, dtype=f32, shape=(2,), name=name)
    x.output.names = (name, "second")
    graph.rt_info["framework"] = {name: name, "empty": {}, "plain": ""}
    Result(x.output, name="r", names=(name, "r"))
    path = tmp_path / "a.xml"
    save_model(Model(graph), path)
    found = read_model(path)
    save_model(found, tmp_path / "b.xml")
    assert path.read_bytes() == (tmp_path / "b.xml").read_bytes()
    if "\x01" not in name:
        assert found.graph.name == found.inputs[0] == name
        assert found.graph.rt_info == graph.rt_info
    if not name.endswith("\\") and "\x01" not in name:
        assert found.outputs == [name] and found.graph.parameters[0].output.names == (name, "second")


def test_bounds_of_dimensions(tmp_path: Path) -> None:
    found = assert_identical(Model(parse("""graph {
        %x = Parameter : f32[1..5,3..,?,0..7,2] "x"
        Result(%x) "y" names "y" }""")), tmp_path)
    bounds = [(low(dim), high(dim)) for dim in found.parameters[0].output.shape or ()]
    assert bounds == [(1, 5), (3, None), (0, None), (0, 7), (2, 2)]


@pytest.mark.parametrize(("least", "most"), [(-2147483648.0, 2147483647.0), (-2.16799998, 0.1)])
def test_floats_that_are_no_f32_are_written_exactly(tmp_path: Path, least: float, most: float) -> None:
    """-2.16799998 are also the nine digits of an f32."""
    found = assert_identical(Model(parse(f"""graph {{
        %x = Parameter : i32[2] "x"
        %y = Clamp(%x) {{min: {least}, max: {most}}}
        Result(%y) "y" names "y" }}""")), tmp_path)
    (clamp,) = (node for node in found if isinstance(node, Op) and node.type == "Clamp")
    assert (clamp.min, clamp.max) == (least, most)  # type: ignore[attr-defined]


def test_texts_and_dimensions_are_spelled_as_the_file_needs_them() -> None:
    """The reader of XML takes line ends of attributes for spaces; a size is never below 0."""
    assert spelled('a\rb\n\t"&<>') == "a&#13;b&#10;&#9;&quot;&amp;&lt;&gt;"
    dims = [fresh() - 1, fresh(), fresh(2), fresh(0, 4) - 1, fresh(0, 3), fresh(2, 3)]
    assert [spelled(each) for each in dims] == ["?", "?", "2..", "..3", "..3", "2..3"]


F32 = st.floats(width=32, allow_nan=False)


@given(st.one_of(st.floats(allow_nan=False), F32, F32.map(lambda number: float(f"{number:.9g}"))))
def test_any_number_is_read_as_it_was_written(number: float) -> None:
    assert layer_types.parsed(spelled(number), float) == number


def test_a_model_that_was_read_can_be_compressed(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    model = onnx.helper.make_model(
        onnx.helper.make_graph([onnx.helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
                               [onnx.helper.make_tensor_value_info("x", 1, [2, 4])],
                               [onnx.helper.make_tensor_value_info("y", 1, [2, 4])],
                               [onnx.numpy_helper.from_array(weights, "w")])
    )
    converted = convert_model(model)
    save_model(converted, tmp_path / "plain.xml")
    save_model(converted, tmp_path / "direct.xml", compress_to_fp16=True)
    save_model(read_model(tmp_path / "plain.xml"), tmp_path / "later.xml", compress_to_fp16=True)
    assert (tmp_path / "direct.xml").read_bytes() == (tmp_path / "later.xml").read_bytes()
    assert (tmp_path / "direct.bin").read_bytes() == (tmp_path / "later.bin").read_bytes()


def test_constants_of_integers_keep_their_values_known(tmp_path: Path) -> None:
    graph = Graph("g")
    x = Parameter(graph=graph, dtype=f32, shape=(2, 3), name="x")
    shape = Constant(np.array([3, 2], np.int64), graph=graph, name="shape")
    Result(ops.Reshape(x.output, shape.output, special_zero=False).output, name="y", names=("y",))
    (constant,) = assert_identical(Model(graph), tmp_path).of(Constant)
    assert constant.output.type.integers == (3, 2) and constant.output.dtype is i64


read_cases(globals())
