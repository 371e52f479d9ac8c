"""The declared sizes of inputs, and checks of what the conversion assumed of them."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from mo_loop.graph import Dim, Symbol, fresh, i64, now, of_declared_sizes, string
from mo_loop.ops.movement import FAR
from mo_loop.origin import made_for
from mo_loop.transforms.total_operations import computed, needed
from mo_loop.transforms.vocabulary import Constant, F, FunctionPass, Graph, Node, Parameter, Result, Value, ops

Place = tuple[Parameter, int]
"""An input and one of its axes."""


class WriteSizes(FunctionPass):
    """x : f32[h,w], where h is 224 and w is 8 in the model, and the graph needs w = 8  ->  x : f32[224,8], checked

    The IR may be given other sizes (`ov.Model.reshape`). Those that no decision depends on are only written. The others
    are checked: VariadicSplit of Range(0, whether they are as assumed) into [1] has no result for another size. The
    runtime computes this once if the checked sizes are static; another size is an error at reshape, or at inference.

    The entry `sizes` of the rt_info has what each size may be: `<sizes><x value="?,3,?,?" /></sizes>`.

        ?       any size; not 0 in a loop over slices and for some operators; the model may refuse sizes, such as other
                channels of a convolution
        3       this size
        4..     at least 4
        n1      the size of all axes that have n1; n1=4.. is at least 4 as well
        ...     in place of all sizes: any rank
    """

    bodies = "never"

    def run_on_graph(self, graph: Graph) -> bool:
        places: dict[str, Place] = {
            size.name: (each, axis)
            for each in graph.parameters for axis, size in enumerate(each.sizes or ()) if isinstance(size, Dim)
        }
        filled = needed(graph) if places else set()
        assumed = {each: list(_assumed(each, places, filled)) for each in graph.parameters if each.sizes}
        if assumed:
            graph.rt_info["sizes"] = _texts(graph.parameters, [each for listed in assumed.values() for each in listed])
        changed = _check_computed(list(computed(graph, filled)))
        for each in graph.parameters:
            if each in assumed and (shape := of_declared_sizes(each.value_type.shape)) != each.value_type.shape:
                each.retype(each.value_type.with_shape(shape))
                changed = self.accept(each)
        if changed:
            graph.validate()
            for node in graph.of(ops.If):
                _forget_sizes(node)
        checked = [each for each, conditions in assumed.items() if conditions and each.output.dtype is not string]
        if checked:
            shape_of = cache(lambda parameter: parameter.output.sizes)
            with made_for(checked[0].origins):
                zero = _zero_if([each for parameter in checked for each in _conditions(shape_of, assumed[parameter])])
            for each in checked:
                with made_for(each.origins):
                    made = _check(each.output, zero)
                if made is not None:
                    changed = self.accept(each, "checks its sizes")
            if not zero.uses:  # the results do not depend on the inputs
                for result in graph.results:
                    _check_result(result, zero)
                changed = True
        return changed


def _assumed(
    parameter: Parameter, places: dict[str, Place], filled: Collection[Symbol | Value]
) -> Iterator[tuple[Place, str, Any]]:
    """The assumptions about the sizes of an input: "is" a number, or that of another place; "least" a number.

    The sizes `filled` are at least 1."""
    for axis, (own, dim) in enumerate(zip(parameter.sizes or (), parameter.value_type.dims, strict=False)):
        symbol = dim.symbol if isinstance(dim, Dim) else None
        if isinstance(dim, int) and not isinstance(own, int):  # the model may not declare it: that of one step
            yield (parameter, axis), "is", dim
        if not isinstance(own, Dim) or symbol is None:
            continue
        if symbol.name != own.name and symbol.name in places:
            yield (parameter, axis), "is", places[symbol.name]
        if symbol.lo > 0 or symbol in filled:
            yield (parameter, axis), "least", max(symbol.lo, 1)


def _check_computed(places: Sequence[tuple[Value, int]]) -> bool:
    """Let these axes be longer than 0."""
    for value, axis in places:
        with made_for(value.node.origins):
            _check(value, _zero_if([F.Equal(F.Minimum(F.Gather(value.sizes, [axis], 0), [1]), [1])]))
    return bool(places)


def _forget_sizes(node: ops.If) -> None:
    """Let the branch for other sizes, which the declared ones leave out, have none of them in the file."""
    if node.operands[0].type.integers != (1,):
        return
    symbols: dict[Dim, Any] = {}
    for parameter in node.else_body.parameters:
        shape = parameter.value_type.shape or ()
        if any(now(dim) is not None and isinstance(dim, Dim) for dim in shape):
            dims = [symbols.setdefault(dim, fresh()) if isinstance(dim, Dim) else dim for dim in shape]
            parameter.retype(parameter.value_type.with_shape(tuple(dims)))
    node.else_body.validate()


def _texts(parameters: Sequence[Parameter], assumed: Sequence[tuple[Place, str, Any]]) -> dict[str, str]:
    """The name of each input -> what its sizes may be."""
    equal = [(place, head) for place, _, head in assumed if isinstance(head, tuple)]
    shared = {head: f"n{number}" for number, head in enumerate(dict.fromkeys(head for _, head in equal), 1)}
    shared |= {place: shared[head] for place, head in equal}
    fixed = {place: str(size) for place, kind, size in assumed if kind == "is" and not isinstance(size, tuple)}
    least = {place: f"{size}.." for place, kind, size in assumed if kind == "least" and size > 1}

    def text(parameter: Parameter) -> str:
        if parameter.output.shape is None:
            return "..."
        places = [(parameter, axis) for axis in range(len(parameter.output.shape))]
        bounds = ["=".join(each[place] for each in (shared, least) if place in each) for place in places]
        return ",".join(fixed.get(place) or bound or "?" for place, bound in zip(places, bounds, strict=True))

    return {each.name: text(each) for each in parameters}


def _conditions(shape_of: Callable[[Parameter], Value], assumed: Sequence[tuple[Place, str, Any]]) -> Iterator[Value]:
    """Whether what is assumed of the sizes of one input holds, as vectors."""
    (parameter, _), _, _ = assumed[0]
    sizes = shape_of(parameter)
    # size >= 2, size = 6  ->  min(size, 2) = 2, min(size, 7) = 6: one comparison
    most: dict[int, int] = {}
    wanted: dict[int, int] = {}
    for (_, axis), kind, other in assumed:
        if isinstance(other, tuple):
            yield F.Equal(F.Gather(sizes, [axis], 0), F.Gather(shape_of(other[0]), [other[1]], 0))
        elif kind == "is" or axis not in most:
            most[axis], wanted[axis] = other + (kind == "is"), other
    if most:  # no other sizes are read: the runtime compares static ones when it compiles
        read = sizes if len(most) == len(parameter.value_type.dims) else F.Gather(sizes, list(most), 0)
        is_each = all(most[axis] > wanted[axis] for axis in most)
        yield F.Equal(read if is_each else F.Minimum(read, list(most.values())), list(wanted.values()))


def _zero_if(conditions: Sequence[Value]) -> Value:
    """[0] if all conditions hold; else an operation fails."""
    every = F.Concat(*conditions, axis=0) if len(conditions) > 1 else conditions[0]
    holds = F.ReduceMin(F.Convert(every, destination_type=i64), [0], keep_dims=False)
    start, step = (Constant(np.array(each), graph=every.graph, dtype=i64) for each in (0, 1))
    return ops.VariadicSplit(F.Range(start, holds, step, output_type=i64), 0, np.array([1])).outputs[0]


def _check(x: Value, zero: Value) -> Node | None:
    """Let all readers depend on `zero`, whose computation has the checks; None if there is none.

    The runtime does not compile a variable whose initial value depends on it.
    """
    readers = [use for use in x.uses if not isinstance(use.node, ops.ShapeOf | ops.ReadValue)]
    if not readers:
        return None
    checked = _checked(x, zero)
    for reader, port in readers:
        reader.graph.set_input(reader, port, checked.output)
        if isinstance(reader, Result) and reader.output_names:
            checked.name = reader.output_names[0]
    return checked


def _check_result(result: Result, zero: Value) -> None:
    """No Reshape: a result may be a constant, of which the runtime computes one too early, or a Slice of nothing."""
    x = result.value
    if x.rank is None or x.dtype is string:
        return
    if 0 in x.type.dims:
        checked: Node = ops.Broadcast(F.Constant(np.zeros(()), graph=x.graph, dtype=x.dtype), x.sizes + zero)
    elif x.rank:
        checked = ops.Slice(x, zero, [FAR], [1], [0])
    else:
        checked = ops.Squeeze(F.Slice(F.Unsqueeze(x, [0]), zero, [FAR], [1], [0]), [0])
    result.graph.set_input(result, 0, checked.output)


def _checked(x: Value, zero: Value) -> Node:
    rank = len(x.type.dims)
    # ov.Model.reshape gives a Reshape to one dimension, or to two before a MatMul, another pattern. The runtime
    # misreads the size of 0 in a Reshape.
    if rank == 1 or 0 in x.type.dims:
        return ops.Slice(x, zero, [FAR], [1], [0])
    rest = np.array([0, 1] if rank == 2 else [0] * (rank - 1))  # 0 keeps a size
    checked = ops.Reshape(x, F.Concat(zero, rest, axis=0), special_zero=True)
    return ops.Squeeze(checked, [2]) if rank == 2 else checked
