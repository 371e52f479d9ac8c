"""The values of a graph that are a model input to which something was appended, or that was updated; the axis along
which a state grows, from the shapes before and after an inference.

    %past = Parameter : f32[B,2,T,8]
    %all = Concat(%past, %new) {axis: 2}          trail of %past: its axes in order, appended along axis 2
    %turned = Transpose(%all, [0, 2, 1, 3])       trail of %past: its axes 0, 2, 1, 3

A trail follows values forwards, through the operations of `_RULES`. It records the place of each axis, so that a
Transpose which nothing undoes is noticed; a Reshape makes axes unknown.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from mo_loop.errors import UnsupportedError
from mo_loop.graph.dimension import Dim, Dimension
from mo_loop.ops.control import If, Iteration
from mo_loop.ops.port_map import Final, Merged
from mo_loop.ops.recurrent import Cell, Sequence
from mo_loop.transforms.vocabulary import Graph, Node, Parameter, Result, Value, ops


def growth_of(parameter: Parameter, result: Result, appended: int | None) -> int | str | None:
    """The axis along which the next value of an input is longer, None if its shape stays; or the reason why the input
    cannot be a state.

    Dimensions that only may differ are equal: exporters give the batch of each input a name of its own.

    Args:
        appended: the axis along which the graph appends to the input, if that is known. No other one grows then.
    """
    before, after = parameter.output.type, result.value.type
    if before.dtype is not after.dtype:
        return f"the element types {before.dtype} and {after.dtype} differ"
    if before.shape is None or after.shape is None:
        return "the rank is not known"
    if len(before.shape) != len(after.shape):
        return f"the ranks {len(before.shape)} and {len(after.shape)} differ"
    dims = list(zip(before.shape, after.shape, strict=True))
    surely = [axis for axis, (old, new) in enumerate(dims) if _is_sure(old, new)]
    if len(surely) > 1:
        shown = " and ".join(f"{dims[axis][0]} becomes {dims[axis][1]}" for axis in surely[:2])
        return f"more than one dimension changes: {shown}"
    if surely:
        axis = surely[0]
        old, new = dims[axis]
        if isinstance(old, int) and isinstance(new, int) and axis != appended:
            return f"dimension {axis} is {old} before and {new} after, and nothing is appended along it"
        return axis
    if appended is None or isinstance(dims[appended][0], int):  # a static size is asked for in each inference
        return None
    old, new = dims[appended]
    return None if old == new else appended


def _is_sure(old: Dimension, new: Dimension) -> bool:
    """Whether a dimension surely changes: the two cannot be equal, or the new one is the old one and something more."""
    difference = new - old
    if isinstance(difference, int):
        return difference != 0
    return isinstance(old, Dim) and isinstance(new, Dim) and set(old.terms) <= set(new.terms)


def misfit(before: str, after: str, parameter: Parameter, result: Result, reason: str) -> UnsupportedError:
    """The error of a pair whose types do not fit."""
    return UnsupportedError(
        f"the output {after!r}, {result.value.type}, cannot be the next value of the input {before!r}, "
        f"{parameter.output.type}",
        where=result.value.origin, why=reason, code="ML327",
        hint="pair it with an output of its type, or keep it an input (--stateful-pair "
        f"{before}=); shapes can be given with --input",
    )


@dataclass(frozen=True)
class Trail:
    """The way in which a value contains a Parameter.

    `axes` has for each dimension of the value that of the Parameter, None where it is not known. `appended` is the axis
    of the Parameter along which something was appended, `changes` describes in words how the value differs. With
    `by_name` the value is the next one only if names show it: the Parameter was appended to another one, or one branch
    of an If passes it through.
    """

    axes: tuple[int | None, ...]
    changes: tuple[str, ...] = ()
    appended: int | None = None
    by_name: bool = False

    def changed(self, change: str) -> "Trail":
        return self if change in self.changes else replace(self, changes=(*self.changes, change))


Trails: TypeAlias = dict[Parameter, Trail]
Seeds: TypeAlias = Mapping[Parameter, Trails]
Found: TypeAlias = Mapping[Value, Trails]
Rule: TypeAlias = Callable[[Any, Found], dict[Value, Trails]]


def trails_of(graph: Graph, seeds: Seeds | None = None) -> dict[Value, Trails]:
    """The trails of all values that have some. `seeds` gives those of the Parameters of a body."""
    found: dict[Value, Trails] = {}
    for parameter in graph.parameters:
        value = parameter.output
        if seeds is not None:
            own = seeds.get(parameter, {})
        else:
            own = {} if value.rank is None else {parameter: Trail(tuple(range(value.rank)))}
        if own:
            found[value] = own
    for node in graph.ordered():
        if any(value in found for value in node.inputs):
            for value, trails in _of_node(node, found).items():
                if trails and value.rank is not None:
                    found[value] = trails
    return found


def _of_node(node: Node, found: Found) -> dict[Value, Trails]:
    for kinds, rule in _RULES:
        if isinstance(node, kinds):
            return rule(node, found)
    return {}


def _at(node: Node, port: int, found: Found) -> Trails:
    value = node.inputs[port] if port < len(node.inputs) else None
    return {} if value is None else found.get(value, {})


def _each(trails: Trails, change: Callable[[Trail], Trail | None]) -> Trails:
    """The trails of the values that are made of a value; without those that `change` makes None."""
    return {parameter: made for parameter, trail in trails.items() if (made := change(trail)) is not None}


def _of_first(rule: Callable[[Any, Trail], Trail | None]) -> Rule:
    """The rule of operations whose outputs are made of their first input: `rule` changes each trail of that."""

    def outputs(node: Node, found: Found) -> dict[Value, Trails]:
        return dict.fromkeys(node.outputs, _each(_at(node, 0, found), lambda trail: rule(node, trail)))

    return outputs


# -- movement


def _moved(node: Any, trail: Trail) -> Trail:
    return replace(trail, axes=tuple(None if own is None else trail.axes[own] for own in node.axis_map(0)))


def _converted(node: Node, trail: Trail) -> Trail | None:
    """Through f16 and back is the same state; through an integer it is another tensor."""
    source, target = node.operands[0].dtype, node.outputs[0].dtype
    return trail if source is target or (source.is_float and target.is_float) else None


def _concatenated(node: Node, found: Found) -> dict[Value, Trails]:
    """Appended, where a part does not come from the Parameter; else pieces of it that come together again.

    The appended value may be an input as well: the state is the first part, unless names decide otherwise.
    """
    parts = [_at(node, port, found) for port in range(len(node.inputs))]
    rank, given = node.outputs[0].rank, getattr(node, "axis", 0)
    if rank is None:
        return {}
    axis = given % rank
    trails: Trails = {}
    for parameter in dict.fromkeys(each for part in parts for each in part):
        pieces = [part[parameter] for part in parts if parameter in part]
        first = pieces[0]
        axes = tuple(own if all(own == piece.axes[i] for piece in pieces) else None for i, own in enumerate(first.axes))
        changes = tuple(dict.fromkeys(each for piece in pieces for each in piece.changes))
        appended = next((piece.appended for piece in pieces if piece.appended is not None), None)
        trail = Trail(axes, changes, appended, any(piece.by_name for piece in pieces))
        if len(pieces) < len(parts):
            trail = replace(trail, appended=axes[axis] if appended is None else appended)
            shown = axis if axes[axis] is None else axes[axis]
            trail = trail.changed(f"Concat along axis {shown}")
        if parts[0] and parameter not in parts[0]:
            trail = replace(trail, by_name=True)
        trails[parameter] = trail
    return {node.outputs[0]: trails}


# -- updates


def _selected(node: Node, found: Found) -> dict[Value, Trails]:
    output = node.outputs[0]
    either = {**_at(node, 2, found), **_at(node, 1, found)}
    fitting = {parameter: trail for parameter, trail in either.items() if len(trail.axes) == output.rank}
    return {output: _each(fitting, lambda trail: trail.changed("Select"))}


def _recurrent(node: Node, found: Found) -> dict[Value, Trails]:
    """The next states of a cell, the last ones of a sequence, port by port: hidden from hidden, cell from cell."""
    states = node.outputs[1:] if isinstance(node, Sequence) else node.outputs
    change = f"the last state of {type(node).__name__}" if isinstance(node, Sequence) else type(node).__name__
    return {
        state: _each(_at(node, 1 + number, found), lambda trail: trail.changed(change))
        for number, state in enumerate(states)
    }


# -- control flow


def _iterated(node: Node, found: Found) -> dict[Value, Trails]:
    """The final value of a state, from its initial value."""
    assert isinstance(node, Iteration)
    initial = {entry.result: value for entry, value in node.fed if isinstance(entry, Merged)}
    change = f"a state of {type(node).__name__}"
    trails: dict[Value, Trails] = {}
    for entry, output in node.returned:
        value = initial.get(entry.result) if isinstance(entry, Final) else None
        if value is not None and value.rank == output.rank:
            trails[output] = _each(found.get(value, {}), lambda trail: trail.changed(change))
    return trails


def _branched(node: Node, found: Found) -> dict[Value, Trails]:
    """The values in branches that have a trail. Each Parameter inside has the trails of the value that it receives.

    Decoders with and without caches have one branch that appends to a cache, and one that makes a new cache.
    """
    assert isinstance(node, If)
    sides: list[dict[Value, Trails]] = []
    for side, body in zip(("then", "else_"), node.bodies, strict=True):
        seeds: dict[Parameter, Trails] = {}
        for entry, value in node.fed:
            inner = getattr(entry, side)
            if inner is not None:
                seeds[inner] = found.get(value, {})
        sides.append(trails_of(body, seeds))
    trails: dict[Value, Trails] = {}
    for entry, output in node.returned:
        made = entry.then.value, entry.else_.value
        then, other = (side.get(value, {}) for side, value in zip(sides, made, strict=True))
        trails[output] = {each: _either(trail, other[each]) for each, trail in then.items() if each in other}
        if made[0].rank == made[1].rank is not None and made[0].dtype is made[1].dtype:
            for own, replacement in ((then, made[1]), (other, made[0])):
                trails[output] |= {
                    each: _in_one_branch(each, trail, replacement)
                    for each, trail in own.items() if each not in trails[output]
                }
    return trails


def _in_one_branch(parameter: Parameter, trail: Trail, replacement: Value) -> Trail:
    """The trail of a value that another one replaces in the other branch, perhaps one of another size."""
    before, after = parameter.output.shape, replacement.shape
    differing = [
        axis for axis, (old, new) in enumerate(zip(before, after, strict=True)) if old != new and isinstance(old, Dim)
    ] if before is not None and after is not None and len(before) == len(after) else []
    if trail.appended is None and len(differing) == 1:
        trail = replace(trail, appended=differing[0])
    return replace(trail.changed("a branch of If"), by_name=trail.by_name or not trail.changes)


def _either(a: Trail, b: Trail) -> Trail:
    axes: tuple[int | None, ...] = (None,) * max(len(a.axes), len(b.axes))
    if len(a.axes) == len(b.axes):
        axes = tuple(x if x == y else None for x, y in zip(a.axes, b.axes, strict=True))
    appended = a.appended if a.appended is not None else b.appended
    return Trail(axes, tuple(dict.fromkeys((*a.changes, *b.changes))), appended, a.by_name or b.by_name)


_RULES: tuple[tuple[Any, Rule], ...] = (
    ((ops.SameElements, ops.Barrier, ops.Transpose, ops.Gather, ops.Split, ops.VariadicSplit), _of_first(_moved)),
    (ops.Convert, _of_first(_converted)),
    (ops.Concat, _concatenated),
    (
        (ops.Slice, ops.ScatterUpdate, ops.ScatterElementsUpdate, ops.ScatterElementsUpdate12, ops.ScatterNDUpdate,
         ops.ScatterNDUpdate15),
        _of_first(lambda node, trail: trail.changed(type(node).__name__)),
    ),
    (ops.Select, _selected),
    ((Cell, Sequence), _recurrent),
    (Iteration, _iterated),
    (If, _branched),
)
