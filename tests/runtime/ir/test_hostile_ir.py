"""IR files that are made to break a reader: texts that reach the output, sizes, ranks, pipes, exponential forms."""

import os
from pathlib import Path
from typing import Any

import pytest

from mo_loop.api import read_model, save_model
from mo_loop.errors import FileError, MoLoopError
from mo_loop.look.differences.comparing import diff
from mo_loop.look.inspection.read import inspect
from mo_loop.look.viewing import view
from mo_loop.ops.control import Iteration
from tests.runtime.ir.support import graph, layer, net, parameter, result
from tests.runtime.ir.test_bad_ir import refusal

ODD = layer("Odd", 1, inputs={0: "FP32 2"}, outputs={1: "FP32 2"})
KEPT = net(parameter(0) + ODD + result(2), "0:0 1:0", "1:1 2:0")


def again(folder: Path, text: str, data: bytes | None = b"") -> str:
    """The .xml that a file becomes when it is read and saved; both are the same model."""
    path, saved = folder / "in.xml", folder / "out.xml"
    path.write_text(text)
    if data is not None:
        path.with_suffix(".bin").write_bytes(data)
    save_model(read_model(path), saved)
    assert not diff(path, saved)
    return saved.read_text()


def constant(data: str, precision: str = "FP32") -> str:
    return net(layer("Const", 0, data, outputs={0: precision}) + result(1, precision), "0:0 1:0")


# -- texts of the file


@pytest.mark.parametrize("text", ["FP32&quot; names=&quot;other", "&lt;x", "&amp;", "X&#10;Y"])
def test_a_precision_is_escaped(text: str, tmp_path: Path) -> None:
    written = again(tmp_path, KEPT.replace('id="1" precision="FP32"', f'id="1" precision="{text}"'))
    assert f'precision="{text}"' in written


def test_an_unknown_element_type_is_escaped(tmp_path: Path) -> None:
    text = "f32&quot; x=&quot;1"
    model = net(parameter(0) + result(2), "0:0 2:0").replace('"f32"', f'"{text}"').replace('"FP32"', '"X"')
    assert f'element_type="{text}"' in again(tmp_path, model)


@pytest.mark.parametrize("text", [
    KEPT.replace("<dim>2", f"<dim>{'9' * 100_000}", 1),
    KEPT.replace('from-layer="0"', f'from-layer="{"9" * 100_000}"'),
    KEPT.replace('shape="2"', f'shape="{"1," * 50_000}x"'),
    KEPT.replace('shape="2"', 'shape="x"').replace("Parameter_0", "n" * 100_000),
    KEPT.replace("<input>", f"<{'a' * 100_000} /><input>", 1),
    KEPT.replace("</net>", f"</{'a' * 100_000}>"),
], ids=["dimension", "id", "shape", "name", "tag", "not XML"])
def test_messages_are_short(text: str, tmp_path: Path) -> None:
    assert len(str(refusal(tmp_path, text))) < 1500


# -- numbers


@pytest.mark.parametrize("number", [str(2**63), "9" * 5000, "1_000", "\u0663", "+1", "0x10", "1e3"])
def test_numbers_are_decimal_digits_of_64_bits(number: str, tmp_path: Path) -> None:
    for text in (KEPT.replace("<dim>2", f"<dim>{number}", 1), KEPT.replace('shape="2"', f'shape="{number}"')):
        assert refusal(tmp_path, text).code == "ML250"
        inspect_or_refuse(tmp_path / "in.xml")


def inspect_or_refuse(path: Path) -> None:
    try:
        inspect(path).to_dict()
    except MoLoopError as error:
        assert error.exit_code in (2, 3)


@pytest.mark.parametrize("version", ["opset" + "1" * 5000, "opset\u0663", "opset", ""])
def test_versions_of_layers_are_text(version: str, tmp_path: Path) -> None:
    again(tmp_path, KEPT.replace('type="Odd" version="opset1"', f'type="Odd" version="{version}"'))
    assert view(tmp_path / "in.xml").html


@pytest.mark.parametrize(("data", "size", "code"), [
    (f'shape="{"1," * 64}1"', 4, "ML250"),
    (f'shape="0,{2**62}"', 0, "ML255"),
    (f'shape="{2**62},0"', 0, "ML255"),
])
def test_constants_that_no_array_holds(data: str, size: int, code: str, tmp_path: Path) -> None:
    text = constant(f'element_type="f32" offset="0" size="{size}" {data}')
    assert refusal(tmp_path, text, bytes(64)).code == code
    inspect_or_refuse(tmp_path / "in.xml")


def test_a_port_of_more_dimensions_than_an_array_has(tmp_path: Path) -> None:
    assert refusal(tmp_path, KEPT.replace("<dim>2</dim>", "<dim>2</dim>" * 65, 1)).code == "ML250"


@pytest.mark.parametrize(("type_", "data", "shape"), [
    ("Reshape", 'special_zero="false"', str(2**40)), ("Split", f'num_splits="{2**40}"', ""),
    ("Unsqueeze", "", str(2**40)),
])
def test_a_rank_and_a_number_of_outputs_that_no_tensor_has(type_: str, data: str, shape: str, tmp_path: Path) -> None:
    """The layer is kept as the file has it."""
    other = parameter(1, shape).replace("f32", "i64").replace("FP32", "I64")
    node = layer(type_, 2, data, inputs={0: "FP32 -1", 1: f"I64 {shape}"}, outputs={2: "FP32"})
    text = net(parameter(0, "?") + other + node + result(3), "0:0 2:0", "1:0 2:1", "2:2 3:0")
    assert data in again(tmp_path, text)


def test_batch_dimensions_that_the_indices_do_not_have(tmp_path: Path) -> None:
    data = f'batch_dims="{-(2**40)}"'
    ends = parameter(1) + parameter(2, "")
    ends = ends.replace("f32", "i64").replace("FP32", "I64")
    inputs = {0: "FP32 2", 1: "I64 2", 2: "I64"}
    node = layer("Gather", 3, data, inputs=inputs, outputs={3: "FP32"}, version="opset8")
    text = net(parameter(0) + ends + node + result(4), "0:0 3:0", "1:0 3:1", "2:0 3:2", "3:3 4:0")
    assert data in again(tmp_path, text)


# -- types


def test_a_parameter_of_unknown_rank(tmp_path: Path) -> None:
    assert 'shape="..."' in again(tmp_path, net(parameter(0, "...") + result(2, "FP32"), "0:0 2:0"))


@pytest.mark.parametrize("name", ["c64", "i2", "f8e5m2fnuz"])
def test_constants_of_types_that_onnx_has_and_the_ir_has_not(name: str, tmp_path: Path) -> None:
    written = again(tmp_path, constant(f'element_type="{name}" shape="2" offset="0" size="16"', "ODD"), bytes(16))
    assert f'element_type="{name}"' in written


# -- files


@pytest.mark.parametrize("name", ["f32", "string"])
def test_an_empty_constant_needs_no_bin(name: str, tmp_path: Path) -> None:
    again(tmp_path, constant(f'element_type="{name}" shape="0" offset="0" size="0"'), None)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize("empty", [False, True])
def test_a_bin_that_is_a_pipe_is_not_opened(empty: bool, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "in.bin")
    path, size = tmp_path / "in.xml", 0 if empty else 8
    trip_count = layer("Const", 0, f'element_type="i64" shape="{size // 8}" offset="0" size="{size}"',
                       outputs={0: "I64"})
    loop = layer("Loop", 1, inputs={0: "I64", 1: "BOOL"}, inner=f"<body>{graph('')}</body>", version="opset5")
    path.write_text(net(trip_count + loop, "0:0 1:0"))
    assert inspect(path).external[0].size is None
    assert refusal(tmp_path, path.read_text(), None).code == ("ML254" if empty else "ML217")


@pytest.mark.parametrize("change", ["other", "longer", "gone", "pipe"])
def test_a_bin_that_changes_after_it_was_read_is_not_used(change: str, tmp_path: Path) -> None:
    path, data, saved = (tmp_path / name for name in ("in.xml", "in.bin", "out.xml"))
    path.write_text(constant('element_type="f32" shape="2" offset="0" size="8"'))
    data.write_bytes(bytes(8))
    model = read_model(path)
    data.unlink()
    if change == "pipe":
        os.mkfifo(data)
    elif change != "gone":
        data.write_bytes(b"\x01" * (8 if change == "other" else 9))
    with pytest.raises(FileError) as caught:
        save_model(model, saved)
    assert caught.value.code == "ML270" and not saved.exists()


def test_links_to_a_bin_are_followed(tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(bytes(8))
    (tmp_path / "in.bin").symlink_to("blob")
    again(tmp_path, constant('element_type="f32" shape="2" offset="0" size="8"'), None)


# -- forms


def growing(depth: int) -> tuple[str, tuple[str, ...]]:
    """The layers and edges of a graph: a state `x` that a Loop doubles, in a Loop, in a Loop, ..."""
    ends = layer("Const", "c", 'element_type="boolean" shape="" offset="0" size="1"', outputs={0: "BOOL"})
    ends += layer("Const", "t", 'element_type="i64" shape="" offset="8" size="8"', outputs={0: "I64"})
    ends += layer("Parameter", "x", 'shape="2" element_type="f32"', outputs={0: "FP32 2"})
    ends += result("r", "FP32 -1") + result("g", "BOOL")
    if not depth:
        node = layer("Concat", "n", 'axis="0"', inputs={20: "FP32 -1", 21: "FP32 -1"}, outputs={24: "FP32 -1"})
        return ends + node, ("x:0 n:20", "x:0 n:21", "n:24 r:0", "c:0 g:0")
    inner, edges = growing(depth - 1)
    maps = ('<port_map><input external_port_id="22" internal_layer_id="x" />'
            '<output external_port_id="24" internal_layer_id="r" />'
            '<output external_port_id="-1" internal_layer_id="g" purpose="execution_condition" /></port_map>'
            '<back_edges><edge from-layer="r" to-layer="x" /></back_edges>')
    node = layer("Loop", "n", inner=f"{maps}<body>{graph(inner, *edges)}</body>", version="opset5",
                 inputs={20: "I64", 21: "BOOL", 22: "FP32 2"}, outputs={24: "FP32 -1"})
    return ends + node, ("t:0 n:20", "c:0 n:21", "x:0 n:22", "n:24 r:0", "c:0 g:0")


def test_the_types_of_nested_growing_states_are_not_inferred_exponentially_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers, edges = growing(31)
    path, count = tmp_path / "in.xml", 0
    path.write_text(net(layers, *edges))
    path.with_suffix(".bin").write_bytes(b"\x01" + bytes(7) + b"\x03" + bytes(7))
    infer = Iteration._infer_body

    def counted(node: Iteration, types: Any) -> Any:
        nonlocal count
        count += 1
        assert count < 1000
        return infer(node, types)

    monkeypatch.setattr(Iteration, "_infer_body", counted)
    dim = read_model(path).outputs[0].shape
    assert 31 <= count < 100 and dim is not None and not isinstance(dim[0], int)


def test_the_inspection_of_nested_layers_of_one_name_is_not_exponential(tmp_path: Path) -> None:
    inner = graph("")
    for _ in range(40):
        layers = (layer("Loop", n, inner=f"<body>{each}</body>", name="a") for n, each in enumerate((graph(""), inner)))
        inner = graph("".join(layers))
    path = tmp_path / "in.xml"
    path.write_text(f'<net name="n" version="11">{inner}</net>')
    found = inspect(path)
    assert len(found.control) == 2 and len(found.scopes) == 81
