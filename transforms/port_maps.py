"""Editing the ports of Loop, TensorIterator and If: port map, inputs, outputs and body together."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mo_loop.graph import boolean, i64, low
from mo_loop.ops.control import Control, If, Iteration, Loop
from mo_loop.ops.movement import FAR
from mo_loop.ops.port_map import Branched, Concatenated, Final, Invariant, Merged, Selected, Sliced
from mo_loop.support.traversal import reached
from mo_loop.transforms.replace import move_readers, replace_output
from mo_loop.transforms.vocabulary import Constant, F, Graph, Node, Parameter, Result, Value, ops

ENDLESS = 2**31 - 1
"""A trip count of at least this number, or below 0, is not a limit."""


def invariant_source(node: Control, entry: object) -> Value | None:
    """The outer value that the body of a loop returns unchanged as a final value, or both branches of an If."""
    if isinstance(entry, Selected):
        results = (entry.then.value.node, entry.else_.value.node)
        fed = [(each.then, each.else_, value) for each, value in node.fed if isinstance(each, Branched)]
        then, other = (next((each[2] for each in fed if each[at] is results[at]), None) for at in (0, 1))
        return then if then is other else None
    made = entry.result.value if isinstance(entry, Final) else None
    inputs = ((each, value) for each, value in node.fed if isinstance(each, Invariant))
    return next((value for each, value in inputs if each.parameter.output is made), None)


def add_input(node: Control, entry: object, value: Value) -> None:
    """A value becomes the last data input of a control-flow node."""
    node.input_map = (*node.input_map, entry)
    node.graph.set_inputs(node, [*node.inputs, value])


def iteration_number(node: Loop) -> Value:
    """The number of the iteration, a scalar i64 in the body, which reads it from then on."""
    if node.iteration is None:
        node.iteration = Parameter(graph=node.body, dtype=i64, shape=())
    number: Value = node.iteration.output
    return number


def captured(body: Graph, value: Value) -> Value:
    """A Parameter of a body for a value of the graph around it."""
    owner = body.owner
    assert isinstance(owner, Control)
    parameter = Parameter(graph=body, type=value.type.without_known())
    sides = (parameter if each is body else None for each in owner.bodies)
    add_input(owner, Branched(*sides) if isinstance(owner, If) else Invariant(parameter), value)
    return parameter.output


def rebuilt(node: Control, fed: Sequence[tuple[Any, Value]], output_map: Sequence[Any]) -> Any:
    """A node like this one, with other data inputs and their entries, and other outputs. It has no readers yet."""
    attributes = {key: getattr(node, key) for key in node.attributes}
    attributes |= {"input_map": tuple(entry for entry, _ in fed), "output_map": tuple(output_map)}
    inputs = [*node.inputs[: node.first_data_port], *(value for _, value in fed)]
    made = type(node)(*inputs, graph=node.graph, name=node.name, **attributes)
    made.rt_info.update(node.rt_info)
    return made


def set_output(node: Control, place: int, entry: Any) -> None:
    """Give an output another entry; Results of the former one that have no other role are removed, and what only they
    read."""
    former = node.output_map[place]
    node.output_map = (*node.output_map[:place], entry, *node.output_map[place + 1 :])
    roles = {each for entry in (*node.input_map, *node.output_map) for each in vars(entry).values()}
    if isinstance(node, Loop):
        roles.add(node.condition)
    for result in vars(former).values():
        if isinstance(result, Result) and result not in roles and result in result.graph:
            result.graph.remove(result)
    for body in node.bodies:
        body.sweep()


def replace_iteration(old: Iteration, new: Iteration) -> None:
    """Replace `old` by `new`, which has its body and the same outputs; readers, names and rt_info move."""
    new.rt_info.update(old.rt_info)
    for output, replacement in zip(old.outputs, new.outputs, strict=True):
        replacement.copy_names(output)
        replace_output(output, replacement)
    old.graph.remove(old)


def replace_by_loop(old: Iteration) -> Loop:
    """Replace a TensorIterator or Scan by a Loop with a trip count from the length of its sliced input."""
    graph, body = old.graph, old.body
    condition = Result(F.Constant(True, graph=body, dtype=boolean))
    go = Constant(True, graph=graph, dtype=boolean)
    new = Loop(
        _slice_count(old), go, *old.inputs, name=old.name, body=body, input_map=old.input_map,
        output_map=old.output_map, condition=condition,
    )
    replace_iteration(old, new)
    return new


def _slice_count(node: Iteration) -> Value:
    """The number of slices of the first sliced input, a scalar."""
    if isinstance(node.count, int):
        return F.Constant(node.count, graph=node.graph, dtype=i64)
    entry, value = next((entry, value) for entry, value in node.fed if isinstance(entry, Sliced))
    return F.Gather(value.sizes, entry.axis, 0)


def is_one_after_another(entry: Sliced | Concatenated) -> bool:
    """Whether its slices are of size 1, and those of the whole axis from one end to the other."""
    return (entry.start, entry.end, entry.stride, entry.part_size) in ((0, -1, 1, 1), (-1, 0, -1, 1))


def drop_unused_outputs(node: Control) -> bool:
    """Remove outputs that are not read, and the Results of the body that only they use."""
    keep = [output.index for output in node.outputs if output.is_used]
    if len(keep) < len(node.outputs):
        node.output_map = tuple(node.output_map[index] for index in keep)
        node.graph.drop_outputs(node, keep)
    dropped = len(keep) < len(node.output_map)
    if isinstance(node, If):
        wanted = {result for entry in node.output_map for result in (entry.then, entry.else_)}
    else:
        wanted = {entry.result for entry in node.output_map} | live_states(node)
    for body in node.bodies:
        for result in [each for each in body.results if each not in wanted]:
            body.remove(result)
            dropped = True
    return dropped


def drop_unused_ports(node: Control) -> None:
    """Remove outputs and inputs that are not read, and the parts of the bodies that only they use."""
    drop_unused_outputs(node)
    for body in node.bodies:
        body.sweep()
    drop_unused_inputs(node)


def live_states(node: Control) -> set[Result]:
    """The Results that stay without an output: the condition, and the states that values in use depend on."""
    assert isinstance(node, Iteration)
    body = node.body
    live = {entry.result for entry in node.output_map}
    if isinstance(node, Loop):
        live.add(node.condition)
    feeds = {entry.parameter: entry.result for entry in node.back_edges}
    sinks: list[Node] = []
    if body.acts:
        sinks = [each for each in body if each.acts or (each.is_kept and not isinstance(each, Parameter | Result))]
    new: set[Node] = {*live, *sinks}
    while new:
        read = body.ancestors(new)
        new = {result for parameter, result in feeds.items() if parameter in read and result not in live}
        live |= new
    return {result for result in body.results if result in live}


def drop_unused_inputs(node: Control) -> bool:
    """Remove inputs whose Parameter is not read. A slice that gives the number of iterations stays."""
    dropped = _drop_iteration(node)
    keep: list[int] = []
    entries = list(node.input_map)
    results = {result for body in node.bodies for result in body.results}
    may_not_run = isinstance(node, Iteration) and low(node.count) < 1
    for number, entry in enumerate(entries):
        if isinstance(entry, Merged):  # where the loop may not run, its final value is the initial one
            used = entry.result in results and (_is_read(entry.parameter) or may_not_run)
        elif isinstance(node, If):
            used = _is_read(entry.then) or _is_read(entry.else_)
        else:
            used = _is_read(entry.parameter)
        if used:
            keep.append(number)
    if not isinstance(node, If | Loop):
        counting = _counting_slices(node)
        if counting and not any(number in keep for number in counting):
            keep = sorted([*keep, counting[0]])
    if isinstance(node, If):
        dropped = _drop_unread_sides(node) or dropped
    if len(keep) == len(entries):
        return dropped
    keep_inputs(node, keep)
    return True


def _counting_slices(node: Control) -> list[int]:
    """The numbers of the sliced inputs of known length; of all sliced inputs if none has a known length."""
    sliced = [number for number, entry in enumerate(node.input_map) if isinstance(entry, Sliced)]
    values = {number: node.data_inputs[number] for number in sliced}
    dims = {number: value.type.dims[node.input_map[number].axis] for number, value in values.items() if value}
    return [number for number, dim in dims.items() if isinstance(dim, int)] or sliced


def keep_inputs(node: Control, keep: Sequence[int]) -> None:
    """Keep only the data inputs numbered in `keep`; the unread Parameters of the others are removed."""
    for number, entry in enumerate(node.input_map):
        if number not in keep:
            for parameter in _parameters(entry):
                if parameter is not None and parameter in parameter.graph:
                    parameter.graph.remove(parameter)
    data = node.data_inputs
    node.input_map = tuple(node.input_map[number] for number in keep)
    values: list[Value | None] = [*node.inputs[: node.first_data_port], *(data[number] for number in keep)]
    node.graph.set_inputs(node, values)


def order_forwards(node: Loop) -> None:
    """Concatenate all outputs in the order of the steps, and reverse after the loop what was in reverse order."""
    entries = list(node.output_map)
    for place, (entry, output) in enumerate(node.returned):
        if isinstance(entry, Concatenated) and entry.stride == -1:
            entries[place] = replace(entry, start=0, end=-1, stride=1)
            readers = output.uses
            move_readers(output, reversed_along(output, entry.axis), readers)
    node.output_map = tuple(entries)


def reversed_along(value: Value, axis: int) -> Value:
    """The elements along an axis in reverse order, as pieces of an output whose stride is below 0."""
    return F.Slice(value, [-1], [-FAR], [-1], [axis])


def reads_only_sizes(node: Control) -> bool:
    """Whether a body reads an input, and its results do not depend on the elements of it."""
    parameters = {each for entry in node.input_map for each in _parameters(entry) if _is_read(each)}
    return not parameters <= set().union(*map(_read_by_value, node.bodies))


def _read_by_value(body: Graph) -> set[Node]:
    """The nodes on whose numbers the results depend; of others the sizes are read, or nothing."""
    return set(reached([each.value.node for each in body.results], _sources_by_value))


def _sources_by_value(node: Node) -> list[Node]:
    """The nodes whose numbers a node reads."""
    read = () if isinstance(node, ops.ShapeOf) else node.operands
    if isinstance(node, Control):
        inside = set().union(*map(_read_by_value, node.bodies))
        values = [x for entry, x in node.fed if not inside.isdisjoint(_parameters(entry))]
        read = (*node.operands[: node.first_data_port], *values)
    return [x.node for x in read]


def push_inputs(node: Control, is_pushed: Callable[[Value], bool], push: Callable[[Parameter, Value], object]) -> bool:
    """Replace invariant inputs by nodes of the bodies: `push` replaces the readers of a Parameter. True if any are."""
    kept: list[int] = []
    for number, (entry, value) in enumerate(zip(node.input_map, node.data_inputs, strict=True)):
        if value is None or not isinstance(entry, Invariant | Branched) or not is_pushed(value):
            kept.append(number)
            continue
        for parameter in _parameters(entry):
            if parameter is not None:
                push(parameter, value)
    if len(kept) == len(node.data_inputs):
        return False
    keep_inputs(node, kept)
    return True


def _drop_iteration(node: Control) -> bool:
    if isinstance(node, Loop) and node.iteration is not None and not node.iteration.output.is_used:
        node.body.remove(node.iteration)
        node.iteration = None
        return True
    return False


def _drop_unread_sides(node: If) -> bool:
    """An input that only one branch reads has no Parameter in the other."""
    changed = False
    entries = []
    for entry in node.input_map:
        for side in ("then", "else_"):
            parameter = getattr(entry, side)
            if parameter is not None and not _is_read(parameter):
                parameter.graph.remove(parameter)
                entry = replace(entry, **{side: None})
                changed = True
        entries.append(entry)
    if changed:
        node.input_map = tuple(entries)
    return changed


def _parameters(entry: object) -> list[Parameter | None]:
    return [value for value in vars(entry).values() if isinstance(value, Parameter)]


def _is_read(parameter: Parameter | None) -> bool:
    return parameter is not None and parameter.output.is_used


def take_branch(node: If, taken: bool) -> None:
    """Replace an If by the nodes of one of its branches."""
    for output, value in zip(node.outputs, inlined(node, taken), strict=True):
        replace_output(output, value)
    node.graph.remove(node)


def inlined(node: If, taken: bool) -> list[Value]:
    """The outputs of an If from copies of the nodes of one of its branches, in its own graph."""
    body = node.then_body if taken else node.else_body
    fed: dict[object, Value] = {}
    for entry, value in node.fed:
        fed |= {entry.then: value, entry.else_: value}
    made = node.graph.inline(body, [fed[parameter] for parameter in body.parameters])
    results = dict(zip(body.results, made, strict=True))
    return [results[entry.then if taken else entry.else_] for entry in node.output_map]
