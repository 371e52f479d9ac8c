"""Loops for the declared sizes of the inputs, in addition to those for any sizes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mo_loop.errors import MoLoopError
from mo_loop.graph.dimension import Dimension, low, open_symbols
from mo_loop.graph.shape import assume_elements, assume_fixed, is_static, of_declared_sizes
from mo_loop.graph.types import TensorType, i64, string
from mo_loop.ops.control import If, Iteration, Loop, TensorIterator
from mo_loop.ops.port_map import Branched, Concatenated, Merged, Selected, Sliced
from mo_loop.origin import made_for
from mo_loop.support.traversal import reached
from mo_loop.transforms.loops.loop_pass import LoopPass
from mo_loop.transforms.loops.pieces import ANY_SIZES, loops_in
from mo_loop.transforms.port_maps import take_branch
from mo_loop.transforms.replace import replace_node
from mo_loop.transforms.vocabulary import Constant, F, FunctionPass, Graph, Node, Op, Parameter, Result, Value

DECLARED_SIZES = "declared_sizes"
"""The name of the branch for the declared sizes."""


class SpecializeLoops(FunctionPass):
    """Loop(n, x) of open sizes  ->  If(sizes of x and n are the declared ones, Loop(6, x : [6,2,3]), Loop(n, x))

    Loops for a known number of steps and known sizes are faster, and wrong for others. With static shapes the runtime
    knows the condition, infers one branch and compiles it alone: the other one costs only its text in the file. It
    would compile both if an input has a size that the model does not declare: then the sizes of loops are fixed. All
    other sizes are assumed to be above 0 if the loop has slices: the runtime ends the process when it evaluates a loop
    of tensors without elements, or puts such tensors into bodies as constants.
    """

    bodies = "never"
    kinds = (Loop, TensorIterator)

    def __init__(self, after: Sequence[FunctionPass] = ()) -> None:
        """The passes `after` run in the branches for the declared sizes."""
        super().__init__()
        self.passes = list(after)

    def run_on_graph(self, graph: Graph) -> bool:
        loops = [each for each in graph.nodes_with_bodies() if isinstance(each, Iteration)]
        if not all(is_static(of_declared_sizes(each.output.shape)) for each in graph.parameters):
            assume_fixed(dim for each in loops for dim in _sizes(each))
        loops = [each for each in loops if _is_open(each)]
        assume_elements(dim for each in loops if _has_slices(each) for dim in _sizes(each))
        if not loops:
            return False
        known = _of_declared_sizes(graph) or {}
        made: list[If] = []
        for node in loops:
            found = [known.get(value) for value in node.operands]
            types = [each for each in found if isinstance(each, TensorType) and each.shape is not None]
            if len(types) < len(node.operands):
                self.refuse(node, "it reads a sequence, or a tensor of unknown rank")
                continue
            if node.acts or any(value.dtype is string for value in node.operands):
                self.refuse(node, "it has states, or strings")
                continue
            with made_for(node.origins):
                branches = _specialize(node, known)
            if branches is None:
                self.refuse(node, "no size that it reads is known for the declared sizes")
                continue
            made.append(branches)
            known |= {new: known[old] for old, new in zip(node.outputs, made[-1].outputs, strict=True)}
            self.accept(node)
        if made:
            graph.sweep()
        for each in self.passes:
            for branches in made if self.config.is_enabled(each) else ():
                if each.run(branches.then_body):
                    graph.touch(branches)
                    graph.validate()
        return bool(made)


class PreferAnySizes(LoopPass):
    """If(sizes are the declared ones, a loop, another loop)  ->  the other loop

    The form for any sizes takes as long at the declared sizes, because the runtime knows them, and without the If the
    model compiles sooner. Both branches stay where the one for the declared sizes has no loop, or several of a known
    number of steps in an iteration. They also stay where a loop may not run, whose results then have the sizes in the
    file, and where a loop has a loop in an If: results whose sizes are not in the file are copied there.
    """

    bodies = "never"
    kinds = (If,)

    def rewrite(self, node: If) -> bool:
        if node.then_body.name != DECLARED_SIZES:
            return False
        known, other = map(loops_in, node.bodies)
        if other and not known:
            return self.refuse(node, "the form for the declared sizes has no loop")
        if any(each.steps > 1 and isinstance(each.count, int) for each in known):
            return self.refuse(node, "the form for the declared sizes has several steps in an iteration")
        if any(map(_is_lost_without_elements, node.output_map)):
            return self.refuse(node, "a loop that may not run returns tensors of unknown sizes")
        if any(_returns_open_sizes(each) for loop in other for each in loop.body.of(If)):
            return self.refuse(node, "a loop has a loop in an If that returns tensors of unknown sizes")
        take_branch(node, taken=False)
        return self.accept(node)


def _is_lost_without_elements(entry: Selected) -> bool:
    """Whether a result may have no elements, and only the form for the declared sizes has known sizes for it."""
    known, other = (each.value.shape or () for each in (entry.then, entry.else_))
    sizes = zip(known, other, strict=False)
    return any(low(dim) == 0 for dim in known) and any(isinstance(a, int) > isinstance(b, int) for a, b in sizes)


def _returns_open_sizes(node: If) -> bool:
    """Whether an If has a loop and results of unknown sizes."""
    return any(map(loops_in, node.bodies)) and not all(is_static(output.shape) for output in node.outputs)


def _has_slices(node: Iteration) -> bool:
    """Whether it has slices, or a growing state, which may become slices."""
    if any(isinstance(each, Sliced | Concatenated) for each in (*node.input_map, *node.output_map)):
        return True
    return any(isinstance(each, Merged) and each.parameter.output.shape != value.shape for each, value in node.fed)


def _sizes(node: Iteration) -> Iterator[Dimension]:
    """The sizes of what a loop reads and returns, and its number of iterations."""
    yield node.count
    for value in (*node.operands, *node.outputs):
        yield from value.shape or ()


def _is_open(node: Iteration) -> bool:
    """Whether the number of iterations follows from declared sizes, or sizes of its outputs if it may not run.

    Forms for other loops hardly depend on sizes.
    """
    if open_symbols([node.count]):
        return True
    return low(node.count) == 0 and any(open_symbols(output.shape or ()) for output in node.outputs)


def _of_declared_sizes(graph: Graph) -> dict[Value, Any] | None:
    """The types of all values for the declared sizes; None if they contradict each other."""
    copy, copies = graph.clone_with_map()
    for parameter in copy.parameters:
        if parameter.sizes:
            parameter.retype(parameter.value_type.with_shape(of_declared_sizes(parameter.value_type.shape)))
    try:
        copy.validate()
    except MoLoopError:
        return None
    return {
        value: made.type
        for node, other in copies.items()
        for value, made in zip(node.outputs, other.outputs, strict=True)
    }


def _specialize(node: Iteration, known: Mapping[Value, Any]) -> If | None:
    values = list(dict.fromkeys(node.operands))
    computed = {value: _computed_from_numbers(value, known) for value in values}
    nodes = dict.fromkeys(each for made in computed.values() for each in made)
    numbers = [value for each in nodes for value in each.operands if value.node not in nodes]
    decisive = dict.fromkeys([*(value for value in values if not computed[value]), *numbers])
    conditions = [each for value in decisive for each in _conditions(value, known[value])]
    if not conditions:
        return None
    holds = conditions[0]
    for each in conditions[1:]:
        holds = holds & each
    outer = [value for value in values if not isinstance(value.node, Constant)]
    bodies = [Graph(DECLARED_SIZES), Graph(ANY_SIZES)]
    then, otherwise = (
        {value: Parameter(graph=body, type=value.type.without_known()) for value in read}
        for body, read in zip(bodies, ([value for value in outer if not computed[value]], outer), strict=True)
    )
    read = {value: _as_known(each.output, known[value]) for value, each in then.items()}
    results = (
        _copied([*nodes, node], bodies[0], read, known),
        _copied([node], bodies[1], {value: each.output for value, each in otherwise.items()}, known),
    )
    made = If(
        holds, *outer, graph=node.graph, then_body=bodies[0], else_body=bodies[1],
        input_map=tuple(Branched(then.get(value), otherwise[value]) for value in outer),
        output_map=tuple(Selected(*pair) for pair in zip(*results, strict=True)),
    )
    replace_node(node, made)
    return made


def _copied(nodes: Sequence[Node], body: Graph, inner: dict[Value, Value], known: Mapping[Value, Any]) -> list[Result]:
    """The results of the last of `nodes`, which are copied into a branch; `inner` are values that they read there."""
    for value in dict.fromkeys(value for node in nodes for value in node.operands):
        if value not in inner and value.node not in nodes:
            inner[value] = _constant(value, known[value], body)
    body.adopt(nodes[-1].graph, nodes, inner)
    for node in nodes:
        body.touch(inner[node.outputs[0]].node)
    inner[nodes[-1].outputs[0]].node.name = ""  # the name of the layer whose outputs the model reads
    return [Result(inner[output]) for output in nodes[-1].outputs]


def _computed_from_numbers(value: Value, known: Mapping[Value, Any]) -> list[Node]:
    """The nodes that compute a value from constants, and from numbers that are known for the declared sizes.

    Empty if it is such a number, or follows from something else. With static shapes the runtime computes the value, and
    puts it into both branches as a constant, whose size would contradict those of the branch for the declared sizes.
    """

    def sources(value: Value) -> Sequence[Value]:
        return () if _has_numbers(value, known) else value.node.operands

    nodes: list[Node] = []
    for each in reached([value], sources):
        if _has_numbers(each, known):
            continue
        node = each.node
        if isinstance(node, Parameter) or not isinstance(node, Op) or node.bodies or node.random or node.is_kept:
            return []
        nodes.append(node)
    return nodes


def _has_numbers(value: Value, known: Mapping[Value, Any]) -> bool:
    """Whether a value is a constant, or known for the declared sizes."""
    type_ = known.get(value)
    return isinstance(value.node, Constant) or (isinstance(type_, TensorType) and type_.integers is not None)


def _constant(value: Value, type_: TensorType, graph: Graph) -> Value:
    if isinstance(value.node, Constant):
        return F.Constant(value.node.tensor, graph=graph, dtype=value.dtype)
    return F.Constant(np.array(type_.integers).reshape(type_.dims), graph=graph, dtype=value.dtype)


def _as_known(x: Value, type_: TensorType) -> Value:
    """A value that has the sizes, and the numbers, of `type_`."""
    if type_.integers is not None:
        return _constant(x, type_, x.graph)
    sizes = [dim if isinstance(dim, int) else 0 for dim in type_.dims]  # 0 keeps one
    if sizes == [dim if isinstance(dim, int) else 0 for dim in x.type.dims]:
        return x
    return F.Reshape(x, sizes, special_zero=not is_static(type_.shape))


def _conditions(value: Value, type_: TensorType) -> list[Value]:
    """Whether a value has the sizes, and the numbers, of `type_`; none for those that are known."""
    found = []
    sizes = {axis: dim for axis, dim in enumerate(type_.dims) if isinstance(dim, int) and dim != value.type.dims[axis]}
    if sizes:
        found.append(_all_equal(F.Gather(value.sizes, list(sizes), 0), list(sizes.values())))
    if type_.integers is not None and value.type.integers is None:
        numbers = value if value.rank == 1 else value.reshape([-1])
        found.append(_all_equal(numbers, type_.integers))
    return found


def _all_equal(numbers: Value, wanted: Sequence[Any]) -> Value:
    """No ReduceLogicalAnd: one of unknown sizes does not compile without AVX2."""
    equal = F.Equal(numbers, np.array(wanted, numbers.dtype.numpy))
    return F.Equal(F.ReduceMin(F.Convert(equal, destination_type=i64), [0], keep_dims=False), 1)
