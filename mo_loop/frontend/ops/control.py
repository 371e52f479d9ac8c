"""Loop and Scan.

Roles of body inputs and outputs follow from POSITION, never from names: exporters reuse outer names inside bodies.

SequenceMap is a Loop over the elements of a sequence:

    u = SequenceMap (s, x) <body = (e, f) => (r)>

    u = Loop (SequenceLength (s), "", SequenceEmpty ()) <body = (i, go, list) => (go, longer) {
        e = SequenceAt (s, i)    f = Identity (x)    ... r    longer = SequenceInsert (list, r)
    }>

    SequenceMap (SequenceConstruct (a, b), x)    ->    SequenceConstruct (body (a, x), body (b, x))

ONNX's own expansion requires declared types of the body's outputs, and loses the outer values that the body captures.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mo_loop import ops as operations
from mo_loop.frontend.context import TranslatedBody
from mo_loop.frontend.ops import conditional
from mo_loop.frontend.ops.shared import ones, ranked
from mo_loop.frontend.scope import Capture, Scope
from mo_loop.frontend.vocabulary import Body, Context, Graph, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph import assume_fixed, normalise_axis, now
from mo_loop.graph.types import UNKNOWN, ElementType, SequenceType, TensorType, boolean, f32, i64, tensor_of_known
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.front import Failed
from mo_loop.ops.port_map import Concatenated, Final, Invariant, Merged, Sliced


@translates("Loop", since=1)
def loop(trip_count=None, condition=None, *initial: Value | None, body: Body, node: Context):
    """Loop-5. The condition that the body receives is true whenever the body runs, so it is a constant there."""
    trip = conditional.one_element(trip_count) if trip_count is not None else node.constant(-1, i64)
    trip = trip.astype(i64)
    go = conditional.as_condition(condition) if condition is not None else node.constant(True, boolean)
    states = _present(initial, "initial value of a state")
    if len(body.outputs) < 1 + len(states):
        needed = f"the condition and the states ({1 + len(states)})"
        raise ModelError(f"the body returns too few values: {len(body.outputs)} for {needed}", code="ML226")
    carried = [state.type.without_known() for state in states]
    least = [conditional.least_of(state, node.scope.least_ranks) for state in states]
    translated, truth = _translated_loop(body, condition, carried, least)
    if conditional.cannot_run(translated) and len(body.outputs) == 1 + len(states):
        return states
    if translated.has_failed:
        return conditional.failed_outputs(node, translated, [trip, go, *states])
    iteration, flag, *parameters = translated.parameters
    results = translated.results
    starts, ends = states, [result.value for result in results[1 : 1 + len(states)]]
    states = conditional.with_ranks_of(parameters, states, results[1:])
    flag.output.replace_with(ops.Constant(truth, graph=translated.graph))
    translated.graph.remove(flag)
    condition_result = results[0]
    conditional.set_value(condition_result, conditional.as_condition(condition_result.value))
    input_map: list[Any] = [Merged(p, r) for p, r in zip(parameters, results[1:], strict=False)]
    inputs = list(states)
    _add_captures(translated.captures, input_map, inputs)
    output_map: list[Any] = [Final(result) for result in results[1 : 1 + len(states)]]
    for place, result in enumerate(results[1 + len(states) :], 1 + len(states)):
        conditional.require_one_rank("a scan output collects a value", result.value, node.scope)
        declared = _declared_output(body, place, result.value, 0)
        conditional.set_value(result, ops.Unsqueeze(result.value, 0))
        output_map.append(Concatenated(result, axis=0, declared=declared))
    made = operations.Loop(
        trip, go, *inputs, graph=node.graph, body=translated.graph, input_map=tuple(input_map),
        output_map=tuple(output_map), iteration=iteration, condition=condition_result,
        none_below_zero=trip_count is not None, starts=_starts(go, None if trip_count is None else trip),
    )
    conditional.set_final_ranks(node, made, starts, ends)
    return made


def _starts(condition: Value, trip: Value | None) -> bool:
    """Whether constants make a Loop run at least once: exporters of Paddle compute its condition from them."""
    known = [value.constant for value in (condition, trip) if value is not None]
    return all(array is not None and (array > 0).all() for array in known)


def _translated_loop(
    body: Body, condition: Value | None, carried: list[TensorType], least: list[int | None]
) -> tuple[TranslatedBody, Any]:
    """The body of a Loop, and the condition that it receives: true, in the shape it expects."""
    shape = _given_shape(body, 1, condition)
    while True:
        truth = ones(shape, np.bool_)
        first = [
            TensorType(i64, _given_shape(body, 0, None)),
            tensor_of_known(boolean, truth.astype(int).astype(object)),
        ]
        translated = conditional.settled(body, first, carried, (), least, skip=1)
        returned = translated.results[0].value
        if condition is not None or shape or returned.type is UNKNOWN or not returned.rank or _has_rank(body, 1):
            return translated, truth
        # Without a source or a declaration, the condition has the rank that the body returns.
        shape = (1,) * returned.rank


@translates("Scan", since=9)
def scan(
    *inputs, body: Body, num_scan_inputs: int, scan_input_axes: tuple[int, ...] = (),
    scan_input_directions: tuple[int, ...] = (), scan_output_axes: tuple[int, ...] = (),
    scan_output_directions: tuple[int, ...] = (), node: Context,
):
    """A front operation, because its lowering depends on types that later passes refine."""
    values = _present(inputs, "input of Scan")
    _check_split(num_scan_inputs, len(values))
    axes = _per_input(scan_input_axes, num_scan_inputs, "scan_input_axes")
    directions = _per_input(scan_input_directions, num_scan_inputs, "scan_input_directions")
    return _scan(node, body, values, axes, directions, scan_output_axes, scan_output_directions)


@translates("Scan", since=8)
def scan_8(
    sequence_lens=None, *inputs, body: Body, num_scan_inputs: int, directions: tuple[int, ...] = (), node: Context,
):
    """A Scan over the batch (axis 0) whose body is a Scan over the sequence, cut and padded to each length."""
    values = _present(inputs, "input of Scan")
    _check_split(num_scan_inputs, len(values))
    count = len(values) - num_scan_inputs
    flags = _per_input(directions, num_scan_inputs, "directions")
    for value in values:
        conditional.require_one_rank("Scan reads an input", value, node.scope)
        if not value.rank:
            raise UnsupportedError("an input of a batch has no known rank, or has rank 0", code="ML314")
    if sequence_lens is not None:
        values = [*values, sequence_lens]
    batch = Graph("batch")
    scope = Scope(batch, node.scope, (*node.origin.inner_scope, "batch"))
    parameters = [Parameter(graph=batch, type=_element_type(value.type, 0)) for value in values]
    elements = [parameter.output for parameter in parameters]
    length = elements.pop() if sequence_lens is not None else None
    longest = ops.Gather(elements[count].sizes, [0], np.array(0))
    if length is not None:
        assume_fixed(elements[count].type.dims[:1])  # a Reshape to it says that padding to it gives it
        length = length.reshape([1])
        cut = [each[:length] for each in elements[count:]]
        elements = [*elements[:count], *cut]
    inner = _scan(node, body.within(scope), elements, [0] * num_scan_inputs, flags, (), (), batch)
    outputs = list(inner.outputs)
    for each in outputs:
        conditional.require_one_rank("Scan returns a value", each, node.scope)
    if length is not None and not isinstance(inner, Failed):
        outputs[count:] = [_padded(each, length, longest) for each in outputs[count:]]
    results = [Result(each) for each in outputs]
    input_map: list[Any] = [Sliced(parameter, 0) for parameter in parameters]
    _add_captures(scope.captures, input_map, values)
    if isinstance(inner, Failed):
        return Failed(*values, graph=node.graph, error=inner.error, count=max(len(node.outputs), 1), name=node.path)
    return operations.Scan(
        *values, graph=node.graph, body=batch, input_map=tuple(input_map),
        output_map=tuple(Concatenated(result, 0) for result in results),
    )


def _padded(value: Value, length: Value, longest: Value) -> Value:
    """`value` of `length` slices along axis 0, padded with slices of zeros to `longest` (both of shape [1])."""
    others = value.type.known_rank - 1
    ends = ops.Concat(longest - length, *([np.zeros(others, np.int64)] if others else []), axis=0)
    fill = ops.Constant(np.zeros(()), graph=value.graph, dtype=value.dtype)
    padded = ops.Pad(value, [0] * value.type.rank, ends, fill, pad_mode="constant")
    if longest.type.integers is None:
        return padded
    # The length is known, but not to follow from the one before and the pads.
    return ops.Reshape(padded, [*longest.type.integers, *[0] * others], special_zero=True)


def _scan(
    node: Context, body: Body, values: list[Value], axes: Sequence[int], directions: Sequence[int],
    output_axes: Sequence[int], output_directions: Sequence[int], graph: Graph | None = None,
):
    """The Scan of `values` (states, then as many scan inputs as `axes`), in `graph`, the node's own by default."""
    graph = graph or node.graph
    count = len(values) - len(axes)
    ranks = node.scope.least_ranks
    for value in values[count:]:
        conditional.require_one_rank("Scan reads a tensor in slices", value, node.scope)
    slices = []
    for value, axis in zip(values[count:], axes, strict=True):
        position = normalise_axis(axis, ranked(value, "a scan input"), "scan input axis")
        slices.append((position, value.type.dims[position]))
    static = {size for _, length in slices if (size := now(length)) is not None}
    if len(static) > 1:
        raise ModelError(f"the scan inputs have different lengths: {sorted(static)}", code="ML226")
    elements = [_element_type(v.type, axis) for v, (axis, _) in zip(values[count:], slices, strict=True)]
    carried = [value.type.without_known() for value in values[:count]]
    if len(body.outputs) < count:
        raise ModelError(f"the body returns too few values: {len(body.outputs)} for the states ({count})", code="ML226")
    least = [conditional.least_of(value, ranks) for value in values[:count]]
    translated = conditional.settled(body, [], carried, elements, least)
    if translated.has_failed:
        return conditional.failed_outputs(node, translated, values, graph=graph)
    results = translated.results
    starts, ends = values[:count], [result.value for result in results[:count]]
    values = [*conditional.with_ranks_of(translated.parameters[:count], starts, results), *values[count:]]
    input_map: list[Any] = [Merged(p, r) for p, r in zip(translated.parameters[:count], results[:count], strict=True)]
    for parameter, (axis, _), backward in zip(translated.parameters[count:], slices, directions, strict=True):
        input_map.append(Sliced(parameter, axis, -1, 0, -1) if backward else Sliced(parameter, axis))
    _add_captures(translated.captures, input_map, values)
    outputs = results[count:]
    out_axes = _per_input(output_axes, len(outputs), "scan_output_axes")
    out_directions = _per_input(output_directions, len(outputs), "scan_output_directions")
    output_map: list[Any] = [Final(result) for result in results[:count]]
    for place, (result, given, backward) in enumerate(zip(outputs, out_axes, out_directions, strict=True), count):
        conditional.require_one_rank("a scan output collects a value", result.value, node.scope)
        axis = normalise_axis(given, ranked(result.value, "a scan output") + 1, "scan output axis")
        cut = (-1, 0, -1) if backward else (0, -1, 1)
        declared = _declared_output(body, place, result.value, axis)
        output_map.append(Concatenated(result, axis, *cut, declared=declared))
    made = operations.Scan(
        *values, graph=graph, body=translated.graph, input_map=tuple(input_map), output_map=tuple(output_map)
    )
    conditional.set_final_ranks(node, made, starts, ends)
    return made


def _given_shape(body: Body, index: int, source: Value | None) -> tuple[int, ...]:
    """The shape of a one-element input of a Loop body. The rank is the declared one, or that of its source.

    ONNX Runtime follows the declaration as well: exporters write both scalars and [1].
    """
    if _has_rank(body, index):
        return (1,) * body.declared(index).rank
    if source is not None:
        conditional.require_one_rank("the body receives the condition", source, body.scope)
    return (1,) * (0 if source is None else source.rank or 0)


def _has_rank(body: Body, index: int) -> bool:
    """Whether the body declares the rank of its input number `index`."""
    declared = body.declared(index) if index < len(body.inputs) else UNKNOWN
    return isinstance(declared, TensorType) and declared.rank is not None


def _declared_output(body: Body, index: int, element: Value, axis: int) -> tuple[int, ...]:
    """Dimensions of a scan output known only from the declared type of its element, -1 for all others.

    In ONNX Runtime, an output of no iterations has them. They are not part of the type: declarations can be wrong.
    """
    declared = body.declared_output(index)
    shape = declared.shape if isinstance(declared, TensorType) else None
    if shape is None or element.shape is None or len(shape) != len(element.shape):
        return ()
    pairs = zip(shape, element.shape, strict=True)
    found = [a if isinstance(a, int) and not isinstance(b, int) else -1 for a, b in pairs]
    return (*found[:axis], -1, *found[axis:]) if max(found, default=-1) >= 0 else ()


def _present(values: Sequence[Value | None], what: str) -> list[Value]:
    if any(value is None for value in values):
        raise ModelError(f"an {what} is missing", code="ML227")
    return [value for value in values if value is not None]


def _add_captures(captures: Sequence[Capture], input_map: list[Any], inputs: list[Value]) -> None:
    for outer, parameter in captures:
        input_map.append(Invariant(parameter))
        inputs.append(outer)


def _per_input(given: Sequence[int], count: int, what: str) -> Sequence[int]:
    if given and len(given) != count:
        raise ModelError(f"{what} has {len(given)} entries, not {count}", code="ML226")
    return given or [0] * count


def _check_split(scanned: int, inputs: int) -> None:
    if not 0 < scanned <= inputs:
        raise ModelError(f"num_scan_inputs is {scanned} with {inputs} inputs", code="ML226")


def _element_type(type_: TensorType, axis: int) -> TensorType:
    return TensorType(type_.dtype, (*type_.dims[:axis], *type_.dims[axis + 1 :]))


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
