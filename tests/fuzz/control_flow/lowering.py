"""The same model in a form that ONNX Runtime computes correctly: with Loop for Scan, which fails for a length of 0, or
divides by zero.

    Scan(states, x)  ->  Loop(Shape(x)[axis], True, states) { e = Gather(x, i, axis); ... }, reverse, transpose
"""

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper


def without_scan(model: ModelProto, ranks: Mapping[str, Sequence[int]]) -> ModelProto:
    """A copy of the model with every Scan (opset 9 or later) written as a Loop.

    `ranks` maps the name of a Scan node to the rank of each scan output.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    _rewrite(copy.graph, ranks)
    return copy


def _rewrite(graph: GraphProto, ranks: Mapping[str, Sequence[int]]) -> None:
    nodes: list[NodeProto] = []
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                _rewrite(attribute.g, ranks)
        nodes += _as_loop(node, ranks[node.name]) if node.op_type == "Scan" else [node]
    kept = [_copy(node) for node in nodes]
    del graph.node[:]
    graph.node.extend(kept)


def _as_loop(node: NodeProto, ranks: Sequence[int]) -> list[NodeProto]:
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    body, count = attributes["body"], attributes["num_scan_inputs"]
    states = len(node.input) - count
    outputs = len(node.output) - states
    tag = f"{node.name}_lowered"
    in_axes = attributes.get("scan_input_axes", [0] * count)
    in_backward = attributes.get("scan_input_directions", [0] * count)
    out_axes = attributes.get("scan_output_axes", [0] * outputs)
    out_backward = attributes.get("scan_output_directions", [0] * outputs)
    sources = list(node.input[states:])

    before = [helper.make_node("Shape", [sources[0]], [f"{tag}_shape"]), _constant(f"{tag}_axis", in_axes[0]),
              helper.make_node("Gather", [f"{tag}_shape", f"{tag}_axis"], [f"{tag}_length"], axis=0),
              _constant(f"{tag}_one", 1), helper.make_node("Sub", [f"{tag}_length", f"{tag}_one"], [f"{tag}_last"])]
    inside = [helper.make_node("Sub", [f"{tag}_last", f"{tag}_i"], [f"{tag}_j"])]
    hidden = {port.name for port in body.input}
    for number, source in enumerate(sources):
        if source in hidden:  # the body's own value of that name is a different one
            sources[number] = f"{tag}_x{number}"
            before.append(helper.make_node("Identity", [source], [sources[number]]))
    for source, axis, backward, port in zip(sources, in_axes, in_backward, body.input[states:], strict=True):
        index = f"{tag}_j" if backward else f"{tag}_i"
        inside.append(helper.make_node("Gather", [source, index], [port.name], axis=axis))
    inside.append(helper.make_node("Identity", [f"{tag}_c"], [f"{tag}_go"]))
    loop_body = helper.make_graph([*inside, *body.node], body.name, [
        helper.make_tensor_value_info(f"{tag}_i", TensorProto.INT64, []),
        helper.make_tensor_value_info(f"{tag}_c", TensorProto.BOOL, []), *body.input[:states],
    ], [helper.make_tensor_value_info(f"{tag}_go", TensorProto.BOOL, []), *body.output], body.initializer)
    stacked = [f"{tag}_o{k}" for k in range(outputs)]
    loop = helper.make_node("Loop", [f"{tag}_length", "", *node.input[:states]], [*node.output[:states], *stacked],
                            body=loop_body, name=tag)
    after: list[NodeProto] = []
    for name, target, axis, backward, rank in zip(stacked, node.output[states:], out_axes, out_backward, ranks,
                                                  strict=True):
        if not target:
            continue
        turned = f"{name}_turned" if backward else name
        if backward:
            parts = [("s", -1), ("e", -(2**62)), ("a", 0), ("d", -1)]
            after += [_constant(f"{name}_{key}", [value]) for key, value in parts]
            after.append(helper.make_node("Slice", [name, *(f"{name}_{key}" for key, _ in parts)], [turned]))
        order = list(range(1, rank))
        order.insert(axis % rank, 0)
        after.append(helper.make_node("Transpose", [turned], [target], perm=order))
    return [*before, loop, *after]


def _constant(name: str, value: int | list[int]) -> NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.array(value, np.int64), name))


def _copy(node: NodeProto) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    return copy
