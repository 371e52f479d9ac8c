"""SequenceMap as a Loop over the elements of a sequence.

    u = SequenceMap (s, x) <body = (e, f) => (r)>

    u = Loop (SequenceLength (s), "", SequenceEmpty ()) <body = (i, go, list) => (go, longer) {
        e = SequenceAt (s, i)    f = Identity (x)    ... r    longer = SequenceInsert (list, r)
    }>

    SequenceMap (SequenceConstruct (a, b), x)    ->    SequenceConstruct (body (a, x), body (b, x))

ONNX's own expansion requires declared types of the body's outputs, and loses the outer values that the body captures.
"""

from collections.abc import Sequence
from typing import Any

from mo_loop import ops as operations
from mo_loop.frontend.ops.control import loop
from mo_loop.frontend.vocabulary import Body, Context, Value, ops, translates
from mo_loop.graph.types import ElementType, SequenceType, f32

COPIES = 32
"""The largest number of known elements for which the body is unrolled."""


@translates("SequenceMap", since=17)
def sequence_map(input_sequence, *additional_inputs, body: Body, node: Context):
    values = [input_sequence, *additional_inputs]
    rows = _known_elements(values)
    if rows and len(body.inputs) == len(values):
        return [ops.SequenceConstruct(*each) for each in zip(*map(body.inline, rows), strict=True)]
    names = [f"{node.path}:{place}" for place in range(len(values))]  # the body may define the outer names itself
    node.scope.values.update(zip(names, values, strict=True))
    empty = [ops.SequenceEmpty(graph=node.graph, dtype=dtype) for dtype in _returned(body, values)]
    count = ops.SequenceLength(input_sequence)
    return loop(count, None, *empty, body=_body_of_loop(body, names, values), node=node)


def _known_elements(values: Sequence[Value]) -> list[list[Value]]:
    """The inputs of the body for each element, if the elements of all sequences are known; else an empty list."""
    lists = [value for value in values if isinstance(value.type, SequenceType)]
    if values[0] not in lists or not all(isinstance(value.node, operations.SequenceConstruct) for value in lists):
        return []
    count = len(values[0].node.inputs)
    columns = [value.node.inputs if value in lists else [value] * count for value in values]
    return [list(row) for row in zip(*columns, strict=False)] if count <= COPIES else []


def _returned(body: Body, values: Sequence[Any]) -> list[ElementType]:
    """The element types of the body's outputs; if one is unknown, the declared one or f32: the Loop reports errors."""
    types = [each.type.element if isinstance(each.type, SequenceType) else each.type for each in values]
    results = body.translate(types).results
    return [each.value.dtype or body.declared_output(place).dtype or f32 for place, each in enumerate(results)]


def _body_of_loop(body: Body, names: Sequence[str], values: Sequence[Any]) -> Body:
    """The body of the Loop: reads the elements, computes the body of the SequenceMap, and appends the results."""
    from onnx import GraphProto, NodeProto, TensorProto, helper

    place, go, *lists = (f"{names[0]}:{what}" for what in ("place", "go", *range(len(body.outputs))))
    longer = [f"{each}:longer" for each in lists]
    graph = GraphProto()
    graph.CopyFrom(body.proto)
    del graph.input[:], graph.node[:], graph.output[:]
    graph.input.append(helper.make_tensor_value_info(place, TensorProto.INT64, []))
    graph.input.append(helper.make_tensor_value_info(go, TensorProto.BOOL, []))
    graph.input.extend(helper.make_empty_tensor_value_info(each) for each in lists)
    for name, outer, value in zip(body.inputs, names, values, strict=True):
        is_list = isinstance(value.type, SequenceType)
        graph.node.append(NodeProto(op_type="SequenceAt" if is_list else "Identity", input=[outer], output=[name]))
        graph.node[-1].input.extend([place] if is_list else [])
    graph.node.extend(body.proto.node)
    for each, returned, after in zip(lists, body.outputs, longer, strict=True):
        graph.node.append(NodeProto(op_type="SequenceInsert", input=[each, returned], output=[after]))
    graph.output.extend(helper.make_empty_tensor_value_info(each) for each in (go, *longer))
    return body.replaced(graph)
