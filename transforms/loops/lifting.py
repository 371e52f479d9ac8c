"""Applies the body of a loop once, to the tensors of all its steps.

    for i in range(T): Y[i] = f(X[i], v)      ->  Y = f(X, v), with a rule for each operator in f

`give` sets the values of the Parameters of the body in the new graph, `lift_all` lifts the nodes that depend on them,
as far as there are rules, and `lifting[value]` is the Lifted of a value of the body, or None. Branches and inner loops
are lifted with their bodies.

The new graph is only a draft: `Graph.inline` puts it where it is needed, and a draft that is not needed leaves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from mo_loop.errors import MoLoopError
from mo_loop.graph.dimension import low
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.types import boolean, string
from mo_loop.ops.control import If, Iteration, Loop, TensorIterator
from mo_loop.ops.lengths import Length
from mo_loop.ops.port_map import Branched, Concatenated, Invariant, Merged, Selected, Sliced
from mo_loop.origin import made_for
from mo_loop.transforms.loops.lifted import Lifted, Steps, squeezed, unsqueezed, with_inputs
from mo_loop.transforms.loops.step_rules import OVER_BATCH, rule_of
from mo_loop.transforms.total_operations import DIVISIONS, fit, is_harmless, is_total
from mo_loop.transforms.vocabulary import Constant, F, Graph, Node, Op, Parameter, Result, Value, is_static, ops

Made = tuple[Sequence[Lifted], str]
"""The outputs of a node for all steps, or none and why not."""

Fed = Sequence[tuple[Any, Lifted]]
"""The entries of an input map, with the values of all steps."""


def lifted_if(lifting: Lifting, node: If) -> Made:
    """if c: a else: b  ->  the same If over all steps, or where c varies, select(c, a, b) of both branches"""
    condition, *fed = _inputs(lifting, node)
    pairs = list(zip(node.input_map, fed, strict=True))
    if condition.varies:
        return _selected(lifting, node, condition, pairs)
    if lifting.may_not_run or not any(lifted.varies for lifted in fed):
        return (), "If stays in the loop, which may have no step, or its branches are the same in all"
    return _branched(lifting, node, condition, pairs)


def _inputs(lifting: Lifting, node: Node) -> list[Lifted]:
    lifted = [lifting[value] for value in node.inputs]
    return [each for each in lifted if each is not None]


def _selected(lifting: Lifting, node: If, condition: Lifted, fed: Fed) -> Made:
    if not all(map(is_harmless, node.bodies)):
        return (), "a branch of If could fail, or takes long, in steps in which it does not run"
    results = []
    for body, side in zip(node.bodies, ("then", "else_"), strict=True):
        inner = lifting.within(body, lifting.steps.graph, lifting.steps.count)
        results.append(_lifted_side(inner, node, side, fed, [lifted.value for _, lifted in fed]))
    made = []
    for output, then, other in zip(node.outputs, *results, strict=True):
        if then is None or other is None or not then.dims == other.dims == output.shape:
            return (), "the branches of If have no form for all steps, or other shapes"
        flags = condition.value if condition.rank == 0 else squeezed(condition.value, 1)
        flags = unsqueezed(flags, range(1, 1 + output.type.rank)) if output.type.rank else flags
        made.append(Lifted(F.Select(flags, lifting.steps.each(then), lifting.steps.each(other)), True))
    return made, ""


def _branched(lifting: Lifting, node: If, condition: Lifted, fed: Fed) -> Made:
    count = lifting.steps.count
    values = [lifted.value for _, lifted in fed] + ([count] if isinstance(count, Value) else [])
    bodies = [Graph(body.name) for body in node.bodies]
    given: list[list[Parameter]] = []
    results: list[list[Result]] = []
    for body, new, side in zip(node.bodies, bodies, ("then", "else_"), strict=True):
        parameters = [Parameter(graph=new, type=value.type) for value in values]
        inner = lifting.within(body, new, parameters[-1].output if isinstance(count, Value) else count)
        made = _lifted_side(inner, node, side, fed, [parameter.output for parameter in parameters])
        if None in made:
            return (), next(iter(inner.obstacles.values()), "a branch of If has no form for all steps")
        given.append(parameters)
        results.append([Result(inner.steps.each(each)) for each in made if each is not None])
        new.sweep()
    whole = If(
        condition.value, *values, then_body=bodies[0], else_body=bodies[1], name=node.path if node.name else "",
        input_map=tuple(Branched(*pair) for pair in zip(*given, strict=True)),
        output_map=tuple(Selected(*pair) for pair in zip(*results, strict=True)),
    )
    return [Lifted(value, True) for value in whole.outputs], ""


def _lifted_side(inner: Lifting, node: If, side: str, fed: Fed, values: Sequence[Value]) -> list[Lifted | None]:
    """The results of a branch, whose Parameters have `values` that vary as those in `fed`."""
    for (entry, lifted), value in zip(fed, values, strict=False):
        if getattr(entry, side) is not None:
            inner.give(getattr(entry, side), value, varies=lifted.varies)
    inner.lift_all()
    return [inner[getattr(entry, side).value] for entry in node.output_map]


def lifted_loop(lifting: Lifting, node: Iteration) -> Made:
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
        condition = Result(F.Constant(True, graph=body, dtype=boolean))
        whole: Iteration = Loop(
            *(each.value for each in head), *values, graph=steps.graph, condition=condition, iteration=number,
            none_below_zero=node.none_below_zero, starts=node.starts, **shared,
        )
    else:
        whole = TensorIterator(*values, graph=steps.graph, **shared)
    return [Lifted(value, True) for value in whole.outputs], ""


def _parameter(body: Graph, entry: Any, lifted: Lifted, value: Value) -> tuple[Any, Lifted]:
    """The entry of the input map for a value of all steps, with a new Parameter."""
    type_ = value.type.without_known()
    if isinstance(entry, Sliced):
        axis = normalise_axis(entry.axis, lifted.rank) + lifted.varies
        entry = replace(entry, axis=axis)
        type_ = type_.with_size(axis, entry.part_size)
    return replace(entry, parameter=Parameter(graph=body, type=type_)), lifted


def _output(entry: Any, result: Result) -> Any:
    if not isinstance(entry, Concatenated):
        return replace(entry, result=result)
    declared = (-1, *entry.declared) if entry.declared else ()
    return replace(entry, result=result, axis=entry.axis + 1, declared=declared)


class Lifting:
    """The values of a body for all steps, in another graph.

    Args:
        count: the number of steps there.
        may_not_run: whether there may be none. Then nothing is lifted that could fail.
        may_end: whether the loop may execute fewer steps. Then nothing is lifted that could fail on any data.
    """

    def __init__(self, body: Graph, draft: Graph, count: Length, *, may_not_run: bool, may_end: bool = False) -> None:
        self.body = body
        self.steps = Steps(draft, count)
        self.may_not_run, self.may_end = may_not_run or may_end, may_end
        self._made: dict[Value, Lifted] = {}
        self.obstacles: dict[Node, str] = {}
        """The nodes that could be lifted by their inputs, and are not: why."""

    def __getitem__(self, value: Value | None) -> Lifted | None:
        return None if value is None else self._made.get(value)

    def give(self, parameter: Parameter, value: Value, *, varies: bool) -> None:
        """Set the value of a Parameter of the body in the new graph."""
        self._made[parameter.output] = Lifted(value, varies)

    def mark(self) -> dict[Value, Lifted]:
        """The values lifted so far, for `restore`."""
        return dict(self._made)

    def restore(self, made: dict[Value, Lifted]) -> None:
        """Forget the values that were lifted since `mark`."""
        self._made = dict(made)

    def put(self, value: Value, made: Value) -> None:
        """Set the value of all steps for a value of the body, made without rules."""
        self._made[value] = Lifted(made, True)

    def lift_all(self, nodes: Iterable[Node] | None = None) -> None:
        """Lift all nodes of the body, or `nodes` in their order, whose inputs are lifted."""
        for node in self.body.ordered() if nodes is None else nodes:
            if isinstance(node, Parameter | Result) or node.outputs[0] in self._made:
                continue
            if all(value is None or value in self._made for value in node.inputs):
                self._lift(node)

    def _lift(self, node: Node) -> None:
        with made_for(node.origins):
            if isinstance(node, If | Loop | TensorIterator):
                if any(output.shape is None for output in node.outputs) or node.acts:
                    self.obstacles[node] = f"{kind(node)} stays in the loop"
                    return
                whole, obstacle = lifted_if(self, node) if isinstance(node, If) else lifted_loop(self, node)
                if obstacle:
                    self.obstacles[node] = obstacle
                for output, lifted in zip(node.outputs, whole, strict=False):
                    self._made[output] = lifted
                return
            if isinstance(node, Constant):
                copy = F.Constant(node.tensor, graph=self.steps.graph, name=node.name)
                self._made[node.output] = Lifted(copy, False)
                return
            obstacle = self._obstacle(node)
            made = None if obstacle else self._applied(node)
            if made is None:
                self.obstacles[node] = obstacle or f"{kind(node)} has no form for all steps with these inputs"
                return
            for output, lifted in zip(node.outputs, made, strict=True):
                self._made[output] = lifted

    def within(self, body: Graph, draft: Graph, count: Length, *, may_not_run: bool = False) -> Lifting:
        """The values of a body of a node of this body."""
        return Lifting(body, draft, count, may_not_run=self.may_not_run or may_not_run, may_end=self.may_end)

    def _obstacle(self, node: Node) -> str:
        if not isinstance(node, Op) or node.random or node.is_kept or node.bodies:
            return f"{kind(node)} stays in the loop"
        if self._varies(node) and rule_of(node) is None:
            return f"{kind(node)} has no rule for all steps at once"
        for value in (*node.operands, *node.outputs):
            if value.shape is None or value.dtype is string:
                return f"{kind(node)} reads or makes a tensor of unknown rank"
        if self.may_end and not (is_total(node) or _reads_anywhere(node)):
            return f"{kind(node)} could fail in steps that the loop does not execute"
        if self.may_not_run and not _is_safe(node, self._varies(node)):
            return f"{kind(node)} could fail where the loop has no step"
        return ""

    def _varies(self, node: Node) -> bool:
        return any(self._made[value].varies for value in node.operands)

    def _applied(self, node: Node) -> list[Lifted] | None:
        inputs = [self[value] for value in node.inputs]
        assert isinstance(node, Op)
        if not self._varies(node):
            same = with_inputs(node, *(None if each is None else each.value for each in inputs))
            return [Lifted(each, False) for each in (same if isinstance(same, tuple) else (same,))]
        rule = rule_of(node)
        assert rule is not None
        try:
            made = rule(node, inputs, self.steps)
        except MoLoopError:  # shapes that do not fit: the loop may never run
            return None
        if made is None:
            return None
        values = made if isinstance(made, tuple) else (made,)
        lifted = [each if isinstance(each, Lifted) else Lifted(each, True) for each in values]
        pairs = list(zip(lifted, node.outputs, strict=True))
        return lifted if all(each.rank == output.rank for each, output in pairs) else None


def kind(node: Node) -> str:
    """The operation of a node in the IR."""
    return str(getattr(node, "type", type(node).__name__))


def _reads_anywhere(node: Node) -> bool:
    """Whether `node` reads by any index: one outside gives zeros, or arbitrary numbers."""
    return isinstance(node, ops.Gather) and node.batch_dims == 0 and node.operands[2].type.integers is not None


def _is_safe(node: Node, varies: bool) -> bool:
    """Whether `node` cannot fail if there are no steps: values that vary then have no elements."""
    if is_total(node) or _reads_anywhere(node):
        return True
    if not varies:
        return isinstance(node, ops.Range) and node.operands[2].type.integers is not None
    if isinstance(node, DIVISIONS):
        return fit(value.shape for value in node.operands)
    if rule_of(node) in OVER_BATCH.values():  # the runtime refuses an empty batch in some of them
        return False
    return all(is_static(each.shape) for each in (*node.operands, *node.outputs))  # inference has checked the sizes
