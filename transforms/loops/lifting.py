"""Applies the body of a loop once, to the tensors of all its steps.

    for i in range(T): Y[i] = f(X[i], v)      ->  Y = f(X, v), with a rule for each operator in f

`give` sets the values of the Parameters of the body in the new graph, `lift_all` lifts the nodes that depend on them,
as far as there are rules, and `lifting[value]` is the Lifted of a value of the body, or None.

The new graph is only a draft: `Graph.inline` puts it where it is needed, and a draft that is not needed leaves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from mo_loop import ops
from mo_loop.errors import MoLoopError
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.origin import made_for
from mo_loop.graph.shape import is_static
from mo_loop.graph.types import TensorType, string
from mo_loop.ops.base import Constant, Op, Parameter, Result
from mo_loop.ops.control import If, Loop, TensorIterator
from mo_loop.ops.lengths import Length
from mo_loop.transforms.loops.lifted import Lifted, Steps, again
from mo_loop.transforms.loops.lifted_bodies import lifted_if, lifted_loop
from mo_loop.transforms.loops.step_rules import OVER_BATCH, rule_of
from mo_loop.transforms.total_operations import DIVISIONS, fit, is_total


class Lifting:
    """The values of a body for all steps, in another graph.

    Args:
        count: the number of steps there.
        may_not_run: whether there may be none. Then nothing is lifted that could fail.
        may_end: whether the loop may execute fewer steps. Then nothing is lifted that could fail on any data.
    """

    def __init__(
        self, body: Graph, draft: Graph, count: Length, *, may_not_run: bool, may_end: bool = False
    ) -> None:  # fmt: skip
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

    def within(self, body: Graph, draft: Graph, count: Length, *, may_not_run: bool = False) -> Lifting:
        """The values of a body of a node of this body."""
        return Lifting(body, draft, count, may_not_run=self.may_not_run or may_not_run, may_end=self.may_end)

    def _obstacle(self, node: Node) -> str:
        if not isinstance(node, Op) or node.random or node.is_kept or node.bodies:
            return f"{kind(node)} stays in the loop"
        if self._varies(node) and rule_of(node) is None:
            return f"{kind(node)} has no rule for all steps at once"
        for value in (*node.operands, *node.outputs):
            if not isinstance(value.type, TensorType) or value.type.shape is None or value.type.dtype is string:
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
