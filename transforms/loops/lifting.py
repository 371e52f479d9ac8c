"""Applies the body of a loop once, to the tensors of all its steps.

    for i in range(T): Y[i] = f(X[i], v)      ->  Y = f(X, v), with a rule for each operator in f

`give` says what the Parameters of the body are in the new graph, `lift_all` makes what follows from them as far as
there are rules, and `lifting[value]` is the Lifted of a value of the body, or None.

The new graph is only a draft: `Graph.inline` puts it where it is needed, and a draft that is not needed leaves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mo_loop import ops
from mo_loop.errors import MoLoopError
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.origin import made_for
from mo_loop.graph.shape import is_static
from mo_loop.graph.types import TensorType, string
from mo_loop.ops.base import Constant, Op, Parameter, Result
from mo_loop.ops.control import If
from mo_loop.ops.lengths import Length
from mo_loop.ops.port_map import Branched, Selected
from mo_loop.transforms.loops.lifted import Lifted, Steps, again, squeezed, unsqueezed
from mo_loop.transforms.loops.step_rules import batch_rules, rule_of
from mo_loop.transforms.runtime.bodies_for_any_numbers import fit, is_harmless
from mo_loop.transforms.total_operations import is_total


class Lifting:
    """The values of a body for all steps, in another graph.

    Args:
        count: the number of steps there.
        may_not_run: whether there may be none. Then nothing is lifted that could fail.
    """

    def __init__(self, body: Graph, draft: Graph, count: Length, *, may_not_run: bool) -> None:
        self.body = body
        self.steps = Steps(draft, count)
        self._may_not_run = may_not_run
        self._made: dict[Value, Lifted] = {}
        self.obstacles: dict[Node, str] = {}
        """The nodes that could be lifted by their inputs, and are not: why."""

    def __getitem__(self, value: Value | None) -> Lifted | None:
        return None if value is None else self._made.get(value)

    def give(self, parameter: Parameter, value: Value, *, varies: bool) -> None:
        """What a Parameter of the body is in the new graph."""
        self._made[parameter.output] = Lifted(value, varies)

    def mark(self) -> dict[Value, Lifted]:
        """What is lifted so far, for `restore`."""
        return dict(self._made)

    def restore(self, made: dict[Value, Lifted]) -> None:
        """Forget what was lifted since `mark`."""
        self._made = dict(made)

    def put(self, value: Value, made: Value) -> None:
        """What a value of the body is in all steps, made otherwise than by rules."""
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
            if isinstance(node, If):
                self._lift_branches(node)
                return
            if isinstance(node, Constant):
                copy = Constant(node.tensor, graph=self.steps.graph, name=node.name)
                self._made[node.output] = Lifted(copy.output, False)
                return
            obstacle = self._obstacle(node)
            made = None if obstacle else self._applied(node)
            if made is None:
                self.obstacles[node] = obstacle or f"{kind(node)} has no form for all steps with these inputs"
                return
            for output, lifted in zip(node.outputs, made, strict=True):
                self._made[output] = lifted

    def _lift_branches(self, node: If) -> None:
        """if c: a else: b  ->  the same If over all steps, or where c varies, select(c, a, b) of both branches"""
        condition = self._made[node.operands[0]]
        fed = [(entry, self._made[value]) for entry, value in node.fed]
        if node.acts or any(output.shape is None for output in node.outputs):
            self.obstacles[node] = "If stays in the loop"
            return
        if condition.varies:
            self._select(node, condition, fed)
            return
        if self._may_not_run or not any(lifted.varies for _, lifted in fed):
            self.obstacles[node] = "If stays in the loop, which may have no step, or its branches are the same in all"
            return
        self._branch(node, condition, fed)

    def _select(self, node: If, condition: Lifted, fed: Sequence[tuple[Any, Lifted]]) -> None:
        results = []
        for body, side in zip(node.bodies, ("then", "else_"), strict=True):
            inner = Lifting(body, self.steps.graph, self.steps.count, may_not_run=self._may_not_run)
            for entry, lifted in fed:
                if getattr(entry, side) is not None:
                    inner.give(getattr(entry, side), lifted.value, varies=lifted.varies)
            inner.lift_all()
            results.append([inner[getattr(entry, side).value] for entry in node.output_map])
        for output, then, other in zip(node.outputs, *results, strict=True):
            same = then is not None and other is not None and then.dims == other.dims == output.shape
            if not same or not all(map(is_harmless, node.bodies)):
                self.obstacles[node] = "a branch of If could fail, or takes long, in steps in which it does not run"
                return
        for output, then, other in zip(node.outputs, *results, strict=True):
            assert then is not None and other is not None and output.rank is not None
            flags = condition.value if condition.rank == 0 else squeezed(condition.value, 1)
            flags = unsqueezed(flags, range(1, 1 + output.rank)) if output.rank else flags
            whole = ops.Select(flags, self.steps.each(then), self.steps.each(other)).output
            self._made[output] = Lifted(whole, True)

    def _branch(self, node: If, condition: Lifted, fed: Sequence[tuple[Any, Lifted]]) -> None:
        values = [lifted.value for _, lifted in fed]
        if isinstance(self.steps.count, Value):
            values.append(self.steps.count)
        bodies = [Graph(body.name) for body in node.bodies]
        given: list[list[Parameter]] = []
        results: list[list[Result]] = []
        for body, new, side in zip(node.bodies, bodies, ("then", "else_"), strict=True):
            parameters = [Parameter(graph=new, type=value.type) for value in values]
            count = parameters[-1].output if isinstance(self.steps.count, Value) else self.steps.count
            inner = Lifting(body, new, count, may_not_run=self._may_not_run)
            for (entry, lifted), parameter in zip(fed, parameters, strict=False):
                if getattr(entry, side) is not None:
                    inner.give(getattr(entry, side), parameter.output, varies=lifted.varies)
            inner.lift_all()
            made = [inner[getattr(entry, side).value] for entry in node.output_map]
            if None in made:
                self.obstacles[node] = next(iter(inner.obstacles.values()), "a branch of If has no form for all steps")
                return
            given.append(parameters)
            results.append([Result(inner.steps.each(each)) for each in made if each is not None])
        whole = If(
            condition.value, *values, then_body=bodies[0], else_body=bodies[1], name=node.path if node.name else "",
            input_map=tuple(Branched(*pair) for pair in zip(*given, strict=True)),
            output_map=tuple(Selected(*pair) for pair in zip(*results, strict=True)),
        )  # fmt: skip
        for output, value in zip(node.outputs, whole.outputs, strict=True):
            self._made[output] = Lifted(value, True)

    def _obstacle(self, node: Node) -> str:
        if not isinstance(node, Op) or node.random or node.is_kept or node.bodies:
            return f"{kind(node)} stays in the loop"
        if self._varies(node) and rule_of(node) is None:
            return f"{kind(node)} has no rule for all steps at once"
        for value in (*node.operands, *node.outputs):
            if not isinstance(value.type, TensorType) or value.type.shape is None or value.type.dtype is string:
                return f"{kind(node)} reads or makes a tensor of unknown rank"
        if self._may_not_run and not _is_safe(node, self._varies(node)):
            return f"{kind(node)} could fail where the loop has no step"
        return ""

    def _varies(self, node: Node) -> bool:
        return any(self._made[value].varies for value in node.operands)

    def _applied(self, node: Node) -> list[Lifted] | None:
        inputs = [self[value] for value in node.inputs]
        assert isinstance(node, Op)
        if not self._varies(node):
            same = again(node, *(None if each is None else each.value for each in inputs))
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


DIVISIONS = (ops.Divide, ops.FloorMod, ops.Mod, ops.Power)


def _is_safe(node: Node, varies: bool) -> bool:
    """Whether `node` cannot fail if there are no steps: what varies has no elements then."""
    if is_total(node) or _has_safe_sizes(node):
        return True
    if not varies:
        return isinstance(node, ops.Range) and node.operands[2].type.integers is not None
    if isinstance(node, DIVISIONS):
        return fit(value.shape for value in node.operands)
    if rule_of(node) in batch_rules.RULES.values():  # the runtime refuses an empty batch in some of them
        return False
    return all(is_static(each.shape) for each in (*node.operands, *node.outputs))  # inference has checked the sizes


def _has_safe_sizes(node: Node) -> bool:
    """Whether an operation that does not fail by its numbers has sizes that are proven to fit."""
    dims = node.operands[0].type.dims if node.operands else ()
    if isinstance(node, ops.Concat):
        others = [tuple(d for at, d in enumerate(v.type.dims) if at != node.axis % len(dims)) for v in node.operands]
        return len(set(others)) == 1
    known = [each.type.integers for each in node.operands[1:]]
    if isinstance(node, ops.Gather):  # an index outside gives zeros, or arbitrary numbers
        return node.batch_dims == 0 and known[1] is not None
    if isinstance(node, ops.Slice):
        bounds = node.operands[1:4]
        return None not in known[2:] and all(is_static(each.shape) for each in bounds)
    if isinstance(node, ops.Squeeze) and known and known[0] is not None:
        return all(dims[axis] == 1 for axis in known[0])
    if isinstance(node, ops.Split | ops.VariadicSplit):
        return None not in known and isinstance(dims[known[0][0]], int)
    return isinstance(node, ops.CumSum | ops.MVN | ops.NormalizeL2 | ops.Tile) and None not in known
