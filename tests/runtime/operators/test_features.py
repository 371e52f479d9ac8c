"""ai.onnx.ml's encoders and scalers, compared with ONNX Runtime if it has the type, else with the text of ONNX."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper

from mo_loop.api import convert_model
from mo_loop.errors import ConversionWarning, MoLoopError
from tests.cases import read_cases
from tests.harness import check_model, every, raised, refusal

both = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
NAN = float("nan")


def ml_model(op_type: str, inputs: Sequence[Any], attributes: Any, *, version: int = 1, outputs: int = 1,
             domain: str = "ai.onnx.ml", dynamic: bool = False) -> Any:
    """A model of one node of a domain other than the default one."""
    names, results = [f"x{i}" for i in range(len(inputs))], [f"y{i}" for i in range(outputs)]
    shapes = [
        [f"{name}_{i}" if dynamic else d for i, d in enumerate(x.shape)] for name, x in zip(names, inputs, strict=True)
    ]
    ports = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), shape)
             for name, x, shape in zip(names, inputs, shapes, strict=True)]
    node = helper.make_node(op_type, names, results, domain=domain, name="odd", **attributes)
    graph = helper.make_graph([node], "test", ports, [helper.make_empty_tensor_value_info(name) for name in results])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(domain, version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def check(op_type: str, inputs: Sequence[Any], attributes: Any, *, version: int = 1, outputs: int = 1,
          dynamic: bool = False, expected: Any = None, domain: str = "ai.onnx.ml",
          rtol: float | None = None) -> list[Any]:
    model = ml_model(op_type, inputs, attributes, version=version, outputs=outputs, dynamic=dynamic, domain=domain)
    return check_model(model, {f"x{i}": x for i, x in enumerate(inputs)}, expected=expected, rtol=rtol)


def refused(op_type: str, inputs: Sequence[Any], attributes: Any, code: str, version: int = 1) -> None:
    assert refusal(ml_model(op_type, inputs, attributes, version=version)).code == code


TABLE = np.array([[1, -2, 3], [0, 0, 0], [-4, 5.5, -1], [-3, -2, -1]], np.float32)
TYPES = [np.float32, np.float64, np.int32, np.int64]


@every(dynamic=[False, True], dtype=TYPES)
def test_array_feature_extractor(dtype: Any, dynamic: bool) -> None:
    x = TABLE.astype(dtype)
    for data, places in ((x, [2, 0]), (x[0], [[2, 0]]), (x[None], [1]), (x, [[0], [1]]), (x[:0], [1, 1])):
        rows = data.shape[:-1] if data.ndim > 1 else (1,)
        expected = data[..., np.ravel(places)].reshape(*rows, np.size(places))
        check("ArrayFeatureExtractor", [data, np.array(places)], {}, dynamic=dynamic, expected=[expected])


# -- LabelEncoder


def encoded(x: Any, keys: Any, values: Any, default: Any, dtype: Any) -> Any:
    table = dict(zip(keys, values, strict=True))
    nan = next((value for key, value in zip(keys, values, strict=True) if key != key), default)
    found = [nan if item != item else table.get(item, default) for item in x.ravel().tolist()]
    return np.array(found, dtype).reshape(x.shape)


@every(dynamic=[False, True], version=[2, 4])
def test_label_encoder(version: int, dynamic: bool) -> None:
    whole, real = np.array([[1, 5, -7], [2**24, 2**24 + 1, 0]]), np.float32([1.5, -0.0, NAN, 3.25, 1.25])
    keys, floats = [1, -7, 2**24 + 1], [1.5, 0.0, NAN, 3.25]
    for x, name, given in ((whole, "keys_int64s", keys), (real, "keys_floats", floats),
                           (whole[:0], "keys_int64s", keys)):
        count = len(given)
        to_ints = {name: given, "values_int64s": list(range(10, 10 + count)), "default_int64": -3}
        expected = encoded(x, given, to_ints["values_int64s"], -3, np.int64)
        check("LabelEncoder", [x], to_ints, version=version, dynamic=dynamic, expected=[expected])
        to_floats = {name: given, "values_floats": [0.5 * i for i in range(count)], "default_float": 9.5}
        expected = encoded(x, given, to_floats["values_floats"], 9.5, np.float32)
        check("LabelEncoder", [x], to_floats, version=version, dynamic=dynamic, expected=[expected])


@pytest.mark.parametrize(("keys", "values"), [(np.float64, np.int32), (np.int32, np.float64), (np.int16, np.int16)])
def test_tensors_of_keys_and_values(keys: Any, values: Any) -> None:
    x = np.array([3, 4, 9], keys)
    tensors = {"keys_tensor": np.array([3, 9], keys), "values_tensor": np.array([7, 8], values),
               "default_tensor": np.array([-2], values)}
    attributes = {name: helper.make_tensor(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape, a) for name, a in
                  tensors.items()}
    check("LabelEncoder", [x], attributes, version=4, expected=[np.array([7, -2, 8], values)])


def zipped(labels: Sequence[Any], shape: Sequence[Any], reader: str = "") -> Any:
    """Probabilities, their maximum, and ZipMap at an output; `reader` is an operator that reads its maps."""
    key = 7 if isinstance(labels[0], int) else 8
    kind = helper.make_sequence_type_proto(helper.make_map_type_proto(key, helper.make_tensor_type_proto(1, [])))
    name = "classlabels_int64s" if key == 7 else "classlabels_strings"
    nodes = [helper.make_node("Softmax", ["x"], ["p"]),
             helper.make_node("ZipMap", ["p"], ["maps"], "zip", domain="ai.onnx.ml", **{name: labels}),
             helper.make_node("ReduceMax", ["p"], ["best"], keepdims=0)]
    outputs = [helper.make_value_info("maps", kind), helper.make_empty_tensor_value_info("best")]
    if reader:
        nodes.append(helper.make_node(reader, ["maps"], ["read"]))
        outputs.append(helper.make_empty_tensor_value_info("read"))
    graph = helper.make_graph(nodes, "test", [helper.make_tensor_value_info("x", 1, shape)], outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@both
@pytest.mark.parametrize("labels", [[3, -1, 2], ["b", "a", "c,d"]], ids=["numbers", "strings"])
def test_maps_at_an_output_are_their_tensor(labels: Any, dynamic: bool) -> None:
    """The columns have the order of the labels, which the IR records; ONNX Runtime sorts its maps by the label."""
    model = zipped(labels, ["N", None] if dynamic else ["N", 3])
    with pytest.warns(ConversionWarning, match="'maps' is a tensor") as heard:
        converted = convert_model(model)
    assert [each.message.code for each in heard if isinstance(each.message, ConversionWarning)] == ["ML560"]
    assert json.loads(converted.to_openvino().get_rt_info(["class_labels", "maps"]).astype(str)) == labels
    check_model(model, {"x": TABLE}, {"x": TABLE[:0]}, {"x": TABLE[1:2]})


def test_maps_of_another_number_of_labels_are_refused() -> None:
    assert "ML227" in str(refusal(zipped([1, 2], ["N", 3])))


@pytest.mark.parametrize("reader", ["SequenceLength", "Identity"])
def test_maps_that_the_model_reads_are_refused(reader: str) -> None:
    assert raised(MoLoopError, convert_model, zipped([1, 2, 3], ["N", 3], reader), match="--output").code == "ML311"


read_cases(globals())
