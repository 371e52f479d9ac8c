"""Bodies: constants, absent inputs, missing types, and the limit of nesting."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mo_loop.api import convert_model
from mo_loop.errors import UnsupportedError
from tests.cases import read_cases
from tests.harness import floats, parsed, raised, refusal

from .models import X, nested, same_numbers

pytestmark = pytest.mark.keeps_loops

# -- constants, empty inputs, missing types


def sparse(values: list[float], indices: Any, dims: list[int], name: str) -> Any:
    """A SparseTensorProto."""
    return helper.make_sparse_tensor(numpy_helper.from_array(np.array(values, np.float32), name),
                                     numpy_helper.from_array(np.array(indices, np.int64), f"{name}_indices"), dims)


def stripped(graph: Any, inside: bool = False) -> None:
    """Remove every type from the ports of bodies, and all value_info."""
    del graph.value_info[:]
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                stripped(attribute.g, True)
    if inside:
        for port in (*graph.input, *graph.output):
            port.ClearField("type")


@pytest.mark.parametrize("kinds", [("Loop", "Scan", "If"), ("Scan", "Loop"), ("If", "Loop", "Scan")], ids="-".join)
def test_bodies_without_types(kinds: tuple[str, ...]) -> None:
    """The types of a body's ports follow from its inputs."""
    text = nested(kinds, "u = Mul (start, w) v = Sub (u, start)")
    made = parsed(f"""
        main (float[4,3] x, float[3] start, int64 n, bool flag) => (float[3] y) <float[3] w = {{0.5, -0.25, 0.75}}> {{
          {text} y = Neg (y0) }}""")
    plain = onnx.ModelProto.FromString(made.SerializeToString())
    stripped(made.graph)
    start = floats(3, seed=2)
    sets = [{"x": X / 2, "start": start, "n": n, "flag": flag} for n, flag in ((2, True), (0, False))]
    same_numbers(made, plain, *sets)


# -- depth


def tower(depth: int) -> onnx.ModelProto:
    """Nested Ifs, `depth` bodies deep: -x if all flags are true, else |x|."""
    ports = [helper.make_tensor_value_info("x", 1, [2]), helper.make_tensor_value_info("flag", 9, [])]
    graph = helper.make_graph([], "tower", ports, [_out("t0")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    graph = model.graph
    for level in range(depth):
        node = graph.node.add(op_type="If", input=["flag"], output=[f"t{level}"], name=f"if{level}")
        no = helper.make_graph([helper.make_node("Abs", ["x"], [f"e{level}"])], "no", [], [_out(f"e{level}")])
        node.attribute.add(name="else_branch", type=onnx.AttributeProto.GRAPH, g=no)
        graph = node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH).g
        graph.name = "yes"
        graph.output.append(_out(f"t{level + 1}"))
    graph.node.append(helper.make_node("Neg", ["x"], [f"t{depth}"]))
    return model


def _out(name: str) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])


def test_bodies_33_deep_are_refused() -> None:
    error = refusal(tower(33))
    assert (error.code, error.exit_code) == ("ML312", 3)
    assert "deeper than the limit 'nesting', which is 32" in str(error)


def test_bodies_too_deep_for_protobuf_are_refused() -> None:
    assert raised(UnsupportedError, convert_model, nested_bytes(60)).code == "ML312"


def nested_bytes(depth: int) -> bytes:
    """A serialized model with more levels than protobuf reads: each level is written by hand."""
    data = helper.make_graph([helper.make_node("Neg", ["x"], ["t"])], "g", [], [_out("t")]).SerializeToString()
    for _ in range(depth):
        attribute = onnx.AttributeProto(name="then_branch", type=onnx.AttributeProto.GRAPH).SerializeToString()
        attribute += _field(6, data)
        node = onnx.NodeProto(op_type="If", input=["flag"], output=["t"]).SerializeToString() + _field(5, attribute)
        data = onnx.GraphProto(name="g", output=[_out("t")]).SerializeToString() + _field(1, node)
    model = onnx.ModelProto(ir_version=10, opset_import=[helper.make_opsetid("", 18)])
    return model.SerializeToString() + _field(7, data)


def _field(number: int, data: bytes) -> bytes:
    """A length-delimited field of protobuf."""
    size, length = b"", len(data)
    while length > 127:
        size += bytes([length & 127 | 128])
        length >>= 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + data


read_cases(globals())
