"""Inputs, outputs and branches of If as the GPU plugin reads them."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mo_loop.graph.shape import Shape
from mo_loop.graph.types import string
from mo_loop.ops.control import Control, If, Iteration
from mo_loop.ops.port_map import Branched, Merged, Sliced
from mo_loop.target import CRASH, ERROR, GPU
from mo_loop.transforms import port_maps
from mo_loop.transforms.replace import move_readers
from mo_loop.transforms.runtime import inference
from mo_loop.transforms.runtime.local.rule import doubled, is_declared, source_outside
from mo_loop.transforms.vocabulary import (
    Constant,
    F,
    FunctionPass,
    Gap,
    Graph,
    Identity,
    Node,
    Parameter,
    Result,
    Value,
    node_pass,
    ops,
    source_of,
)

SIDES = ("then", "else_")

MANY = 7
"""The rank of a tensor that makes the plugin infer shapes as in models of dynamic shapes."""

PARTS = (ops.Slice, ops.Split, ops.VariadicSplit)
"""Operations that return a part of the memory of their input, between gaps."""


SKIPPED = (ops.View, ops.Slice, ops.Broadcast, ops.Transpose, ops.Barrier, ops.AtLeast, Identity)
"""Operations whose result may have the memory of their first input."""


@node_pass((If,), "names of the Results in the order of the outputs", Gap(
    "if-outputs-by-name", "the outputs of an `If` get the shapes of its Results in the order of their names",
    device=GPU,
))
def NameBranchResults(node: If) -> str:
    """If(c, then: (a, b), else: (p, q))  ->  its Results are named 000, 001 in each branch

    The plugin has a map from the name of a Result to its shape, and takes the shapes in the order of the names. A
    Result without a name gets its number in the file as name: "Result_10" is before "Result_9".
    """
    if len(node.output_map) < 2:
        return "it has one output"
    found = [[getattr(entry, side) for entry in node.output_map] for side in SIDES]
    if all(_in_order([each.name for each in results]) for results in found):
        return "they are in order"
    for results in found:
        for number, result in enumerate(results):
            result.name = f"{number:03}"
    return ""


def _in_order(names: list[str]) -> bool:
    return all(names) and names == sorted(set(names))


class WidenBranchInputs(FunctionPass):
    """If(c, x, then: f(a))  ->  If(c, Unsqueeze(x, 0), then: f(Squeeze(a, 0)))

    These are views: they cost nothing. An input x is widened if

    - another input, or the condition, is another output of the same node (one that is the same, or a view of the same
      shape, becomes one with it): the plugin has a map from the name of a node to the Parameter;
    - it is a part of another tensor of static shape: the plugin gives the branch the memory with its gaps;
    - it is an output of an If or a loop, not the first one, and a branch that computes nothing returns a view of it:
      the plugin takes the shape of the first;
    - a branch returns it, and it may have no elements: the plugin would read its memory, which is not there;
    - a branch returns it, and only Parameters and constants: for such a branch the plugin sets all outputs by the
      index 0. If it returns constants and sizes alone, one of them becomes Select(c, constant, 0), also for one output
      if the branch has an input;
    - all shapes of the model are static and the If has more than one output: then the plugin finds the outputs only
      with the inference of shapes that a rank of 7 requires.
    """

    instead = "`Unsqueeze` before the `If`, `Squeeze` in its branches"
    avoids = (
        Gap("if-inputs-of-one-node", "two outputs of one node become one input of an `If`", severity=ERROR, device=GPU),
        Gap("if-input-twice", "a tensor that is two inputs is not set", severity=ERROR, device=GPU, form="one input"),
        Gap("if-input-in-place", "a part of a tensor is read with gaps in a branch", severity=ERROR, device=GPU),
        Gap(
            "if-returns-second-output",
            "a branch that returns only a view of an output of an `If` or a loop has the shape of its first output",
            device=GPU,
        ),
        Gap(
            "if-returns-nothing", "a branch that returns an input without elements ends the process", severity=CRASH,
            device=GPU,
        ),
        Gap(
            "if-returns-inputs", "a branch that returns only inputs and constants sets the first output alone",
            severity=ERROR, device=GPU,
        ),
        Gap(
            "if-returns-sizes", "a branch that reads only known sizes of its inputs does not run", severity=ERROR,
            device=GPU,
        ),
        Gap(
            "static-if-outputs", "an `If` with more than one output does not compile if all shapes are static",
            severity=ERROR, device=GPU,
        ),
    )

    def run_on_graph(self, graph: Graph) -> bool:
        is_narrow = graph.owner is None and _is_narrow(graph)
        changed = False
        for node in self.candidates(graph, If):
            several = len(node.output_map) > 1
            moved = _join_inputs(node) | _move_condition(node)
            widened = dict.fromkeys((*_shared(node), *_passed_on(node), *_returned_empty(node)), 1)
            for side in SIDES:
                if (number := _returned(node, side)) is not None:
                    widened[number] = 1
            if several and is_narrow:
                number = next(iter(widened), None)
                number = next(_possible(node), None) if number is None else number
                if number is not None:
                    widened[number], is_narrow = MANY, False
            for number, rank in widened.items():
                _widen(node, number, rank)
            if widened or moved:
                changed = self.accept(node)
            else:
                self.refuse(node, "its inputs need no other form")
        return changed


def _is_narrow(graph: Graph) -> bool:
    """Whether the plugin infers shapes as in a static model."""
    values = [value for node in graph for value in node.outputs]
    return all(is_declared(value) and value.type.rank < MANY for value in values)


def _join_inputs(node: If) -> bool:
    """Let the branches read a tensor that is several inputs from the first of them."""
    entries, first, keep = list(node.input_map), dict[tuple[Value, Shape], int](), list[int]()
    for number, value in enumerate(node.data_inputs):
        at = number if value is None else first.setdefault(_tensor(value), number)
        if at == number:
            keep.append(number)
        for side in SIDES if at < number else ():
            old, new = getattr(entries[number], side), getattr(entries[at], side)
            if old is not None and new is not None:
                move_readers(old.output, new.output, old.output.uses)
            elif old is not None:
                entries[at] = replace(entries[at], **{side: old})
                entries[number] = replace(entries[number], **{side: None})
    if len(keep) == len(entries):
        return False
    node.input_map = tuple(entries)
    port_maps.keep_inputs(node, keep)
    return True


def _tensor(value: Value) -> tuple[Value, Shape]:
    """The same for values that the runtime makes one."""
    source = source_of(value, (Identity, ops.View))
    return (source, value.shape) if source.shape is not None else (source_of(value, Identity), None)


def _move_condition(node: If) -> bool:
    """Read the condition of a node of several outputs through a view; its memory would be that of the first one."""
    condition = node.operands[0]
    if condition.index == 0 or condition.rank is None:
        return False
    node.graph.set_input(node, 0, F.Squeeze(condition, [0]) if condition.rank else F.Unsqueeze(condition, [0]))
    return True


def _possible(node: If) -> Iterator[int]:
    """The inputs that can be widened."""
    for number, value in enumerate(node.data_inputs):
        if value is None or value.dtype is string or isinstance(value.node, Constant):
            continue
        if value.rank is not None and value.rank < MANY:
            yield number


def _shared(node: If) -> Iterator[int]:
    values = node.operands
    for number in _possible(node):
        value = node.data_inputs[number]
        assert value is not None
        is_part = isinstance(value.node, PARTS) and is_declared(value)
        if is_part or any(each.node is value.node and each is not value for each in values):
            yield number


def _passed_on(node: If) -> Iterator[int]:
    """The inputs of which a branch that computes nothing returns a view, and that are outputs of an If or a loop after
    one of unknown sizes."""
    views, returned = (Identity, ops.View), set[Node]()
    for side in SIDES:
        results = {source_of(getattr(entry, side).value, views).node for entry in node.output_map}
        returned |= results if all(isinstance(each, Parameter | Constant) for each in results) else set()
    for number in _possible(node):
        value, entry = node.data_inputs[number], node.input_map[number]
        if value is None or isinstance(value.node, ops.Unsqueeze) or returned.isdisjoint((entry.then, entry.else_)):
            continue
        source = source_of(value, views)
        if source.index and isinstance(source.node, Control) and not is_declared(source.node.outputs[0]):
            yield number


def _returned_empty(node: If) -> Iterator[int]:
    """The inputs that may have no elements, and that a branch returns as they are."""
    returned = {source_of(getattr(entry, side).value, Identity).node for entry in node.output_map for side in SIDES}
    for number in _possible(node):
        value, entry = node.data_inputs[number], node.input_map[number]
        may_be_empty = value is not None and any(map(inference.may_be_empty_as_declared, value.type.dims))
        if may_be_empty and not returned.isdisjoint((entry.then, entry.else_)):
            yield number


def _returned(node: If, side: str) -> int | None:
    """The input of which a branch must return a view, because it returns nothing that is computed."""
    results: list[Result] = [getattr(entry, side) for entry in node.output_map]
    sources = [source_of(each.value, Identity) for each in results]
    known = {each.output: is_declared(each.operands[0]) for each in results[0].graph.of(ops.ShapeOf)}
    if not all(isinstance(each.node, Parameter) or inference.is_computable(each, known) for each in sources):
        return None
    if len(results) == 1 and (sources[0].node in results[0].graph.parameters or not results[0].graph.parameters):
        return None
    for number in _possible(node):
        parameter = getattr(node.input_map[number], side)
        if parameter is not None and parameter.output in sources:
            return number
    constants = [each for each in results if each.value.dtype is not string]
    if constants and not any(isinstance(each.node, Parameter) for each in sources):
        return _select(node, side, constants[0])
    return None


def _select(node: If, side: str, result: Result) -> int:
    """Let a branch compute a constant that it returns from the condition; the number of this new input."""
    condition = node.operands[0]
    body, value = result.graph, result.value
    parameter = Parameter(graph=body, type=condition.type.without_known())
    other = F.Constant(np.zeros((), value.dtype.numpy), graph=body, dtype=value.dtype)
    chosen = (value, other) if side == "then" else (other, value)
    body.set_input(result, 0, F.Select(parameter.output, *chosen))
    node.input_map = (*node.input_map, replace(Branched(None, None), **{side: parameter}))
    node.graph.set_inputs(node, [*node.inputs, condition])
    return len(node.input_map) - 1


def _widen(node: If, number: int, rank: int) -> None:
    """Give the Parameters of an input at least one dimension more, and at least `rank` dimensions."""
    value = node.data_inputs[number]
    assert value is not None
    axes, taken = list(range(max(rank - value.type.rank, 1))), {_tensor(each) for each in node.operands}
    while (_tensor(value)[0], (*(1 for _ in axes), *value.type.dims)) in taken:
        axes.append(len(axes))
    wide = F.Unsqueeze(value, axes)
    entry = node.input_map[number]
    for side in SIDES:
        old = getattr(entry, side)
        if old is not None:
            new = Parameter(graph=old.graph, type=wide.type.without_known(), name=old.name)
            narrow = F.Squeeze(new.output, axes)
            for reader, port in old.output.uses:
                old.graph.set_input(reader, port, narrow)
            old.graph.remove(old)
            entry = replace(entry, **{side: new})
    entries = list(node.input_map)
    entries[number] = entry
    node.input_map = tuple(entries)
    node.graph.set_input(node, node.first_data_port + number, wide)


@node_pass((Iteration,), "`max(y, y)`, `y or y` for booleans", Gap(
    "sliced-if-output", "a loop reads slices of the memory of the other branch of an `If`", device=GPU,
), Gap(
    "gpu-state-of-if-output", "a state that begins with an output of an `If` of unknown size, or a part of one, begins "
    "with that of the other branch", device=GPU,
), Gap(
    "gpu-loop-of-branch-input", "a loop in a branch of `If` reads the memory that an input of the branch had when the "
    "branch ran before, if the shape is the same: that of a tensor of unknown size, or of an output of an `If`",
    device=GPU,
))
def CopySlicedBranches(node: Iteration) -> str:
    """Loop(y) of slices of y = If(c), or with the state y  ->  Loop(max(y, y))
    If(c, then: Loop(x)), where x outside has an unknown size, or is an output of If  ->  If(c, then: Loop(max(x, x)))

    The plugin makes the slices of a tensor once, and takes the memory of an input again while its shape stays. The
    memory of an output of If is that of the branch that ran. While another branch runs, a tensor may get other memory.
    """
    changed = False
    for port, (entry, value) in enumerate(node.fed, node.first_data_port):
        source = source_of(value, SKIPPED)
        is_read = isinstance(entry, Sliced) or (isinstance(entry, Merged) and not is_declared(value))
        is_lost = (is_read and isinstance(source.node, If)) or _is_moved(source_outside(value, SKIPPED), node.graph)
        if is_lost and value.dtype is not string:
            node.graph.set_input(node, port, doubled(value).output)
            changed = True
    return "" if changed else "no input of it begins with an output of If, or with an input of a branch"


def _is_moved(outside: Value, branch: Graph) -> bool:
    """Whether a value outside of a branch may have other memory when the branch runs again."""
    return outside.graph is not branch and (not is_declared(outside) or isinstance(outside.node, If))
