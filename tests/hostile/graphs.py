"""Models that protobuf can parse and that attack what comes after: sizes, graphs, attributes, names."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.hostile.cases import add_models, case, floats, ints, model, node, scalar, stored, tensor

HUGE = 2**62


def _shaped(*dims: int) -> onnx.ModelProto:
    return model([node("Reshape", "x shape")], constants=[ints("shape", *dims)])


def _filled(*dims: int, op: str = "ConstantOfShape") -> onnx.ModelProto:
    return model([node(op, "shape", "c"), node("Add", "x c")], constants=[ints("shape", *dims)], shape=(1,))


def _doubled(times: int) -> onnx.ModelProto:
    """A constant that is concatenated with itself again and again."""
    nodes = [node("Concat", f"c{each} c{each}", f"c{each + 1}", axis=0) for each in range(times)]
    return model([*nodes, node("Add", f"x c{times}")], constants=[floats("c0", 1)], shape=(1,))


def _calls(depth: int, width: int = 2) -> onnx.ModelProto:
    """Functions that call the next one `width` times."""
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    made = []
    for each in range(depth):
        names = [f"v{place}" for place in range(width)]
        inner = "Relu" if each == depth - 1 else f"f{each + 1}"
        domain = "" if each == depth - 1 else "local"
        chain = zip(["x", *names], [*names[:-1], "y"], strict=False)
        nodes = [helper.make_node(inner, [a], [b], domain=domain) for a, b in chain]
        made.append(helper.make_function("local", f"f{each}", ["x"], ["y"], nodes, imports))
    return model([helper.make_node("f0", ["x"], ["y"], domain="local")], functions=made)


def _recursive(*names: str) -> onnx.ModelProto:
    """Functions that call each other in a circle."""
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    made = [
        helper.make_function(
            "local", name, ["x"], ["y"], [helper.make_node(after, ["x"], ["y"], domain="local")], imports
        )
        for name, after in zip(names, [*names[1:], names[0]], strict=True)
    ]
    return model([helper.make_node(names[0], ["x"], ["y"], domain="local")], functions=made)


def _branch(name: str, *nodes: onnx.NodeProto, output: str = "t") -> onnx.GraphProto:
    graph: onnx.GraphProto = helper.make_graph(list(nodes), name, [], [onnx.ValueInfoProto(name=output)])
    return graph


def _nested_ifs(depth: int) -> onnx.ModelProto:
    inner = _branch("b", node("Relu", "x", "t"))
    for _ in range(depth):
        inner = _branch("b", node("If", "go", "t", then_branch=inner, else_branch=_branch("e", node("Neg", "x", "t"))))
    made = model(list(inner.node), outputs=["t"])
    made.graph.input.append(helper.make_tensor_value_info("go", TensorProto.BOOL, []))
    return made


def _loop(trip: int, *body: onnx.NodeProto, **attributes: Any) -> onnx.ModelProto:
    values = [helper.make_tensor_value_info(name, kind, []) for name, kind in (("i", 7), ("c", 9))]
    states = [onnx.ValueInfoProto(name=name) for name in ("s",)]
    outputs = [onnx.ValueInfoProto(name=name) for name in ("c2", "t")]
    nodes = [node("Identity", "c", "c2"), *(body or [node("Relu", "s", "t")])]
    graph = helper.make_graph(nodes, "body", [*values, *states], outputs)
    given = {"body": graph, **attributes}
    return model([node("Loop", "trip go x", **given)], constants=[
        scalar("trip", trip), onnx.TensorProto(name="go", data_type=9, int32_data=[1])
    ])


def _conv(**attributes: Any) -> onnx.ModelProto:
    return model([node("Conv", "x w", **attributes)], constants=[floats("w", 3, 3, 3, 3)], shape=(1, 3, 8, 8))


def _named(name: str) -> onnx.ModelProto:
    made = model([node("Relu")], outputs=["y"])
    made.graph.node[0].name = name
    made.graph.node[0].output[0] = made.graph.output[0].name = name
    return made


def _edited(edit: Any, made: onnx.ModelProto | None = None) -> onnx.ModelProto:
    made = made or model([node("Relu")])
    edit(made)
    return made


# -- sizes

add_models("sizes", {
    "reshape_to_2_to_the_62": lambda: _shaped(HUGE, 1), "reshape_product_overflows": lambda: _shaped(2**32, 2**32),
    "reshape_to_a_negative_size": lambda: _shaped(-5, 2), "reshape_with_two_unknown_sizes": lambda: _shaped(-1, -1),
    "negative_dimension_of_a_tensor": lambda: model([node("Add", "x w")], constants=[tensor(dims=(-2, -3))]),
    "tensor_of_2_to_the_62_elements": lambda: model([node("Add", "x w")], constants=[tensor(dims=(HUGE,))]),
    "tensor_whose_product_overflows": lambda: model([node("Add", "x w")], constants=[tensor(dims=(2**32, 2**32))]),
    "tensor_of_other_length": lambda: model([node("Add", "x w")], constants=[tensor(data=bytes(7))]),
    "tensor_in_a_segment": lambda: _edited(
        lambda made: made.graph.initializer[0].segment.CopyFrom(onnx.TensorProto.Segment(begin=-1, end=2**62)),
        model([node("Add", "x w")], constants=[tensor(data=bytes(4))])),
    "slice_far_outside": lambda: model([node("Slice", "x a b")], constants=[ints("a", -HUGE, 5), ints("b", HUGE)]),
    "split_into_2_to_the_40": lambda: model([node("Split", num_outputs=2**40)]),
    "one_hot_of_a_negative_depth": lambda: model(
        [node("OneHot", "i d v")], constants=[ints("i", 1), scalar("d", -(2**40)), ints("v", 0, 1)]),
})
add_models("sizes", {
    "reshape_of_5000_dimensions": lambda: _shaped(*[1] * 5000),
    "tensor_of_an_unknown_type": lambda: model([node("Add", "x w")], constants=[tensor(data_type=99)]),
    "tensor_of_type_0": lambda: model([node("Add", "x w")], constants=[tensor(data_type=0)]),
    "pad_of_a_negative_result": lambda: model([node("Pad", "x p")], constants=[ints("p", -9, -9, -9, -9)]),
    "resize_by_2_to_the_60": lambda: model(
        [node("Resize", "x e s")],
        constants=[floats("e", 0), numpy_helper.from_array(np.float32([2.0**60, 1]), "s")]),
    "fill_of_2_to_the_40": lambda: _filled(2**40), "fill_of_2_to_the_62": lambda: _filled(HUGE),
    "fill_whose_product_overflows": lambda: _filled(2**32, 2**32),
    "fill_of_a_negative_size": lambda: _filled(-1),
    "range_of_2_to_the_62": lambda: model(
        [node("Range", "a b c", "r"), node("Cast", "r", "f", to=1), node("Add", "x f")],
        constants=[scalar("a", 0), scalar("b", HUGE), scalar("c", 1)], shape=(1,)),
    "range_of_step_0": lambda: model(
        [node("Range", "a b c", "r"), node("Cast", "r", "f", to=1), node("Add", "x f")],
        constants=[scalar("a", 0), scalar("b", 5), scalar("c", 0)], shape=(1,)),
    "tile_by_2_to_the_40": lambda: model([node("Tile", "x r")], constants=[ints("r", 2**40, 1)]),
    "tile_by_a_negative_number": lambda: model([node("Tile", "x r")], constants=[ints("r", -1, 1)]),
    "expand_to_2_to_the_62": lambda: model([node("Expand", "x s")], constants=[ints("s", HUGE, 1, 1)]),
    "pad_by_2_to_the_62": lambda: model([node("Pad", "x p")], constants=[ints("p", HUGE, 0, 0, 0)]),
    "concatenation_doubled_60_times": lambda: _doubled(60),
    "input_of_2_to_the_62": lambda: model([node("Relu")], shape=(HUGE, 4)),
    "input_of_2_to_the_63": lambda: model([node("Relu")], shape=(2**63 - 1,)),
    "eye_of_2_to_the_31": lambda: model([node("EyeLike", dtype=1)], shape=(2**31, 2**31)),
    "top_k_of_2_to_the_62": lambda: model([node("TopK", "x k", "y z")], constants=[ints("k", HUGE)]),
})

# -- attributes

add_models("attributes", {
    "group_0": lambda: _conv(group=0), "group_negative": lambda: _conv(group=-1),
    "group_huge": lambda: _conv(group=HUGE),
    "stride_0": lambda: _conv(strides=[0, 1]), "stride_negative": lambda: _conv(strides=[-1, 1]),
    "dilation_0": lambda: _conv(dilations=[0, 0]), "pads_huge": lambda: _conv(pads=[HUGE] * 4),
    "pads_of_a_wrong_length": lambda: _conv(pads=[1]), 
    "axis_outside": lambda: model([node("Softmax", axis=10**9)]),
    "permutation_with_repeats": lambda: model([node("Transpose", perm=[0, 0])]),
    "permutation_huge": lambda: model([node("Transpose", perm=[HUGE, -HUGE])]),
    "attribute_of_another_kind": lambda: model([node("Softmax", axis="one")]),
    "attribute_twice": lambda: _edited(lambda made: made.graph.node[0].attribute.append(
        helper.make_attribute("axis", 0)), model([node("Softmax", axis=1)])),
    "block_size_0": lambda: model([node("DepthToSpace", blocksize=0)], shape=(1, 4, 2, 2)),
    "block_size_negative": lambda: model([node("SpaceToDepth", blocksize=-2)], shape=(1, 4, 2, 2)),
    "hidden_size_huge": lambda: model(
        [node("LSTM", "x w r", hidden_size=HUGE)], constants=[floats("w", 1, 4, 3), floats("r", 1, 4, 1)],
        shape=(2, 1, 3)),
    "einsum_of_many_letters": lambda: model([node("Einsum", equation="ab" * 4000 + "->a")]),
    "local_response_of_size_0": lambda: model([node("LRN", size=0)], shape=(1, 4, 2, 2)),
})

add_models("attributes", {
    "kernel_of_a_wrong_rank": lambda: _conv(kernel_shape=[3] * 9),
    "cast_to_an_unknown_type": lambda: model([node("Cast", to=12345)]),
})

# -- graphs

add_models("graphs", {
    "cycle": lambda: model([node("Add", "x b", "a"), node("Add", "a x", "b"), node("Relu", "b")]),
    "node_that_reads_itself": lambda: model([node("Relu", "y", "y")]),
    "undefined_name": lambda: model([node("Add", "x nothing")]), "undefined_output": lambda: model([node("Relu")],
    outputs=["z"]), "no_nodes_and_no_outputs": lambda: model([], outputs=[]),
    "no_graph": lambda: onnx.ModelProto(ir_version=9), "opset_0": lambda: model([node("Relu")], opset=0),
    "opset_of_2_to_the_62": lambda: model([node("Relu")], opset=HUGE),
    "operator_without_a_name": lambda: model([node("")]),
    "function_that_calls_itself": lambda: _recursive("f"), "functions_in_a_circle": lambda: _recursive("f", "g", "h"),
    "missing_body": lambda: _edited(lambda made: made.graph.node[0].ClearField("attribute"), _loop(3)),
    "body_with_other_inputs": lambda: _edited(
        lambda made: made.graph.node[0].attribute[0].g.input.add(name="more"), _loop(3)),
    "body_without_outputs": lambda: _edited(
        lambda made: made.graph.node[0].attribute[0].g.ClearField("output"), _loop(3)),
    "branches_with_inputs": lambda: _edited(
        lambda made: made.graph.node[0].attribute[0].g.input.add(name="more"), _nested_ifs(1)),
    "missing_branch": lambda: _edited(lambda made: made.graph.node[0].attribute.pop(), _nested_ifs(1)),
    "scan_of_more_inputs_than_there_are": lambda: model([node("Scan", num_scan_inputs=10**9, body=_branch("b"))]),
    "input_of_no_type": lambda: _edited(lambda made: made.graph.input[0].ClearField("type")),
    "sparse_indices_outside": lambda: _edited(lambda made: made.graph.sparse_initializer.append(onnx.SparseTensorProto(
        values=tensor("w", (1,), bytes(4)), indices=ints("i", HUGE), dims=[2, 3])), model([node("Add", "x w")])),
    "sparse_of_2_to_the_62": lambda: _edited(lambda made: made.graph.sparse_initializer.append(onnx.SparseTensorProto(
        values=tensor("w", (1,), bytes(4)), indices=ints("i", 0), dims=[HUGE, 3])), model([node("Add", "x w")])),
})
add_models("graphs", {
    "two_different_nodes_make_a_name": lambda: model(
        [node("Relu", "x", "a"), node("Neg", "x", "a"), node("Exp", "a")]),
    "bodies_nested_15_deep": lambda: _nested_ifs(15), "trip_count_of_2_to_the_62": lambda: _loop(HUGE),
    "functions_that_expand_to_2_to_the_40": lambda: _calls(40),
    "negative_trip_count": lambda: _loop(-(2**62)), "functions_called_in_a_row": lambda: _calls(5, 3),
    "functions_nested_200_deep": lambda: _calls(200, 1),
    "a_node_with_10000_inputs": lambda: model([node("Sum", " ".join(["x"] * 10000))]),
    "state_that_grows": lambda: _loop(2**40, node("Concat", "s s", "t", axis=0)),
})

# -- names

add_models("names", {
    "control_characters": lambda: _named("\x1b]0;title\x07\x1b[2J\x1b[31mred"),
    "bidirectional_marks": lambda: _named("a\u202eb\u2066c"), "nul": lambda: _named("a\0b"),
    "xml": lambda: _named('"/><layer name="x" type="Result"/><!--'), "entity": lambda: _named("&xxe;%pe;"),
    "path": lambda: _named("../../../../tmp/owned"), "newlines": lambda: _named("a\nb\r\nc"),
    "format_directives": lambda: _named("{0.__class__}%s%n$x"),
    "html": lambda: _named("<img src=x onerror=alert(1)>"), "lone_surrogate_like": lambda: _named("\ufffe\uffff"),
    "template": lambda: _named("{{7*7}}${7*7}`id`$(id)"),
})
add_models("names", {"a_million_letters": lambda: _named("a" * 1_000_000)})


@case("graphs")
def a_hundred_thousand_outputs_that_nothing_reads(folder: Path) -> Path:
    names = " ".join(f"o{each}" for each in range(100_000))
    return stored(folder, model([node("Split", "x", names, axis=0), node("Relu")]))


@case("attributes")
def attribute_of_ten_megabytes(folder: Path) -> Path:
    return stored(folder, model([node("Relu", doc="a" * 10_000_000)]))
