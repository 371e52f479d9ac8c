"""The parts that the passes of this folder share: the chosen inputs, the axis of their channels, the earlier steps."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from mo_loop.errors import UsageError
from mo_loop.graph import TensorType, now
from mo_loop.graph.shape import merge_dim, of_declared_sizes
from mo_loop.preprocessing import PerInput, layout_of
from mo_loop.transforms.vocabulary import Graph, Node, Parameter, Result, Value, is_static, ops

T = TypeVar("T")

DONE = "preprocessing"
"""The section of the model's rt_info with the built-in preprocessing: step -> input -> how."""


def names_of(parameter: Parameter) -> set[str]:
    """The names of an input."""
    return {parameter.name, *parameter.output.names} - {""}


def inputs_of(graph: Graph) -> list[Parameter]:
    """The inputs, without the index of sequences that --beam-idx adds: it comes from no tensor of the ONNX model."""
    has_states = graph.has(ops.ReadValue)
    return [each for each in graph.parameters if each.origins or not has_states]


def values_by_input(graph: Graph, values: PerInput[T]) -> list[tuple[Parameter, T]]:
    """The inputs that `values` names, with their values; UsageError for a name that no input has, or a state."""
    inputs = inputs_of(graph)
    known = [names_of(parameter) for parameter in inputs]
    require_known(graph, values, [name for names in known for name in sorted(names)])
    return [(inputs[place], value) for place, value in values.among(known).items()]


def require_known(graph: Graph, values: PerInput[T], known: Iterable[str]) -> None:
    """UsageError for a name in `values` that is not among `known`; it names inputs that became states."""
    known = list(dict.fromkeys(known))
    for name, _ in values.entries if graph.has(ops.ReadValue) else ():
        pair = None if name in known else state_of(graph, name)
        if pair is not None:
            raise UsageError(
                f"{values.flag} names {name!r}, which is no longer an input or output", code="ML202",
                why=f"the input {pair[0]!r} and the output {pair[1]!r} became the state {''.join(pair)!r}, which keeps "
                "the numbers that the model computes",
                hint=f'omit it, or keep the input (--stateful-pair "{pair[0]}=")',
            )
    values.require_known(known)


def state_of(graph: Graph, name: str) -> tuple[str, str] | None:
    """The names of the input and the output that became a state, if one of them is `name`."""
    for read in graph.of(ops.ReadValue):
        before, after = read.name, read.variable_id.removeprefix(read.name)
        if name in (before, after, *read.output.names):
            return before, after
    return None


def put_after(parameter: Parameter, make: Callable[[Value], Node]) -> Node:
    """Put the node that `make` returns between an input and all its readers. The input keeps its names."""
    readers = parameter.output.uses
    node = make(parameter.output)
    for reader, port in readers:
        reader.graph.set_input(reader, port, node.outputs[0])
        if isinstance(reader, Result) and reader.output_names:
            node.name = reader.output_names[0]
    return node


def narrow(parameter: Parameter, axis: int, size: int) -> None:
    """Set a dimension of an input to `size`, the only size that the option allows; WriteSizes adds a check of it.

    Other inputs whose size is assumed to be the same get it too. Raises TypeError_ if the dimension cannot have this
    size.
    """
    graph, dim = parameter.graph, parameter.value_type.shape[axis]
    if dim == size:
        return
    places = [(parameter, axis)]
    if now(dim) is not None:
        shapes = [(each, each.output.shape or ()) for each in graph.parameters]
        places = [(each, at) for each, dims in shapes for at, own in enumerate(dims) if own == dim]
    for each, at in places:
        shape = each.value_type.shape
        each.retype(each.value_type.with_shape((*shape[:at], merge_dim(dim, size), *shape[at + 1 :])))
        graph.validate_node(each)


def channel_axis(parameter: Parameter, count: int, flag: str) -> int:
    """The axis of the `count` channels of an input: that of its layout, else the only dimension of that size.

    The first of four and more dimensions is the batch. UsageError where there is no such dimension, or several.
    """
    type_ = parameter.output.type
    name = parameter.name
    if type_.shape is None:
        hint = f"give its shape: --input '{name}[1,{count},224,224]'"
        raise UsageError(f"{flag}: the rank of the input {name!r} is unknown", hint=hint)
    layout = layout_of(parameter.output)
    if layout is not None:
        axis = layout.axis("C", len(type_.dims))
        if axis is None:
            raise UsageError(f"{flag}: the layout {layout} of the input {name!r} has no channels C")
        if now(type_.shape[axis]) not in (None, count):
            other = f"the input {name!r} of layout {layout} has {type_.shape[axis]}: {type_}"
            raise UsageError(f"{flag} is for {count} channels, {other}", hint=_FEWER)
        return axis
    found = axes_of_size(type_, count)
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} dimensions" if found else "no dimension"
    hint = f"say where the channels are: --layout '{name}({'nchw' if len(type_.shape) == 4 else 'nc...'})'"
    if not found and is_static(of_declared_sizes(type_.shape)):  # no layout can change it
        hint = _FEWER
    raise UsageError(f"{flag} is for {count} channels, the input {name!r} has {what} of that size: {type_}", hint=hint)


_FEWER = "give as many numbers as the input has channels, or one for all of them"


def axes_of_size(type_: TensorType, size: int) -> list[int]:
    """The dimensions of that size, but not the first of four and more, which is the batch."""
    start = 1 if len(type_.dims) >= 4 else 0
    return [axis for axis in range(start, len(type_.dims)) if now(type_.dims[axis]) == size]


# -- what was done before: a pass does nothing twice, and the file records the steps


def is_done(graph: Graph, step: str, name: str) -> bool:
    """Whether a step was built in for an input or output."""
    return name in graph.rt_info.get(DONE, {}).get(step, {})


def mark_done(graph: Graph, step: str, name: str, how) -> None:
    """Remember that a step was built in."""
    done = graph.rt_info.get(DONE, {})  # shared with copies of the graph: made anew
    graph.rt_info[DONE] = {**done, step: {**done.get(step, {}), name: str(how)}}
