"""Forms that other converters write: labels, orders, versions, state, unknown operations, additional info."""

from pathlib import Path

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.api import Model, read_model
from mo_loop.graph.types import f32, i64
from mo_loop.ops.base import Constant
from mo_loop.ops.control import If, Loop, TensorIterator
from mo_loop.ops.front import Opaque, OpaqueSink
from mo_loop.ops.port_map import Branched, Concatenated, Final, Invariant, Merged, Sliced
from mo_loop.text import to_text
from tests.runtime.ir.support import both, graph, layer, net, opaque, parameter, read, result, written

ADD = 'auto_broadcast="numpy"'


def add(id_: object, a: int = 0, b: int = 1, c: int = 2, dims: str = "2") -> str:
    return layer("Add", id_, ADD, inputs={a: f"FP32 {dims}", b: f"FP32 {dims}"}, outputs={c: f"FP32 {dims}"})


def test_ids_and_port_ids_are_labels_and_the_order_is_free(tmp_path: Path) -> None:
    layers = result("last", label=77) + layer("Subtract", 40, ADD, inputs={9: "FP32 2", 3: "FP32 2"},
                                              outputs={1: "FP32 2"}) + parameter("b", label=5) + parameter("a", label=6)
    found = read(tmp_path, net(layers, "40:1 last:77", "a:6 40:3", "b:5 40:9"))
    (subtract,) = found.of(ops.Subtract)
    assert [value.node.name for value in subtract.inputs if value] == ["Parameter_b", "Parameter_a"]
    assert [each.name for each in found.parameters] == ["Parameter_b", "Parameter_a"]


def test_results_keep_the_order_of_the_file(tmp_path: Path) -> None:
    layers = result(1) + result(2) + add(3) + parameter(4) + parameter(5)
    found = read(tmp_path, net(layers, "3:2 1:0", "4:0 2:0", "4:0 3:0", "5:0 3:1"))
    assert [each.name for each in found.results] == ["Result_1", "Result_2"]


@pytest.mark.parametrize("version", ["opset2", "extension", "", "opset99"])
def test_an_unknown_operation_is_written_as_it_was(version: str, tmp_path: Path) -> None:
    data = 'zeta="1,2" alpha="&quot;&lt;x&gt;" none=""'
    odd = layer("Odd", 1, data, inputs={0: "FP32 2"}, outputs={1: "FP32 -1 3", 2: "I64"}, version=version)
    tail = result(2, "FP32 -1 3") + result(3, "I64")
    found = read(tmp_path, net(parameter(0) + odd + tail, "0:0 1:0", "1:1 2:0", "1:2 3:0"))
    (node,) = found.of(Opaque)
    assert [(value.dtype, value.shape and repr(value.shape)) for value in node.outputs] == [(f32, "(?, 3)"), (i64, ())]
    text = written(tmp_path, found)
    assert '<layer id="1" name="Odd_1" type="Odd" ' + f'version="{version}">' in text
    assert '<data zeta="1,2" alpha="&quot;&lt;x&gt;" none="" />' in text
    assert found.clone().of(Opaque)[0].type == "Odd"
    assert "kind: Odd" in to_text(found)


@pytest.mark.parametrize(
    "odd",
    [
        layer("Relu", 1, inputs={0: "FP32 2"}, outputs={1: "FP32 2"}),  # another type
        layer("ReLU", 1, inputs={0: "FP32 2"}, outputs={1: "FP32 2"}, version="opset16"),  # a newer version
        layer("ReLU", 1, 'slope="0.5"', inputs={0: "FP32 2"}, outputs={1: "FP32 2"}),  # an attribute more
        layer("Elu", 1, inputs={0: "FP32 2"}, outputs={1: "FP32 2"}),  # one less
        layer("Elu", 1, 'alpha="much"', inputs={0: "FP32 2"}, outputs={1: "FP32 2"}),  # of another kind
        layer("ReLU", 1, inputs={0: "FP32 2"}, outputs={1: "FP16 2"}),  # another element type than inferred
        layer("ReLU", 1, inputs={0: "FP32 2"}, outputs={1: "FP32 3"}),  # another size
        layer("ReLU", 1, inputs={0: "FP32 2"}, outputs={1: "FP32 2 2"}),  # another rank
        layer("ReLU", 1, inputs={0: "FP32 2"}, outputs={1: "FP32 2", 2: "FP32 2"}),  # another number of outputs
        layer("SoftMax", 1, 'axis="5"', inputs={0: "FP32 2"}, outputs={1: "FP32 2"}, version="opset8"),  # axis 5
        layer("NonZero", 1, 'output_type="i64"', inputs={0: "FP32 2"}, outputs={1: "I64 1 2"}, version="opset3"),
    ],
    ids=["type", "version", "more", "less", "kind", "dtype", "size", "rank", "outputs", "refused", "vaguer"],
)
def test_layers_that_do_not_match_their_class_are_opaque(odd: str, tmp_path: Path) -> None:
    assert len(opaque(read(tmp_path, net(parameter(0) + odd + result(2), "0:0 1:0", "1:1 2:0")))) == 1


def test_inferred_types_may_be_more_precise_than_the_file(tmp_path: Path) -> None:
    relu = layer("ReLU", 1, inputs={0: "FP32 2"}, outputs={1: "FP32 -1"})
    found = read(tmp_path, net(parameter(0) + relu + result(2), "0:0 1:0", "1:1 2:0"))
    assert opaque(found) == [] and found.results[0].value.shape == (2,)


def test_a_constant_of_an_unknown_element_type_is_kept(tmp_path: Path) -> None:
    layers = layer("Const", 0, 'element_type="nf4" shape="5" offset="2" size="3"', outputs={0: "NF4 5"})
    layers += layer("Convert", 1, 'destination_type="f32"', inputs={0: "NF4 5"}, outputs={1: "FP32 5"}) + result(2)
    found = read(tmp_path, net(layers, "0:0 1:0", "1:1 2:0"), b"..abc")
    assert opaque(found) == ["Const"] and found.results[0].value.constant is None
    text = written(tmp_path, found)
    assert '<data element_type="nf4" shape="5" offset="0" size="3" />' in text and 'precision="NF4"' in text
    assert (tmp_path / "out.bin").read_bytes() == b"abc"


def test_optional_inputs_at_the_end_may_be_absent(tmp_path: Path) -> None:
    squeeze = layer("Squeeze", 1, inputs={0: "FP32 1 2", 1: "I64 1"}, outputs={2: "FP32 2"})
    found = read(tmp_path, net(parameter(0, "1,2") + squeeze + result(2), "0:0 1:0", "1:2 2:0"))
    (node,) = found.of(ops.Squeeze)
    assert len(node.inputs) == 1 and node.output.shape == (2,)


# -- state


def state(version: str = "opset6") -> str:
    data = 'variable_id="v"'
    layers = parameter(0) + layer(
        "ReadValue", 1, data + ' variable_type="f32" variable_shape="2"', inputs={0: "FP32 2"},
        outputs={1: "FP32 2"}, version=version,
    ) + add(2) + layer("Assign", 3, data, inputs={0: "FP32 2"}, outputs={1: "FP32 2"}, version=version)
    return net(layers + result(4), "0:0 1:0", "0:0 2:0", "1:1 2:1", "2:2 3:0", "2:2 4:0")


@pytest.mark.parametrize("version", ["opset6", "opset3"])
def test_assignments_of_variables_are_not_swept(version: str, tmp_path: Path) -> None:
    found = read(tmp_path, state(version))
    count = len(found)
    assert found.sweep() == 0 and len(found) == count
    text = written(tmp_path, found)
    assert '<data variable_id="v" />' in text and text.count('variable_id="v"') == 2


def test_an_assignment_of_a_version_unknown_here_is_a_sink(tmp_path: Path) -> None:
    (node,) = read(tmp_path, state("opset3")).of(OpaqueSink)
    assert node.type == "Assign"


# -- names and additional info


INFO = """<rt_info><Runtime_version value="x" /><info name="a b" value="&lt;" /><deep><er><est value="" /></er></deep>
<conversion_parameters><input_model value="DIR/m.onnx" /></conversion_parameters><info name="1b" value="-" /><empty />
</rt_info>"""


def test_additional_info_of_model_layer_and_port_is_kept(tmp_path: Path) -> None:
    own = '<rt_info><attribute name="fused_names" version="0" value="x,y" /><attribute name="b" /></rt_info>'
    port = '<port id="0" precision="FP32" names="n\\,1,n2"><dim>2</dim><rt_info><attribute name="layout" version="0" layout="[N]" /></rt_info></port>'  # noqa: E501
    source = (f'<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32" />{own}'
              f"<output>{port}</output></layer>")
    sink = (
        f'<layer id="1" name="r" type="Result" version="opset1" output_names="o\\,1,o2"><input>{port}</input></layer>'
    )
    found = read(tmp_path, net(source + sink, "0:0 1:0", rt_info=INFO))
    assert found.rt_info == {"Runtime_version": "x", "a b": "<", "deep": {"er": {"est": ""}}, "1b": "-",
                             "conversion_parameters": {"input_model": "DIR/m.onnx"}, "empty": {}}
    assert found.parameters[0].output.names == ("n,1", "n2") and found.results[0].output_names == ("o,1", "o2")
    assert found.parameters[0].rt_info == {"fused_names": {"version": "0", "value": "x,y"}, "b": {}}
    assert written(tmp_path, found).count('<attribute name="layout" version="0" layout="[N]" />') == 2
    again = read_model(tmp_path / "out.xml")
    assert again.graph.rt_info == found.rt_info and again.outputs == ["o,1"]
    (tmp_path / "again").mkdir()
    written(tmp_path / "again", again.graph)
    assert both(tmp_path / "out.xml") == both(tmp_path / "again" / "out.xml")


def test_names_of_a_result_without_its_own_are_those_of_what_it_reads(tmp_path: Path) -> None:
    read(tmp_path,
         net(parameter(0) + result(1), "0:0 1:0").replace('precision="FP32"', 'precision="FP32" names="t"', 1))
    assert read_model(tmp_path / "in.xml").outputs == ["t"]
    read(tmp_path, net(parameter(0) + result(1), "0:0 1:0"))
    assert read_model(tmp_path / "in.xml").outputs == ["Result_1"]


def test_version_10_names_inputs_and_outputs_by_layers(tmp_path: Path) -> None:
    split = layer("Split", 2, 'num_splits="2"', inputs={0: "FP32 2", 1: "I64"}, outputs={2: "FP32 1", 3: "FP32 1"})
    axis = layer("Const", 1, 'element_type="i64" shape="" offset="0" size="8"', outputs={0: "I64"})
    layers = parameter(0) + axis + split + add(3, dims="1") + result(4, "FP32 1") + result(5, "FP32 1")
    edges = ("0:0 2:0", "1:0 2:1", "2:2 3:0", "2:3 3:1", "2:3 4:0", "3:2 5:0")
    meta = '<meta_data><MO_version value="2021.4" /><unset unset_cli_parameters="a, b" /></meta_data>'
    found = read(tmp_path, net(layers, *edges, version=10, rt_info=meta), bytes(8))
    assert found.parameters[0].output.names == ("Parameter_0",)
    assert [each.output_names for each in found.results] == [("Split_2.1",), ("Add_3",)]
    assert found.rt_info == {"MO_version": "2021.4", "unset": {"unset_cli_parameters": "a, b"}}
    assert 'version="11"' in written(tmp_path, found)[:80]


# -- control flow

BODY = "<body>{}</body>"
CONDITION = layer("Const", "c", 'element_type="boolean" shape="" offset="0" size="1"', outputs={0: "BOOL"})
TRIP = layer("Const", "t", 'element_type="i64" shape="" offset="1" size="8"', outputs={0: "I64"})
DATA = b"\1" + np.array(3, np.int64).tobytes()


def body(extra: str = "", *edges: str) -> str:
    """s, k -> s + k, and the condition."""
    layers = parameter(10) + parameter(11) + CONDITION + add(12) + result(13) + result(14, "BOOL") + extra
    return BODY.format(graph(layers, "10:0 12:0", "11:0 12:1", "12:2 13:0", "c:0 14:0", *edges))


def loop(port_map: str, *, back_edges: str = '<edge from-layer="13" to-layer="10" />', inner: str = "",
         outputs: dict[int, str] | None = None) -> str:
    return layer("Loop", "L", version="opset5",
                 inner=f"<port_map>{port_map}</port_map><back_edges>{back_edges}</back_edges>{inner or body()}",
                 inputs={20: "I64", 21: "BOOL", 22: "FP32 2", 23: "FP32 2"}, outputs=outputs or {24: "FP32 2"})


STATE = '<input external_port_id="22" internal_layer_id="10" />'
OTHER = '<input external_port_id="23" internal_layer_id="11" />'
FINAL = '<output external_port_id="24" internal_layer_id="13" />'
GO_ON = '<output external_port_id="-1" internal_layer_id="14" purpose="execution_condition" />'
EDGES = ("t:0 L:20", "c:0 L:21", "0:0 L:22", "1:0 L:23")


def loop_net(text: str, *more: str, tail: str = "") -> str:
    return net(parameter(0) + parameter(1) + CONDITION + TRIP + text + (tail or result(9)), *EDGES,
               *(more or ("L:24 9:0",)))


def test_a_loop(tmp_path: Path) -> None:
    found = read(tmp_path, loop_net(loop(GO_ON + FINAL + OTHER + STATE)), DATA)
    (node,) = found.of(Loop)
    state, other = node.input_map
    assert isinstance(state, Merged) and isinstance(other, Invariant) and isinstance(node.output_map[0], Final)
    assert state.result is node.output_map[0].result is node.body.results[0]
    assert [each.name for each in node.body.parameters] == ["Parameter_10", "Parameter_11"]
    assert node.condition is node.body.results[1] and node.iteration is None
    assert '<input external_port_id="2" internal_layer_id="0" />' in written(tmp_path, found)


def test_one_outer_input_may_feed_two_parameters_and_another_none(tmp_path: Path) -> None:
    twice = OTHER.replace('"23"', '"22"')
    (node,) = read(tmp_path, loop_net(loop(STATE + twice + FINAL + GO_ON)), DATA).of(Loop)
    assert [value.node.name for value in node.data_inputs if value] == ["Parameter_0", "Parameter_0"]


def test_a_parameter_that_nothing_feeds_or_reads_is_dropped(tmp_path: Path) -> None:
    text = loop(STATE + OTHER + FINAL + GO_ON, inner=body(parameter(99)))
    (node,) = read(tmp_path, loop_net(text), DATA).of(Loop)
    assert len(node.body.parameters) == 2


def test_an_unused_result_stays(tmp_path: Path) -> None:
    text = loop(STATE + OTHER + FINAL + GO_ON, inner=body(result(98), "10:0 98:0"))
    (node,) = read(tmp_path, loop_net(text), DATA).of(Loop)
    assert len(node.body.results) == 3


def test_one_result_may_give_two_outputs_and_the_condition_one_too(tmp_path: Path) -> None:
    more = '<output external_port_id="25" internal_layer_id="13" axis="0" />'
    also = '<output external_port_id="26" internal_layer_id="14" purpose="execution_condition" />'
    text = loop(STATE + OTHER + also + FINAL + more, outputs={25: "FP32 -1", 24: "FP32 2", 26: "BOOL"})
    tail = result(8, "FP32 -1") + result(9) + result(7, "BOOL")
    (node,) = read(tmp_path, loop_net(text, "L:24 9:0", "L:25 8:0", "L:26 7:0", tail=tail), DATA).of(Loop)
    joined, final, condition = node.output_map
    assert isinstance(joined, Concatenated) and isinstance(final, Final) and joined.result is final.result
    assert condition.result is node.condition
    assert node.outputs[0].shape == (6,)


def test_the_number_of_the_iteration(tmp_path: Path) -> None:
    number = layer("Parameter", 15, 'shape="" element_type="i64"', outputs={0: "I64"})
    link = '<input external_port_id="-1" internal_layer_id="15" purpose="current_iteration" />'
    (node,) = read(tmp_path, loop_net(loop(link + STATE + OTHER + FINAL + GO_ON, inner=body(number))), DATA).of(Loop)
    assert node.iteration is node.body.parameters[2]


def test_a_tensor_iterator_with_defaults_of_slices(tmp_path: Path) -> None:
    inner = BODY.format(graph(parameter(0, "1,3") + parameter(1, "1,3") + add(2, dims="1 3") + result(3, "FP32 1 3"),
                              "0:0 2:0", "1:0 2:1", "2:2 3:0"))
    maps = """<port_map><input external_port_id="1" internal_layer_id="0" axis="0" start="-1" end="0" stride="-1" />
    <input external_port_id="0" internal_layer_id="1" /><output external_port_id="2" internal_layer_id="3" axis="0" />
    </port_map><back_edges><edge from-layer="3" to-layer="1" from-port="0" to-port="0" /></back_edges>"""
    iterator = layer("TensorIterator", 5, inner=maps + inner, inputs={0: "FP32 1 3", 1: "FP32 4 3"},
                     outputs={2: "FP32 4 3"})
    text = net(parameter(0, "1,3") + parameter(1, "4,3") + iterator + result(9, "FP32 4 3"),
               "0:0 5:0", "1:0 5:1", "5:2 9:0")
    (node,) = read(tmp_path, text).of(TensorIterator)
    state, slices = node.input_map
    assert isinstance(state, Merged) and isinstance(slices, Sliced)
    assert (slices.axis, slices.start, slices.end, slices.stride, slices.part_size) == (0, -1, 0, -1, 1)
    assert node.output.shape == (4, 3)


@pytest.mark.parametrize(("axis", "step", "whole"), [(-1, "2 1", "2 4"), (-2, "1 2", "4 2"), (1, "2 1", "2 4")])
def test_slices_along_an_axis_from_behind(axis: int, step: str, whole: str, tmp_path: Path) -> None:
    relu = layer("ReLU", 2, inputs={0: f"FP32 {step}"}, outputs={1: f"FP32 {step}"})
    inner = BODY.format(graph(parameter(0, step.replace(" ", ",")) + relu + result(3, f"FP32 {step}"), "0:0 2:0",
                              "2:1 3:0"))
    maps = f"""<port_map><input external_port_id="0" internal_layer_id="0" axis="{axis}" />
    <output external_port_id="1" internal_layer_id="3" axis="{axis}" /></port_map>"""
    iterator = layer("TensorIterator", 5, inner=maps + inner, inputs={0: f"FP32 {whole}"}, outputs={1: f"FP32 {whole}"})
    text = net(parameter(0, whole.replace(" ", ",")) + iterator + result(9, f"FP32 {whole}"), "0:0 5:0", "5:1 9:0")
    found = read(tmp_path, text)
    (node,) = found.of(TensorIterator)
    shape = tuple(map(int, step.split()))
    assert opaque(found) == []
    assert node.body.parameters[0].output.shape == shape == node.body.results[0].value.shape
    assert node.output.shape == tuple(map(int, whole.split()))


@pytest.mark.parametrize("first", [3, 0, 9], ids=["labels", "from 0", "9 and 10"])
def test_outputs_of_if_by_label_or_counted_from_0(first: int, tmp_path: Path) -> None:
    def branch(tag: str, label: int, swap: bool) -> tuple[str, str]:
        a, b = (1, 2) if not swap else (2, 1)
        inner = graph(parameter(0) + result(1) + layer("ReLU", 3, inputs={0: "FP32 2"}, outputs={1: "FP32 2"})
                      + result(2), "0:0 1:0", "0:0 3:0", "3:1 2:0")
        links = f'<input external_port_id="{label}" internal_layer_id="0" />' + "".join(
            f'<output external_port_id="{first + number}" internal_layer_id="{each}" />'
            for number, each in ((1, b), (0, a))
        )
        return f"<{tag}_port_map>{links}</{tag}_port_map>", f"<{tag}_body>{inner}</{tag}_body>"

    then_map, then_body = branch("then", 1, False)
    else_map, else_body = branch("else", 2, True)
    node = layer("If", 5, version="opset8", inner=else_map + then_map + then_body + else_body,
                 inputs={0: "BOOL", 1: "FP32 2", 2: "FP32 2"}, outputs={3: "FP32 2", 4: "FP32 2"})
    condition = layer("Parameter", "c", 'shape="" element_type="boolean"', outputs={0: "BOOL"})
    text = net(condition + parameter(0) + parameter(1) + node + result(8) + result(9),
               "c:0 5:0", "0:0 5:1", "1:0 5:2", "5:3 8:0", "5:4 9:0")
    (node_,) = read(tmp_path, text).of(If)
    assert node_.input_map == (Branched(node_.then_body.parameters[0], None),
                               Branched(None, node_.else_body.parameters[0]))
    then, otherwise = node_.output_map[0].then, node_.output_map[0].else_
    assert (then.name, otherwise.name) == ("Result_1", "Result_2")


def test_a_shape_that_comes_from_outside_is_known_inside(tmp_path: Path) -> None:
    """Reshape inside, its pattern is a constant outside: with the declared types only, its rank would be unknown."""
    reshape = layer("Reshape", 2, 'special_zero="false"', inputs={0: "FP32 2", 1: "I64 2"}, outputs={2: "FP32 2 1"})
    pattern = layer("Parameter", 1, 'shape="2" element_type="i64"', outputs={0: "I64 2"})
    inner = BODY.format(
        graph(parameter(0) + pattern + reshape + result(3, "FP32 2 1"), "0:0 2:0", "1:0 2:1", "2:2 3:0")
    )
    maps = """<port_map><input external_port_id="0" internal_layer_id="0" />
    <input external_port_id="1" internal_layer_id="1" /><output external_port_id="2" internal_layer_id="3" /></port_map>
    <back_edges />"""
    iterator = layer("TensorIterator", 5, inner=maps + inner, inputs={0: "FP32 2", 1: "I64 2"}, outputs={2: "FP32 2 1"})
    const = layer("Const", 1, 'element_type="i64" shape="2" offset="0" size="16"', outputs={0: "I64 2"})
    text = net(parameter(0) + const + iterator + result(9, "FP32 2 1"), "0:0 5:0", "1:0 5:1", "5:2 9:0")
    found = read(tmp_path, text, np.array([2, 1], np.int64).tobytes())
    assert opaque(found) == [] and len(found.of(Constant)) == 1


def test_dynamic_dimensions_of_inputs_are_symbols(tmp_path: Path) -> None:
    found = read(tmp_path, net(parameter(0, "?,2..5") + result(1, "FP32 -1 -1"), "0:0 1:0"))
    assert repr(found.parameters[0].output.shape) == "(d1_0, d1_1)"
    assert 'shape="?,2..5"' in written(tmp_path, found)
    assert Model(found).inputs == ["Parameter_0"]
