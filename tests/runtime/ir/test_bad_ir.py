"""Files that are not IR, or invalid IR: a coded error with reason and place, never a traceback."""

import os
from pathlib import Path

import numpy as np
import pytest

from mo_loop.api import read_model
from mo_loop.errors import FileError, InputError, IrError, MoLoopError, UnsupportedError
from tests.harness import raised
from tests.runtime.ir.support import graph, layer, net, parameter, result
from tests.runtime.ir.test_reader import (
    BODY,
    CONDITION,
    DATA,
    FINAL,
    GO_ON,
    OTHER,
    STATE,
    body,
    loop,
    loop_net,
)

RELU = layer("ReLU", 1, inputs={0: "FP32 2"}, outputs={1: "FP32 2"})
GOOD = net(parameter(0) + RELU + result(2), "0:0 1:0", "1:1 2:0")


def refusal(folder: Path, text: str | bytes, data: bytes | None = b"") -> MoLoopError:
    """The error of reading; it names something, and its code is not that of a bug."""
    path = folder / "in.xml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if data is not None:
        path.with_suffix(".bin").write_bytes(data)
    caught = raised(MoLoopError, read_model, path)
    assert caught.exit_code in (2, 3) and caught.message
    return caught


def test_the_model_that_the_cases_break_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "in.xml"
    path.write_text(GOOD)
    assert read_model(path).inputs == ["Parameter_0"]


# -- files


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for path, code in ((tmp_path / "no.xml", "ML210"), (tmp_path, "ML211"), (tmp_path / "a\0b.xml", "ML212")):
        assert raised(FileError, read_model, path).code == code


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "in.xml"
    path.write_text(GOOD)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    assert raised(FileError, read_model, path).code == "ML212"


@pytest.mark.parametrize(("text", "says"), [
    ("", "empty"), ("  \n", "empty"), ("hello", "not XML"), (b"\x08\x01\xff\xfe", "not XML"),
    (GOOD[:300], "truncated"),
    ("<html><body /></html>", "not IR"), ("<net version='11' />", "not IR"), (b"\0" * 100, "not XML"),
    ("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS"),
    ('<net xmlns="urn:x" version="11"><layers /></net>', "not IR"), (GOOD + "<more />", "not XML"),
])
def test_files_of_another_kind(text: str | bytes, says: str, tmp_path: Path) -> None:
    error = refusal(tmp_path, text)
    assert error.code == "ML214" and says in error.message


@pytest.mark.parametrize("version", ["9", "12", "", "eleven", "1" * 5000])
def test_other_versions(version: str, tmp_path: Path) -> None:
    error = refusal(tmp_path, GOOD.replace('version="11"', f'version="{version}"'))
    assert isinstance(error, UnsupportedError) and error.code == "ML330"


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize("doctype", [
    "<!DOCTYPE net>", '<!DOCTYPE net [<!ENTITY e SYSTEM "file:///etc/hostname">]>',
    '<!DOCTYPE net SYSTEM "http://localhost:9/x.dtd">', f'<!DOCTYPE net [<!ENTITY l0 "lol">{LAUGHS}]>',
], ids=["bare", "file", "network", "laughs"])
@pytest.mark.parametrize("use", ["", "&l9;", "&e;"])
def test_document_types_are_refused(doctype: str, use: str, tmp_path: Path) -> None:
    text = GOOD.replace("<net ", f"{doctype}<net ").replace('name="Parameter_0"', f'name="{use}"')
    assert refusal(tmp_path, text).code == "ML214"


@pytest.mark.parametrize("depth", [40, 300, 20_000])
def test_too_many_nested_bodies(depth: int, tmp_path: Path) -> None:
    maps = '<port_map><input external_port_id="0" internal_layer_id="0" /></port_map><back_edges />'
    start = f"<layers>{parameter(0)}" + f'<layer id="1" name="t" type="TensorIterator" version="opset1">{maps}<body>'
    end = '</body><input><port id="0" precision="FP32"><dim>2</dim></port></input></layer></layers><edges>'
    end += '<edge from-layer="0" from-port="0" to-layer="1" to-port="0" /></edges>'
    inner = graph(parameter(0))
    error = refusal(tmp_path, f'<net name="n" version="11">{start * depth}{inner}{end * depth}</net>')
    assert error.code == "ML312"


# -- layers and edges


@pytest.mark.parametrize(("text", "code", "says"), [
    (GOOD.replace('id="1" name', 'name'), "ML250", "without id"),
    (GOOD.replace('type="ReLU" ', ""), "ML250", "without type"),
    (GOOD.replace('<port id="1"', "<port", 1), "ML250", "without id"),
    (GOOD.replace("<dim>2</dim>", "<dim>two</dim>", 1), "ML250", "'two'"),
    (GOOD.replace("<dim>2</dim>", "<dim>-2</dim>", 1), "ML250", "'-2'"),
    (GOOD.replace("<dim>2</dim>", "<dims>2</dims>", 1), "ML250", "<dims>"),
    (GOOD.replace("<layers>", "<layers><other />"), "ML250", "<other>"),
    (GOOD.replace("</net>", "<edges /></net>"), "ML250", "second <edges>"),
    (GOOD.replace("</net>", "<pre-process /></net>"), "ML331", "<pre-process>"),
    (GOOD.replace("<input>", "<blobs /><input>", 1), "ML331", "<blobs>"),
    (GOOD.replace('shape="2"', 'shape="2,x"'), "ML250", "not a shape"),
    (GOOD.replace('shape="2"', ""), "ML250", "shape and element_type"),
    (GOOD.replace('element_type="f32"', ""), "ML250", "shape and element_type"),
    (GOOD.replace('<data ', '<data xmlns:a="urn:a" a:b="c" '), "ML250", "namespace"),
    (net(parameter(0) + RELU + RELU + result(2), "0:0 1:0", "1:1 2:0"), "ML251", "another layer has the same id"),
    (GOOD.replace("</output>", '<port id="1" precision="FP32" /></output>').replace('id="0"', 'id="1"', 2),
     "ML251", "another layer has the same id"),
    (net(parameter(0) + layer("Split", 1, inputs={0: "FP32 2"}, outputs={1: "FP32", 2: "FP32"}).replace(
        'port id="2"', 'port id="1"'), "0:0 1:0"), "ML251", "two of its ports"),
    (net(parameter(0) + result(2), "9:0 2:0"), "ML252", "layer 9 does not exist"),
    (net(parameter(0) + result(2), "0:0 9:0"), "ML252", "layer 9 does not exist"),
    (net(parameter(0) + result(2), "0:7 2:0"), "ML252", "no output 7"),
    (net(parameter(0) + result(2), "0:0 2:7"), "ML252", "no input 7"),
    (net(parameter(0) + result(2), "0:0 2:0", "0:0 2:0"), "ML252", "two edges"),
    (net(parameter(0) + result(2)), "ML250", "connected inputs"),
    (net(parameter(0) + layer("Odd", 1, inputs={0: "FP32 2", 1: "FP32 2"}, outputs={2: "FP32 2"}) + result(2),
         "0:0 1:1", "1:2 2:0"), "ML252", "nothing feeds its input 0"),
    (net(RELU + layer("ReLU", 2, inputs={0: "FP32 2"}, outputs={1: "FP32 2"}), "1:1 2:0", "2:1 1:0"),
     "ML253", "cycle"),
    (net(RELU, "1:1 1:0"), "ML253", "ReLU_1 <- ReLU_1"),
    (net(layer("Odd", 1, inner=BODY.format(graph("")))), "ML331", "has a body"),
    (GOOD.replace('to-layer="1"', ""), "ML250", "without to-layer"),
])
def test_broken_layers_and_edges(text: str, code: str, says: str, tmp_path: Path) -> None:
    error = refusal(tmp_path, text)
    assert error.code == code and says in error.message


def test_a_long_cycle_is_shortened(tmp_path: Path) -> None:
    layers = "".join(layer("ReLU", n, inputs={0: "FP32"}, outputs={1: "FP32"}) for n in range(5000))
    error = refusal(tmp_path, net(layers, *(f"{n}:1 {(n + 1) % 5000}:0" for n in range(5000))))
    assert error.code == "ML253" and len(error.message) < 300


# -- constants


def constant(data: str) -> str:
    return net(layer("Const", 0, data, outputs={0: "FP32 2"}, name="weights") + result(1), "0:0 1:0")


def table(*numbers: int) -> bytes:
    """Strings whose table holds these numbers, and one character."""
    return np.array(numbers, "<i4").tobytes() + b"x"


FLOATS = 'element_type="f32" shape="2" '


@pytest.mark.parametrize(("data", "bytes_", "code"), [
    (FLOATS + 'offset="0" size="8"', None, "ML217"),
    (FLOATS + 'offset="0" size="8"', bytes(7), "ML213"),
    (FLOATS + 'offset="1" size="8"', bytes(8), "ML213"),
    (FLOATS + f'offset="{2**63 - 1}" size="8"', bytes(8), "ML213"),
    (FLOATS + f'offset="{2**63}" size="8"', bytes(8), "ML250"),
    (FLOATS + f'offset="{10**40}" size="8"', bytes(8), "ML250"),
    (FLOATS + 'offset="-8" size="8"', bytes(8), "ML250"),
    (FLOATS + 'offset="0"', bytes(8), "ML250"),
    (FLOATS + 'size="8"', bytes(8), "ML250"),
    (FLOATS + 'offset="0" size="8.0"', bytes(8), "ML250"),
    (FLOATS + 'offset="0" size="4"', bytes(8), "ML255"),
    ('element_type="f32" shape="" offset="0" size="8"', bytes(8), "ML255"),
    ('element_type="i4" shape="3" offset="0" size="3"', bytes(8), "ML255"),
    ('element_type="f32" shape="?" offset="0" size="8"', bytes(8), "ML250"),
    ('element_type="f32" shape="..." offset="0" size="8"', bytes(8), "ML250"),
    ('element_type="f32" offset="0" size="8"', bytes(8), "ML255"),
    (f'element_type="f32" shape="{2**40},{2**40}" offset="0" size="8"', bytes(8), "ML255"),
    ('element_type="nf4" shape="2" offset="0" size="99"', bytes(8), "ML213"),
    ('element_type="string" shape="2" offset="0" size="8"', bytes(16), "ML255"),
    ('element_type="string" shape="2" offset="0" size="16"', bytes(16), "ML255"),
    ('element_type="string" shape="2" offset="0" size="17"', table(2, 0, 5, 1), "ML255"),
    ('element_type="string" shape="2" offset="0" size="17"', table(2, 0, -1, 1), "ML255"),
])
def test_constants_without_their_data(data: str, bytes_: bytes | None, code: str, tmp_path: Path) -> None:
    error = refusal(tmp_path, constant(data), bytes_)
    assert error.code == code and error.where == "weights"


def test_a_bin_that_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "in.bin").mkdir()
    assert refusal(tmp_path, constant(FLOATS + 'offset="0" size="8"'), None).code == "ML217"


# -- port maps


def case(port_map: str = STATE + OTHER + FINAL + GO_ON, **changes: str) -> str:
    return loop_net(loop(port_map, **changes))  # type: ignore[arg-type]  # outputs is not among them


@pytest.mark.parametrize("text", [
    case(STATE + OTHER + FINAL),  # no condition
    case(STATE + OTHER + FINAL + GO_ON + GO_ON),
    case(OTHER + FINAL + GO_ON),  # nothing feeds the state
    case(STATE + STATE + OTHER + FINAL + GO_ON),  # fed twice
    case(STATE + OTHER + GO_ON),  # an output without a source
    case(STATE + OTHER + FINAL + FINAL + GO_ON),
    case(STATE.replace("22", "99") + OTHER + FINAL + GO_ON),  # no such port
    case(STATE.replace("10", "99") + OTHER + FINAL + GO_ON),  # no such layer
    case(STATE.replace("10", "12") + OTHER + FINAL + GO_ON),  # no Parameter
    case(STATE + OTHER + FINAL.replace("13", "12") + GO_ON),  # no Result
    case(STATE + OTHER + FINAL + GO_ON.replace("14", "10")),
    case(STATE.replace("/>", 'axis="0" />') + OTHER + FINAL + GO_ON),  # sliced and a state
    case(back_edges='<edge from-layer="13" to-layer="10" />' * 2),
    case(back_edges='<edge from-layer="99" to-layer="10" />'),
    case(back_edges='<edge from-layer="12" to-layer="10" />'),
    case().replace("<port_map>", "<my_map>").replace("</port_map>", "</my_map>"),
    case().replace("<body>", "<then_body>").replace("</body>", "</then_body>"),
    case().replace('type="Loop" version="opset5"', 'type="Loop" version="opset6"'),
    case().replace('type="Loop" version="opset5"', 'type="If" version="opset8"'),
    case(OTHER.replace("/>", 'axis="x" />') + STATE + FINAL + GO_ON),
    case(OTHER.replace("/>", 'axis="0" stride="0" />') + STATE + FINAL + GO_ON),
    case(OTHER.replace("/>", 'axis="0" part_size="0" />') + STATE + FINAL + GO_ON),
    case(OTHER.replace("/>", 'axis="5" />') + STATE + FINAL + GO_ON),
    case(FINAL.replace("/>", 'axis="5" />') + STATE + OTHER + GO_ON),
    case(STATE + OTHER + FINAL + GO_ON + '<other external_port_id="0" />'),
    case(STATE.replace("external_port_id", "id") + OTHER + FINAL + GO_ON),
    case(inner=body().replace('"FP32"', '"FP16"').replace('element_type="f32"', 'element_type="f16"')),
    case().replace('<port id="24" precision="FP32">', '<port id="24" precision="FP16">'),
    case().replace('to-layer="L" to-port="20"', 'to-layer="L" to-port="23"', 1),
])
def test_broken_port_maps(text: str, tmp_path: Path) -> None:
    error = refusal(tmp_path, text, DATA)
    assert error.code in ("ML250", "ML252", "ML254", "ML331", "ML231", "ML235", "ML239", "ML240"), str(error)
    assert "L" in error.where or "Loop_L" in error.message


def test_branches_of_if_that_differ(tmp_path: Path) -> None:
    def branch(tag: str, precision: str, name: str) -> str:
        port = f"{precision} 2"
        source = layer("Parameter", 0, f'shape="2" element_type="{name}"', outputs={0: port})
        inner = graph(source + layer("Odd", 1, outputs={0: port}) + result(2, port), "1:0 2:0")
        links = '<output external_port_id="1" internal_layer_id="2" />'
        return f"<{tag}_port_map>{links}</{tag}_port_map><{tag}_body>{inner}</{tag}_body>"

    node = layer("If", "i", version="opset8", inner=branch("then", "FP32", "f32") + branch("else", "I64", "i64"),
                 inputs={0: "BOOL"}, outputs={1: "FP32 2"})
    error = refusal(tmp_path, net(CONDITION + node + result(9), "c:0 i:0", "i:1 9:0"), DATA)
    assert error.code == "ML239" and error.where == "If_i"


def test_errors_of_reading_are_input_errors() -> None:
    assert issubclass(IrError, InputError) and IrError("x").code == "ML250"
