"""Branches and inner loops for all steps of a loop at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mo_loop import ops
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.dimension import low
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.types import boolean
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.ops.control import If, Iteration, Loop, TensorIterator
from mo_loop.ops.port_map import Branched, Concatenated, Invariant, Merged, Selected, Sliced
from mo_loop.transforms.loops.lifted import Lifted, LiftedBody, squeezed, unsqueezed
from mo_loop.transforms.total_operations import is_harmless

Made = tuple[Sequence[Lifted], str]
"""The outputs of a node for all steps, or none and why not."""

Fed = Sequence[tuple[Any, Lifted]]
"""The entries of an input map, with the values of all steps."""


def lifted_if(lifting: LiftedBody, node: If) -> Made:
    """if c: a else: b  ->  the same If over all steps, or where c varies, select(c, a, b) of both branches"""
    condition, *fed = _inputs(lifting, node)
    pairs = list(zip(node.input_map, fed, strict=True))
    if condition.varies:
        return _selected(lifting, node, condition, pairs)
    if lifting.may_not_run or not any(lifted.varies for lifted in fed):
        return (), "If stays in the loop, which may have no step, or its branches are the same in all"
    return _branched(lifting, node, condition, pairs)


def _inputs(lifting: LiftedBody, node: Node) -> list[Lifted]:
    lifted = [lifting[value] for value in node.inputs]
    return [each for each in lifted if each is not None]


def _selected(lifting: LiftedBody, node: If, condition: Lifted, fed: Fed) -> Made:
    if not all(map(is_harmless, node.bodies)):
        return (), "a branch of If could fail, or takes long, in steps in which it does not run"
    results = []
    for body, side in zip(node.bodies, ("then", "else_"), strict=True):
        inner = lifting.within(body, lifting.steps.graph, lifting.steps.count)
        for entry, lifted in fed:
            if getattr(entry, side) is not None:
                inner.give(getattr(entry, side), lifted.value, varies=lifted.varies)
        inner.lift_all()
        results.append([inner[getattr(entry, side).value] for entry in node.output_map])
    made = []
    for output, then, other in zip(node.outputs, *results, strict=True):
        if then is None or other is None or not then.dims == other.dims == output.shape:
            return (), "the branches of If have no form for all steps, or other shapes"
        flags = condition.value if condition.rank == 0 else squeezed(condition.value, 1)
        flags = unsqueezed(flags, range(1, 1 + output.type.rank)) if output.type.rank else flags
        whole = ops.Select(flags, lifting.steps.each(then), lifting.steps.each(other)).output
        made.append(Lifted(whole, True))
    return made, ""


def _branched(lifting: LiftedBody, node: If, condition: Lifted, fed: Fed) -> Made:
    count = lifting.steps.count
    values = [lifted.value for _, lifted in fed] + ([count] if isinstance(count, Value) else [])
    bodies = [Graph(body.name) for body in node.bodies]
    given: list[list[Parameter]] = []
    results: list[list[Result]] = []
    for body, new, side in zip(node.bodies, bodies, ("then", "else_"), strict=True):
        parameters = [Parameter(graph=new, type=value.type) for value in values]
        inner = lifting.within(body, new, parameters[-1].output if isinstance(count, Value) else count)
        for (entry, lifted), parameter in zip(fed, parameters, strict=False):
            if getattr(entry, side) is not None:
                inner.give(getattr(entry, side), parameter.output, varies=lifted.varies)
        inner.lift_all()
        made = [inner[getattr(entry, side).value] for entry in node.output_map]
        if None in made:
            return (), next(iter(inner.obstacles.values()), "a branch of If has no form for all steps")
        given.append(parameters)
        results.append([Result(inner.steps.each(each)) for each in made if each is not None])
        new.sweep()
    whole = If(
        condition.value, *values, then_body=bodies[0], else_body=bodies[1], name=node.path if node.name else "",
        input_map=tuple(Branched(*pair) for pair in zip(*given, strict=True)),
        output_map=tuple(Selected(*pair) for pair in zip(*results, strict=True)),
    )  # fmt: skip
    return [Lifted(value, True) for value in whole.outputs], ""


def lifted_loop(lifting: LiftedBody, node: Iteration) -> Made:
    """for t: for i: s = f(s, x[t, i])  ->  for i: S = f(S, X[:, i]), where S has the states of all t"""
    inputs = _inputs(lifting, node)
    head, fed = inputs[: node.first_data_port], inputs[node.first_data_port :]
    if any(each.varies for each in head) or (isinstance(node, Loop) and not node.continues_always):
        return (), "an inner loop may have another number of iterations in each step"
    if lifting.may_not_run or not any(each.varies for each in fed):
        return (), "an inner loop stays in a loop that may have no step, or if it is the same in all"
    steps, body = lifting.steps, Graph(node.body.name)
    values = [
        steps.each(lifted) if isinstance(entry, Merged) else lifted.value
        for entry, lifted in zip(node.input_map, fed, strict=True)
    ]
    given = [_parameter(body, *each) for each in zip(node.input_map, fed, values, strict=True)]
    count, counted = steps.count, None
    if isinstance(count, Value):
        values.append(count)
        counted = Parameter(graph=body, type=count.type)
        count = counted.output
    inner = lifting.within(node.body, body, count, may_not_run=low(node.count) < 1)
    for (entry, _), old, lifted in zip(given, node.input_map, fed, strict=True):
        inner.give(old.parameter, entry.parameter.output, varies=lifted.varies or isinstance(old, Merged))
    number = None
    if isinstance(node, Loop) and node.iteration is not None:
        number = Parameter(graph=body, type=node.iteration.output.type)
        inner.give(node.iteration, number.output, varies=False)
    inner.lift_all()
    results: dict[Result, Result] = {}
    for old in (*node.back_edges, *node.output_map):
        made = inner[old.result.value]
        if made is None:
            return (), next(iter(inner.obstacles.values()), "an inner loop has no form for all steps")
        if old.result not in results:
            results[old.result] = Result(inner.steps.each(made))
    input_map = [
        replace(entry, result=results[old.result]) if isinstance(old, Merged) else entry
        for (entry, _), old in zip(given, node.input_map, strict=True)
    ]
    if counted is not None:
        input_map.append(Invariant(counted))
    output_map = tuple(_output(entry, results[entry.result]) for entry in node.output_map)
    body.sweep()
    name = node.path if node.name else ""
    shared: dict[str, Any] = {"body": body, "input_map": tuple(input_map), "output_map": output_map, "name": name}
    if isinstance(node, Loop):
        condition = Result(Constant(True, graph=body, dtype=boolean).output)
        whole: Iteration = Loop(
            *(each.value for each in head), *values, graph=steps.graph, condition=condition, iteration=number,
            none_below_zero=node.none_below_zero, starts=node.starts, **shared,
        )  # fmt: skip
    else:
        whole = TensorIterator(*values, graph=steps.graph, **shared)
    return [Lifted(value, True) for value in whole.outputs], ""


def _parameter(body: Graph, entry: Any, lifted: Lifted, value: Value) -> tuple[Any, Lifted]:
    """The entry of the input map for a value of all steps, with a new Parameter."""
    type_ = value.type.without_known()
    if isinstance(entry, Sliced):
        axis = normalise_axis(entry.axis, lifted.rank) + lifted.varies
        entry = replace(entry, axis=axis)
        type_ = type_.with_shape((*type_.dims[:axis], entry.part_size, *type_.dims[axis + 1 :]))
    return replace(entry, parameter=Parameter(graph=body, type=type_)), lifted


def _output(entry: Any, result: Result) -> Any:
    if not isinstance(entry, Concatenated):
        return replace(entry, result=result)
    declared = (-1, *entry.declared) if entry.declared else ()
    return replace(entry, result=result, axis=entry.axis + 1, declared=declared)
